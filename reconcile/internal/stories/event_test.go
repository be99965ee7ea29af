package stories_test

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/observe"
)

// eventsOf are the Events of the caches in a namespace, "Type Reason: note", in
// order of their time.
func eventsOf(t *testing.T, ns string) []string {
	t.Helper()
	list := &eventsv1.EventList{}
	if err := env.Client.List(t.Context(), list, client.InNamespace(ns), client.MatchingFields{"regarding.kind": v1.Kind}); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int {
		return cmp.Or(a.EventTime.Compare(b.EventTime.Time), cmp.Compare(a.Name, b.Name))
	})
	var events []string
	for _, e := range list.Items {
		events = append(events, e.Type+" "+e.Reason+": "+e.Note)
	}
	return events
}

func count(list []string, prefix string) int {
	n := 0
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

func telling(t *testing.T, c client.Client, ns string) {
	t.Helper()
	runWith(t, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 2, Events: true})
}

// Transitions are told once each, and a downgrade; a pass that changes nothing
// tells nothing.
func TestEvents(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	settled := func() {
		t.Helper()
		testenv.Eventually(t, "settled", func() bool {
			telling(t, productClient(t, nil), ns)
			c := get(t, ns, "cache", &v1.ClusteredCache{})
			return condition(c, v1.ConditionAvailable).Reason == v1.ReasonReady && c.Status.ObservedGeneration == c.Generation
		})
	}
	settled()
	events := eventsOf(t, ns)
	if count(events, "Normal NotObserved: ") != 0 || count(events, "Normal Ready: 3 of 3 nodes ready") != 1 {
		t.Errorf("events: %q", events)
	}
	telling(t, productClient(t, nil), ns)
	if again := eventsOf(t, ns); len(again) != len(events) {
		t.Errorf("a settled cache told more: %q", again)
	}

	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "1.6.37" })
	if _, err := reconcile.Run(t.Context(), client.NewDryRunClient(productClient(t, nil)), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}}); err != nil {
		t.Fatal(err)
	}
	if again := eventsOf(t, ns); len(again) != len(events) {
		t.Errorf("a dry run told: %q", again)
	}
	settled()
	events = eventsOf(t, ns)
	if count(events, "Warning Downgrade: downgrade from 1.6.38 to 1.6.37") != 1 || count(events, "Normal Ready: ") != 2 {
		t.Errorf("events: %q", events)
	}

	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "broken" })
	testenv.Eventually(t, "broken", func() bool {
		telling(t, productClient(t, nil), ns)
		return count(eventsOf(t, ns), "Warning ImagePullBackOff: 2 of 3 nodes ready") == 1
	})
}

// Without the right to write Events the caches are done all the same, and one
// warning says so for the whole run. All other rights are those that are shipped.
func TestWithoutTheRightToWriteEvents(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "a")
	create(t, ns, "b")
	role := shippedRole(t)
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == eventsv1.GroupName })
	c := as(t, "quiet", role)
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	runWith(t, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 2, Events: true, Wait: true, Timeout: time.Minute})
	if n := strings.Count(log.String(), "Events cannot be written"); n != 1 || !strings.Contains(log.String(), "events") {
		t.Errorf("%d warnings: %s", n, &log)
	}
	for _, name := range []string{"a", "b"} {
		if c := get(t, ns, name, &v1.ClusteredCache{}); available(c) != metav1.ConditionTrue {
			t.Errorf("%s is not done", name)
		}
	}
}

// as is the client of a user who has a role, and nothing else.
func as(t *testing.T, user string, role *rbacv1.ClusterRole) client.Client {
	t.Helper()
	role.Name = user
	mustCreate(t, role)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", user),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}
	mustCreate(t, binding)
	t.Cleanup(func() {
		_ = env.Client.Delete(context.Background(), role)
		_ = env.Client.Delete(context.Background(), binding)
	})
	c, err := kube.NewClient(&kube.Target{Config: asUser(env.Config, user)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the rights are in force", func() bool {
		return c.List(t.Context(), &v1.ClusteredCacheList{}) == nil
	})
	return c
}
