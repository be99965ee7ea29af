package resources_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/resources"
)

func hookJobs(cache *v1.ClusteredCache) ([]any, error) {
	var all []any
	if cache.Spec.Deletion == nil {
		return nil, nil
	}
	for i := range cache.Spec.Deletion.Hooks {
		job, err := resources.HookJob(cache, &cache.Spec.Deletion.Hooks[i], cache.Spec.Size)
		if err != nil {
			return nil, err
		}
		all = append(all, job)
	}
	return all, nil
}

// A Job's name fits into a label and, with a node's ordinal, into a host name;
// it is another for another life of the cache.
func TestHookJobName(t *testing.T) {
	cache := newCache()
	name := resources.HookJobName(cache, "backup")
	if want := "c-backup-"; !strings.HasPrefix(name, want) {
		t.Errorf("got %s, want %s...", name, want)
	}
	cache.UID = "another"
	if other := resources.HookJobName(cache, "backup"); other == name {
		t.Errorf("two caches share %s", name)
	}
	for _, c := range []struct{ cache, hook string }{
		{strings.Repeat("c", 52), strings.Repeat("h", 32)},
		{strings.Repeat("c", 13) + "--" + strings.Repeat("c", 37), strings.Repeat("h", 32)},
		{"stored.before", "x"},
	} {
		cache.Name = c.cache
		name := resources.HookJobName(cache, c.hook)
		if len(name) > 63-len("-999") || strings.Contains(name, ".") || !strings.Contains(name, "-"+c.hook+"-") {
			t.Errorf("%s, %s: %d characters: %s", c.cache, c.hook, len(name), name)
		}
	}
}

// A variable is there once, and the last that sets it counts.
func TestHookVariablesAreThereOnce(t *testing.T) {
	env := variables(t, &v1.Hook{Name: "h", Image: "i", PerNode: true, Env: []corev1.EnvVar{
		{Name: "A", Value: "1"}, {Name: "CACHE_VERSION", Value: "mine"}, {Name: "A", Value: "2"},
	}})
	values := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := values[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		values[name] = value
	}
	if values["A"] != "2" || values["CACHE_VERSION"] != "mine" || values["CACHE_NODES"] != "c-0.nodes-c.shop.svc:11211,c-1.nodes-c.shop.svc:11211" {
		t.Errorf("got %v", values)
	}
}

// The node's number is known before the variable that refers to it.
func TestHookPerNodeKnowsItsNode(t *testing.T) {
	env := strings.Join(variables(t, &v1.Hook{Name: "h", Image: "i", PerNode: true}), "\n")
	index := strings.Index(env, "JOB_COMPLETION_INDEX=")
	node := strings.Index(env, "CACHE_NODE=c-$(JOB_COMPLETION_INDEX).nodes-c.shop.svc:11211")
	if index < 0 || node < index {
		t.Errorf("got %s", env)
	}
}

// Neither Services nor the StatefulSet of the cache find a hook's pods.
func TestHookPodsAreNoNodes(t *testing.T) {
	labels := hookJob(t, &v1.Hook{Name: "h", Image: "i"}).Spec.Template.Labels
	matches := true
	for key, value := range resources.SelectorLabels("c") {
		matches = matches && labels[key] == value
	}
	if matches {
		t.Errorf("%v is selected", labels)
	}
}

func TestHookToken(t *testing.T) {
	for _, account := range []string{"", "backup"} {
		spec := hookJob(t, &v1.Hook{Name: "h", Image: "i", ServiceAccountName: account}).Spec.Template.Spec
		if token := *spec.AutomountServiceAccountToken; token != (account != "") {
			t.Errorf("ServiceAccount %q: token %t", account, token)
		}
	}
}

func hookJob(t *testing.T, hook *v1.Hook) *batchv1ac.JobApplyConfiguration {
	t.Helper()
	job, err := resources.HookJob(newCache(), hook, 2)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func variables(t *testing.T, hook *v1.Hook) []string {
	t.Helper()
	var env []string
	for _, v := range hookJob(t, hook).Spec.Template.Spec.Containers[0].Env {
		value := ""
		if v.Value != nil {
			value = *v.Value
		}
		env = append(env, *v.Name+"="+value)
	}
	return env
}
