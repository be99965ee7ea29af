package stories_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/observe"
)

// Passes that may do what is shipped, and nothing else, make every story good,
// and the rights that the API server asks after meanwhile are those that are
// shipped, one by one: neither a right that nothing uses nor the lack of one
// gets past this test.
func TestRights(t *testing.T) {
	const user = "shipped"
	asked := questionsAbout(t, user)
	shared := env
	// The plugin asks for the right on finalizers, as OpenShift does.
	env = separate(t, "--authorizer="+asked.kubeconfig, "--admission-plugins=OwnerReferencesPermissionEnforcement")
	t.Cleanup(func() { env = shared })
	role := shippedRole(t)
	as(t, user, role)
	env.Config = asUser(env.Config, user) // for passes; env.Client is not made of it
	inTests(t, slices.Concat(stories(), rareStories()), func(t *testing.T, s story) {
		ns := env.Namespace(t)
		s.before(t, ns)
		s.happens(t, ns)
		settle(t, ns)
	})
	if d := cmpDiff(rightsOf(role), asked.list()); d != "" {
		t.Errorf("shipped (-) and asked for (+):\n%s", d)
	}
}

// rareStories need rights that the others need by chance, or not at all.
func rareStories() []story {
	return []story{
		{name: "volumes grow, and it is told", before: withVolumes, happens: growsAndTells},
		{name: "shrinks to one", before: func(t *testing.T, ns string) { create(t, ns, "cache"); settle(t, ns) }, happens: func(t *testing.T, ns string) {
			update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache")}, func(c *v1.ClusteredCache) { c.Spec.Size = 1 })
		}},
		{name: "pods that admission refuses", before: restricted, happens: refusedForATime},
		{name: "a claim changes meanwhile", before: withVolumes, happens: claimChangesMeanwhile},
	}
}

func growsAndTells(t *testing.T, ns string) {
	update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache")}, func(c *v1.ClusteredCache) { c.Spec.Storage.Size = quantity("2Gi") })
	testenv.Eventually(t, "the volumes have grown", func() bool {
		telling(t, productClient(t, nil), ns)
		return templateSize(t, ns) == "2Gi"
	})
	if events := eventsOf(t, ns); count(events, "Normal VolumeGrowing: claim data-cache-0 grows from 1Gi to 2Gi") != 1 || count(events, "Normal StatefulSetReplaced: ") != 1 {
		t.Errorf("events: %q", events)
	}
}

func restricted(t *testing.T, ns string) {
	patch(t, &corev1.Namespace{ObjectMeta: meta("", ns)}, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
}

func refusedForATime(t *testing.T, ns string) {
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.PodTemplate = raw(`{"spec":{"hostNetwork":true}}`) })
	until(t, ns, "cache", v1.ReasonPodNotCreated)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.PodTemplate = nil })
}

// claimChangesMeanwhile grows volumes, and changes a claim before the pass does.
func claimChangesMeanwhile(t *testing.T, ns string) {
	update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache")}, func(c *v1.ClusteredCache) { c.Spec.Storage.Size = quantity("2Gi") })
	changed := false
	c := productClient(t, func(_ int, r *http.Request) {
		if name := path.Base(r.URL.Path); r.Method == http.MethodPatch && name == "data-cache-0" && !changed {
			changed = true
			patch(t, claim(t, ns, 0), `{"metadata":{"annotations":{"changed":"meanwhile"}}}`)
		}
	})
	runWith(t, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1})
	if asks := claim(t, ns, 0).Spec.Resources.Requests["storage"]; !changed || asks.String() != "2Gi" {
		t.Errorf("changed: %t, the claim asks for %s", changed, asks.String())
	}
}

// rightsOf are the rights that a role gives.
func rightsOf(role *rbacv1.ClusterRole) []string {
	var rights []string
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, verb+" "+group+"/"+resource)
				}
			}
		}
	}
	slices.Sort(rights)
	return rights
}

// questions are the rights of a user that an API server asked after. That is
// more than requests show: an apply that creates is asked for both, and admission
// asks too.
type questions struct {
	kubeconfig string

	mu     sync.Mutex
	rights map[string]bool
}

// questionsAbout starts an authorizer that has no opinion.
func questionsAbout(t *testing.T, user string) *questions {
	t.Helper()
	q := &questions{kubeconfig: filepath.Join(t.TempDir(), "authorizer"), rights: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// Admission asks first whether the user may do it to anything at all.
		if a := review.Spec.ResourceAttributes; review.Spec.User == user && (a == nil || a.Group != "*") {
			q.add(review.Spec)
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["authorizer"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["authorizer"] = &clientcmdapi.Context{Cluster: "authorizer"}
	config.CurrentContext = "authorizer"
	if err := clientcmd.WriteToFile(*config, q.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return q
}

func (q *questions) add(s authorizationv1.SubjectAccessReviewSpec) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.NonResourceAttributes != nil {
		q.rights[s.NonResourceAttributes.Verb+" "+s.NonResourceAttributes.Path] = true
		return
	}
	a := s.ResourceAttributes
	q.rights[strings.TrimSuffix(a.Verb+" "+a.Group+"/"+a.Resource+"/"+a.Subresource, "/")] = true
}

func (q *questions) list() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Sorted(maps.Keys(q.rights))
}
