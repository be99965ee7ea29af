package stories_test

import (
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
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
)

// A webhook refuses the StatefulSet with a page of text that differs each time:
// the status says so all the same, briefly and the same in every pass, and the
// report has the server's own words.
func TestRefusalWithAPageOfText(t *testing.T) {
	ns := env.Namespace(t)
	refuseWithAPage(t, ns)
	create(t, ns, "cache")
	f := pass(t, ns)
	wantVerdict(t, f, "cache", model.NotDone, v1.ReasonApplyRejected)
	c := get(t, ns, "cache", &v1.ClusteredCache{})
	stalled := condition(c, v1.ConditionStalled)
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
	get(t, ns, "cache", &corev1.Service{})
	before := versions(t, ns)
	time.Sleep(1100 * time.Millisecond)
	pass(t, ns)
	if d := cmpDiff(before, versions(t, ns)); d != "" {
		t.Errorf("the same refusal is written again: %s", d)
	}
}

func refuseWithAPage(t *testing.T, ns string) {
	t.Helper()
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
	t.Cleanup(server.Close)
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta("", ns)}
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
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}},
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}}
	mustCreate(t, hook)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), hook) })
	testenv.Eventually(t, "the webhook is asked", func() bool {
		probe := &appsv1.StatefulSet{ObjectMeta: meta(ns, "probe")}
		probe.Spec.Selector = labelSelector("probe")
		probe.Spec.Template.Labels = map[string]string{"app": "probe"}
		probe.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
		err := env.Client.Create(t.Context(), probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "policy 7")
	})
}

// Our own governing Service has a cluster address, as one of another make would:
// that cannot change. It is said, the address stays, and the other children are
// made.
func TestServiceWithAnAddressKeepsIt(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	theirs := &corev1.Service{ObjectMeta: meta(ns, "nodes-cache")}
	theirs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, v1.GroupVersion.WithKind(v1.Kind))}
	theirs.Annotations = map[string]string{"cloud.example.com/load-balancer": "7"}
	theirs.Spec.Ports = []corev1.ServicePort{{Name: "cache", Port: 11211}}
	mustCreate(t, theirs)
	wantVerdict(t, settle(t, ns), "cache", model.Stalled, v1.ReasonImmutableField)
	wantMessage(t, ns, "Service "+ns+"/nodes-cache: spec.clusterIP is "+theirs.Spec.ClusterIP+" and cannot be changed to None", "kubectl -n "+ns+" delete service nodes-cache")
	s := get(t, ns, "nodes-cache", &corev1.Service{})
	if s.UID != theirs.UID || s.Spec.ClusterIP != theirs.Spec.ClusterIP || s.Annotations["cloud.example.com/load-balancer"] != "7" || !s.Spec.PublishNotReadyAddresses {
		t.Errorf("the Service: %+v", s)
	}
	get(t, ns, "cache", &appsv1.StatefulSet{})
	get(t, ns, "cache", &policyv1.PodDisruptionBudget{})
	testenv.Eventually(t, "the nodes are ready", func() bool {
		pass(t, ns)
		return available(get(t, ns, "cache", &v1.ClusteredCache{})) == metav1.ConditionTrue
	})
	before := versions(t, ns)
	pass(t, ns)
	if d := cmpDiff(before, versions(t, ns)); d != "" {
		t.Errorf("written again: %s", d)
	}
	// The way out of the message.
	if err := env.Client.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
}

// Labels of the cache and its version are not in what cannot change later: a new
// chart with a new version is a rollout like any other.
func TestLabelsAndVersionAreNotInImmutablePlaces(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", withStorage("1Gi", ""), func(c *v1.ClusteredCache) {
		c.Labels = map[string]string{"helm.sh/chart": "cache-1.2.3", "app.kubernetes.io/version": "1.6.38"}
	})
	settle(t, ns)
	update(t, c, func(c *v1.ClusteredCache) {
		c.Labels = map[string]string{"helm.sh/chart": "cache-1.2.4", "app.kubernetes.io/version": "1.6.39"}
		c.Spec.Version = "1.6.39"
	})
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	sts := get(t, ns, "cache", &appsv1.StatefulSet{})
	fixed := map[string]string{v1.NameLabel: v1.NameValue, v1.InstanceLabel: "cache"}
	if d := cmpDiff(fixed, sts.Spec.Selector.MatchLabels); d != "" {
		t.Errorf("selector: %s", d)
	}
	if d := cmpDiff(fixed, sts.Spec.VolumeClaimTemplates[0].Labels); d != "" {
		t.Errorf("claim template: %s", d)
	}
}

// Numbers that fall to zero, which the StatefulSet leaves out, are zeros in our
// status too.
func TestReadyNodesFallToZero(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Size = 2 })
	settle(t, ns)
	for i := range 2 {
		patch(t, get(t, ns, fmt.Sprintf("cache-%d", i), &corev1.Pod{}), `{"metadata":{"annotations":{"controlplane.test/ready":"false"}}}`)
	}
	testenv.Eventually(t, "none is ready", func() bool {
		pass(t, ns)
		n, is := unstructuredCache(t, ns, "cache")["status"].(map[string]any)["readyReplicas"]
		return is && n == int64(0)
	})
	if c := get(t, ns, "cache", &v1.ClusteredCache{}); available(c) != metav1.ConditionFalse {
		t.Errorf("status: %+v", c.Status)
	}
}

// refuseNewStatefulSets makes admission refuse them in a namespace, until the returned function is called.
func refuseNewStatefulSets(t *testing.T, ns string) func() {
	t.Helper()
	patch(t, &corev1.Namespace{ObjectMeta: meta("", ns)}, `{"metadata":{"labels":{"refuse":"statefulsets"}}}`)
	objects := createAll(t, `
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
	testenv.Eventually(t, "the policy is in force", func() bool {
		probe := &appsv1.StatefulSet{ObjectMeta: meta(ns, "probe"), Spec: get(t, ns, "cache", &appsv1.StatefulSet{}).Spec}
		err := env.Client.Create(t.Context(), probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "today")
	})
	lift := sync.OnceFunc(func() {
		for _, o := range objects {
			_ = env.Client.Delete(context.Background(), o)
		}
	})
	t.Cleanup(lift)
	return lift
}

// createAll creates the objects of YAML documents.
func createAll(t *testing.T, documents string) []client.Object {
	t.Helper()
	var objects []client.Object
	for _, document := range strings.Split(documents, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		mustCreate(t, u)
		objects = append(objects, u)
	}
	return objects
}
