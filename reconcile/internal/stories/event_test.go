package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
)

// Transitions are told once each, and a downgrade; a pass that changes nothing
// tells nothing.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	settled := func() {
		t.Helper()
		w.Eventually("settled", func() bool {
			w.Tell(w.Product(nil))
			c := w.Stored()
			return world.ConditionOf(c, v1.ConditionAvailable).Reason == v1.ReasonReady && c.Status.ObservedGeneration == c.Generation
		})
	}
	settled()
	events := w.Events()
	if world.Count(events, "Normal NotObserved: ") != 0 || world.Count(events, "Normal Ready: 3 of 3 nodes ready") != 1 {
		t.Errorf("events: %q", events)
	}
	w.Tell(w.Product(nil))
	if again := w.Events(); len(again) != len(events) {
		t.Errorf("a settled cache told more: %q", again)
	}

	w.Edit(`spec: {version: "1.6.37"}`)
	w.Run(client.NewDryRunClient(w.Product(nil)), reconcile.Options{})
	if again := w.Events(); len(again) != len(events) {
		t.Errorf("a dry run told: %q", again)
	}
	settled()
	events = w.Events()
	if world.Count(events, "Warning Downgrade: downgrade from 1.6.38 to 1.6.37") != 1 || world.Count(events, "Normal Ready: ") != 2 {
		t.Errorf("events: %q", events)
	}

	w.Edit(`spec: {version: broken}`)
	w.Tell(w.Product(nil))
	w.Eventually("one node is broken, and its controller knows", func() bool {
		return w.StatefulSet().Status.ReadyReplicas == 2 && !w.IsGone("cache-2", &corev1.Pod{}) && len(w.Node(2).Status.ContainerStatuses) > 0
	})
	w.Tell(w.Product(nil))
	if events = w.Events(); world.Count(events, "Warning ImagePullBackOff: 2 of 3 nodes ready") != 1 {
		t.Errorf("events: %q", events)
	}
}

// Without the right to write Events the caches are done all the same, and one
// warning says so for the whole run. All other rights are those that are shipped.
func TestWithoutTheRightToWriteEvents(t *testing.T) {
	w := world.Shared(t)
	w.Named("a").Cache()
	w.Named("b").Cache()
	role := w.ShippedRole()
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == eventsv1.GroupName })
	quiet := w.As(role)
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	quiet.Run(quiet.Product(nil), reconcile.Options{Concurrency: 2, Events: true, Wait: true, Timeout: time.Minute})
	if n := strings.Count(log.String(), "Events cannot be written"); n != 1 || !strings.Contains(log.String(), "events") {
		t.Errorf("%d warnings: %s", n, &log)
	}
	for _, name := range []string{"a", "b"} {
		if c := w.Named(name).Stored(); world.Available(c) != metav1.ConditionTrue {
			t.Errorf("%s is not done", name)
		}
	}
}
