package crash_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

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
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
)

// Passes that may do what is shipped, and nothing else, make every story good,
// and the rights that the API server asks after meanwhile are those that are
// shipped, one by one: neither a right that nothing uses nor the lack of one
// gets past this test.
func TestRights(t *testing.T) {
	t.Parallel()
	asked := questionsAbout(t)
	// A control plane of its own: one with an authorizer. The plugin asks for the
	// right on finalizers, as OpenShift does.
	plane := world.Separate(t, "--authorizer="+asked.kubeconfig, "--admission-plugins=OwnerReferencesPermissionEnforcement")
	role := plane.ShippedRole()
	shipped := plane.As(role)
	inTests(t, slices.Concat(stories(), rareStories()), func(t *testing.T, s story) {
		w := shipped.Fresh(t)
		s.before(w)
		s.happens(w)
		w.Settle()
	})
	if d := cmp.Diff(rightsOf(role), asked.about(shipped.User())); d != "" {
		t.Errorf("shipped (-) and asked for (+):\n%s", d)
	}
}

// rareStories need rights that the others need by chance, or not at all.
func rareStories() []story {
	return []story{
		{name: "volumes grow, and it is told", before: withVolumes, happens: growsAndTells},
		{name: "shrinks to one", before: func(w *world.World) { w.Cache(); w.Settle() }, happens: func(w *world.World) { w.Edit(`spec: {size: 1}`) }},
		{name: "pods that admission refuses", before: restricted, happens: refusedForATime},
		{name: "a claim changes meanwhile", before: withVolumes, happens: claimChangesMeanwhile},
	}
}

func growsAndTells(w *world.World) {
	w.Edit(`spec: {storage: {size: 2Gi}}`)
	w.Eventually("the volumes have grown", func() bool {
		w.Tell(w.Product(nil))
		return w.TemplateAsks() == "2Gi"
	})
	if events := w.Events(); world.Count(events, "Normal VolumeGrowing: claim data-cache-0 grows from 1Gi to 2Gi") != 1 || world.Count(events, "Normal StatefulSetReplaced: ") != 1 {
		w.Errorf("events: %q", events)
	}
}

func restricted(w *world.World) {
	w.Label("pod-security.kubernetes.io/enforce", "restricted")
}

func refusedForATime(w *world.World) {
	w.Cache(`spec: {podTemplate: {"spec":{"hostNetwork":true}}}`)
	w.Until(v1.ReasonPodNotCreated)
	w.Edit(`spec: {podTemplate: null}`)
}

// claimChangesMeanwhile grows volumes, and changes a claim before the pass does.
func claimChangesMeanwhile(w *world.World) {
	w.Edit(`spec: {storage: {size: 2Gi}}`)
	changed := false
	c := w.Product(func(_ int, r *http.Request) {
		if name := path.Base(r.URL.Path); r.Method == http.MethodPatch && name == "data-cache-0" && !changed {
			changed = true
			w.Patch(w.Claim(0), `{"metadata":{"annotations":{"changed":"meanwhile"}}}`)
		}
	})
	w.Run(c, reconcile.Options{Concurrency: 1})
	if asks := w.ClaimAsks(0); !changed || asks != "2Gi" {
		w.Errorf("changed: %t, the claim asks for %s", changed, asks)
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
	rights map[string]map[string]bool // by user
}

// questionsAbout starts an authorizer that has no opinion.
func questionsAbout(t *testing.T) *questions {
	t.Helper()
	q := &questions{kubeconfig: filepath.Join(t.TempDir(), "authorizer"), rights: map[string]map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// Admission asks first whether the user may do it to anything at all.
		if a := review.Spec.ResourceAttributes; a == nil || a.Group != "*" {
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
	if q.rights[s.User] == nil {
		q.rights[s.User] = map[string]bool{}
	}
	if a := s.NonResourceAttributes; a != nil {
		q.rights[s.User][a.Verb+" "+a.Path] = true
		return
	}
	a := s.ResourceAttributes
	q.rights[s.User][strings.TrimSuffix(a.Verb+" "+a.Group+"/"+a.Resource+"/"+a.Subresource, "/")] = true
}

// about are the rights of a user that were asked after.
func (q *questions) about(user string) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Sorted(maps.Keys(q.rights[user]))
}
