package reconcile

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/plan"
)

// Rendered holds the children of a cache as a pass would apply them.
type Rendered struct {
	Namespace, Name string
	Objects         []runtime.ApplyConfiguration
	// Err is why objects are missing. It uses the API server's words for what the
	// API server would refuse.
	Err error
}

// Render returns the children of the caches in m, without a server. It uses the
// same builders, defaults and rules as a pass.
func Render(m *manifest.Set) []Rendered {
	rendered := make([]Rendered, 0, len(m.Caches))
	for _, d := range m.Caches {
		cache := d.Cache
		r := Rendered{Namespace: cache.Namespace, Name: cache.Name, Err: d.Err}
		if r.Err == nil {
			cache.Default()
			r.Objects, r.Err = render(m, d)
		}
		rendered = append(rendered, r)
	}
	return rendered
}

// render plans the cache as if it had no children, and returns the objects that the
// plan creates. A suspended cache is rendered as if it were not suspended.
func render(m *manifest.Set, d manifest.Document) ([]runtime.ApplyConfiguration, error) {
	cache := d.Cache.DeepCopy()
	cache.Spec.Suspend, cache.DeletionTimestamp = false, nil
	p := plan.For(model.Input{Cache: cache, Config: m.Config(cache), OnPaper: true})
	var objects []runtime.ApplyConfiguration
	for _, s := range p.Steps {
		if s.Action == model.ActionCreate {
			objects = append(objects, s.Intent)
		}
	}
	var errs []error
	for _, h := range p.Holds {
		message := h.Message
		if h.Reason == v1.ReasonConfigMapNotFound {
			message = fmt.Sprintf("ConfigMap %s/%s (spec.config) is not in the manifests, and its content is part of the StatefulSet: add it", cache.Namespace, cache.Spec.Config.Name)
		}
		errs = append(errs, fmt.Errorf("%s: %s", d.Source, message))
	}
	return objects, errors.Join(errs...)
}
