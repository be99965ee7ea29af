package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"context"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

// A webhook refuses the StatefulSet with a page of text that differs each time:
// the status says so all the same, briefly and the same in every pass, and the
// report has the server's own words.
func TestRefusalWithAPageOfText(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	refuseWithAPage(w)
	w.Cache()
	f := w.Pass()
	f.Wants(model.NotDone, v1.ReasonApplyRejected)
	c := w.Stored()
	stalled := world.ConditionOf(c, v1.ConditionStalled)
	if stalled.Status != metav1.ConditionTrue || len(stalled.Message) > 1024 || !strings.Contains(stalled.Message, "policy 7 refuses") || c.Status.ObservedGeneration != c.Generation {
		t.Errorf("%d bytes, %+v", len(stalled.Message), stalled)
	}
	original := ""
	for _, o := range f.Caches[0].Outcomes {
		if o.Err != nil {
			original = o.Err.Error()
		}
	}
	if len(original) < 60<<10 || !strings.Contains(original, "request id ") {
		t.Errorf("the original error has %d bytes", len(original))
	}
	w.ClientService()
	w.WritesNothing("a pass that meets the same refusal", func() {
		w.NextSecond()
		w.Pass()
	})
}

func refuseWithAPage(w *world.World) {
	w.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		id := make([]byte, 16)
		_, _ = rand.Read(id)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Code: http.StatusForbidden, Message: fmt.Sprintf(
			"policy 7 refuses, at %s, request id %x-%x-%x-%x-%x: %s", time.Now().UTC().Format(time.RFC3339Nano),
			id[:4], id[4:6], id[6:8], id[8:10], id[10:], strings.Repeat("no way. ", 8<<10))}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	w.Cleanup(server.Close)
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.NS}}
	hook.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "refuse.test.example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL:      &server.URL,
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"statefulsets"}},
		}},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.NS}},
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}}
	w.CreateGlobal(hook)
	w.Eventually("the webhook is asked", func() bool {
		err := w.Env.Client.Create(w.Context(), w.Probe("a"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "policy 7")
	})
}

// Our own governing Service has a cluster address, as one of another make would:
// that cannot change. It is said, the address stays, and the other children are
// made.
func TestServiceWithAnAddressKeepsIt(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	c := w.Cache()
	theirs := &corev1.Service{ObjectMeta: w.Meta("nodes-cache")}
	theirs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, v1.GroupVersion.WithKind(v1.Kind))}
	theirs.Annotations = map[string]string{"cloud.example.com/load-balancer": "7"}
	theirs.Spec.Ports = []corev1.ServicePort{{Name: "cache", Port: 11211}}
	w.Create(theirs)
	w.Settle().Wants(model.Stalled, v1.ReasonImmutableField)
	w.Says("Service "+w.NS+"/nodes-cache: spec.clusterIP is "+theirs.Spec.ClusterIP+" and cannot be changed to None", "kubectl -n "+w.NS+" delete service nodes-cache")
	s := w.NodesService()
	if s.UID != theirs.UID || s.Spec.ClusterIP != theirs.Spec.ClusterIP || s.Annotations["cloud.example.com/load-balancer"] != "7" || !s.Spec.PublishNotReadyAddresses {
		t.Errorf("the Service: %+v", s)
	}
	w.StatefulSet()
	w.Budget()
	w.Eventually("the nodes are ready", func() bool {
		w.Pass()
		return world.Available(w.Stored()) == metav1.ConditionTrue
	})
	before := w.Versions()
	w.Pass()
	if d := cmp.Diff(before, w.Versions()); d != "" {
		t.Errorf("written again: %s", d)
	}
	// The way out of the message.
	w.Delete(s)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
}

// Labels of the cache and its version are not in what cannot change later: a new
// chart with a new version is a rollout like any other.
func TestLabelsAndVersionAreNotInImmutablePlaces(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Storage("1Gi", ""), `metadata: {labels: {"helm.sh/chart": "cache-1.2.3", "app.kubernetes.io/version": "1.6.38"}}`)
	w.Settle()
	w.Edit(`{metadata: {labels: {"helm.sh/chart": "cache-1.2.4", "app.kubernetes.io/version": "1.6.39"}}, spec: {version: "1.6.39"}}`)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	sts := w.StatefulSet()
	fixed := map[string]string{v1.NameLabel: v1.NameValue, v1.InstanceLabel: "cache"}
	if d := cmp.Diff(fixed, sts.Spec.Selector.MatchLabels); d != "" {
		t.Errorf("selector: %s", d)
	}
	if d := cmp.Diff(fixed, sts.Spec.VolumeClaimTemplates[0].Labels); d != "" {
		t.Errorf("claim template: %s", d)
	}
}

// Numbers that fall to zero, which the StatefulSet leaves out, are zeros in our
// status too.
func TestReadyNodesFallToZero(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {size: 2}`)
	w.Settle()
	for i := range 2 {
		w.Patch(world.Get(w, fmt.Sprintf("cache-%d", i), &corev1.Pod{}), `{"metadata":{"annotations":{"controlplane.test/ready":"false"}}}`)
	}
	w.Eventually("none is ready", func() bool {
		w.Pass()
		n, is := w.Unstructured().Object["status"].(map[string]any)["readyReplicas"]
		return is && n == int64(0)
	})
	if c := w.Stored(); world.Available(c) != metav1.ConditionFalse {
		t.Errorf("status: %+v", c.Status)
	}
}

// refuseNewStatefulSets makes admission refuse them in a namespace, until the returned function is called.
func refuseNewStatefulSets(w *world.World) func() {
	w.Helper()
	w.Label("refuse", "statefulsets")
	objects := w.CreateYAML(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-new-statefulsets}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {refuse: statefulsets}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [statefulsets]}]
  validations: [{expression: "false", message: "no new StatefulSets today"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-new-statefulsets}
spec: {policyName: no-new-statefulsets, validationActions: [Deny]}
`)
	w.Eventually("the policy is in force", func() bool {
		probe := &appsv1.StatefulSet{ObjectMeta: w.Meta("probe"), Spec: w.StatefulSet().Spec}
		err := w.Env.Client.Create(w.Context(), probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "today")
	})
	lift := sync.OnceFunc(func() {
		for _, o := range objects {
			_ = w.Env.Client.Delete(context.Background(), o)
		}
	})
	w.Cleanup(lift)
	return lift
}
