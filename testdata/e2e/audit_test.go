package e2e

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// unseen has the rights that the audit of this run cannot show, with what needs them.
// TestRights in package reconcile shows them too.
var unseen = map[string]string{
	// This API server runs OwnerReferencesPermissionEnforcement, which checks the
	// right when an owner reference is set. An audit does not list such checks.
	"update cache.example.com/clusteredcaches/finalizers": "blockOwnerDeletion of the children",
	// This right is used here only by chance.
	"get /persistentvolumeclaims": "a claim that changed while the pass ran",
}

// event has what we read from a line of the audit log.
type event struct {
	Verb           string `json:"verb"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
}

func (e event) resource() string {
	r := e.ObjectRef.APIGroup + "/" + e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		r += "/" + e.ObjectRef.Subresource
	}
	return r
}

// rightsAreUsed checks that the passes of this run used each right of the shipped
// ClusterRole, and that the API server refused none of their requests.
func rightsAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, e := range audited(t) {
		if e.ResponseStatus.Code == 403 {
			t.Errorf("refused: %s %s %s/%s", e.Verb, e.resource(), e.ObjectRef.Namespace, e.ObjectRef.Name)
		}
		used[e.Verb+" "+e.resource()] = true
		if e.Verb == "patch" && e.ResponseStatus.Code == 201 {
			used["create "+e.resource()] = true // an apply that made the object
		}
	}
	role := get(t, "", "clusteredcache", &rbacv1.ClusterRole{})
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				right := verb + " " + rule.APIGroups[0] + "/" + resource
				if unseen[right] == "" && !used[right] {
					t.Errorf("the right to %s was not used", right)
				}
			}
		}
	}
	t.Logf("used: %v", slices.Sorted(maps.Keys(used)))
}

// audited returns the requests of our ServiceAccount.
func audited(t *testing.T) []event {
	t.Helper()
	file, err := os.Open(filepath.Join(state, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var events []event
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if len(events) == 0 {
		t.Fatal("nothing was audited")
	}
	return events
}
