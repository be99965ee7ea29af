package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// ErrNotFound says that there is no cache of that name.
var ErrNotFound = errors.New("there is no such ClusteredCache")

// ErrUndecodable says that a stored cache is not of the form that this version
// knows.
var ErrUndecodable = errors.New("the stored object does not decode")

// UnlistedError says which of the scope's namespaces the identity may not list.
// The caches of the others were all yielded.
type UnlistedError struct {
	// Namespaces by name, with what the server answered.
	Namespaces map[string]error
}

func (e *UnlistedError) Error() string {
	names := slices.Sorted(maps.Keys(e.Namespaces))
	return fmt.Sprintf("namespaces that may not be listed: %s (%v)", strings.Join(names, ", "), e.Namespaces[names[0]])
}

// Item is one cache as observed, or what kept it from being observed. The time
// is not in it: that is the run's.
type Item struct {
	Key   types.NamespacedName
	Input model.Input
	Err   error
}

// Reader reads through a client.
type Reader struct {
	client client.Reader
}

// NewReader returns a Reader through c.
func NewReader(c client.Reader) *Reader { return &Reader{client: c} }

// Fleet calls yield with every cache in scope, in key order within each of the
// scope's namespaces, until yield returns false. A cache that cannot be
// observed is an Item with an error. The returned error means that a list
// could not be read: then caches are missing. Of several namespaces, one that
// may not be listed does not keep the others from it: an UnlistedError.
func (r *Reader) Fleet(ctx context.Context, scope Scope, yield func(Item) bool) error {
	if len(scope.Names) > 0 {
		return r.named(ctx, scope, yield)
	}
	namespaces := slices.Clone(scope.Namespaces)
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	refused := map[string]error{}
	for _, ns := range namespaces {
		more, err := r.join(ctx, ns, scope, yield)
		switch {
		case apierrors.IsForbidden(err):
			refused[ns] = err
		case err != nil:
			return err
		case !more:
			return unlisted(refused)
		}
	}
	if len(refused) == len(namespaces) {
		return refused[namespaces[0]] // nothing was done at all
	}
	return unlisted(refused)
}

func unlisted(refused map[string]error) error {
	if len(refused) == 0 {
		return nil
	}
	return &UnlistedError{refused}
}

func (r *Reader) named(ctx context.Context, scope Scope, yield func(Item) bool) error {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(scope.Names))) {
		key := types.NamespacedName{Namespace: scope.Namespaces[0], Name: name}
		in, err := r.One(ctx, key)
		if !yield(Item{Key: key, Input: in, Err: err}) {
			return nil
		}
	}
	return nil
}

// join merges the streams of one namespace ("": all). It returns false when
// yield did.
func (r *Reader) join(ctx context.Context, ns string, scope Scope, yield func(Item) bool) (bool, error) {
	caches, children := r.caches(ns, scope), r.children(ns)
	ctx, end := context.WithCancel(ctx)
	defer func() {
		end()
		caches.stop()
		children.stop()
	}()
	for {
		e, ok, err := caches.peek(ctx)
		if err != nil || !ok {
			return true, err
		}
		caches.take()
		item := e.object
		if !scope.Shard.Has(item.Key) {
			continue
		}
		if item.Err == nil {
			children.begin(ctx)
			if item.Input.Live, err = children.of(ctx, e.key); err != nil {
				return true, err
			}
		}
		if !yield(item) {
			return false, nil
		}
	}
}

func (r *Reader) caches(ns string, scope Scope) *stream[Item] {
	match := client.MatchingLabelsSelector{Selector: scope.Selector}
	if scope.Selector == nil {
		match.Selector = labels.Everything()
	}
	return newStream("clusteredcaches", func(ctx context.Context, token string, limit int64) (page[Item], error) {
		opts := []client.ListOption{client.InNamespace(ns), match, client.Continue(token), client.Limit(limit)}
		list := &v1.ClusteredCacheList{}
		err := r.client.List(ctx, list, opts...)
		if undecoded(ctx, err) {
			return r.itemByItem(ctx, opts)
		}
		if err != nil {
			return page[Item]{}, err
		}
		p := page[Item]{next: list.Continue, objects: len(list.Items)}
		for _, c := range pointers(list.Items) {
			p.bytes += weight(c)
			key := client.ObjectKeyFromObject(c)
			p.add(key, Item{Key: key, Input: model.Input{Cache: c}})
		}
		return p, nil
	})
}

func (p *page[T]) add(key types.NamespacedName, object T) {
	p.entries = append(p.entries, entry[T]{key: key.Namespace + "/" + key.Name, object: object})
}

// undecoded tells that a list arrived and was not understood: for all we know
// because of a single object in it.
func undecoded(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	var connection *url.Error
	return err != nil && ctx.Err() == nil && !errors.As(err, &status) && !errors.As(err, &connection)
}

// itemByItem reads a page with a cache in it that does not decode: that one is
// an Item with an error.
func (r *Reader) itemByItem(ctx context.Context, opts []client.ListOption) (page[Item], error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.Kind + "List"))
	if err := r.client.List(ctx, list, opts...); err != nil {
		return page[Item]{}, err
	}
	p := page[Item]{next: list.GetContinue()}
	for i := range list.Items {
		item := decode(&list.Items[i])
		p.add(item.Key, item)
	}
	return p, nil
}

// weight is about what a cache takes in a list, by the parts of it that have
// no bound of their own.
func weight(c *v1.ClusteredCache) int {
	bytes := 2048
	for k, v := range c.Annotations {
		bytes += len(k) + len(v)
	}
	for _, e := range c.ManagedFields {
		if e.FieldsV1 != nil {
			bytes += len(e.FieldsV1.GetRawBytes())
		}
	}
	for _, arg := range c.Spec.Args {
		bytes += len(arg)
	}
	if c.Spec.PodTemplate != nil {
		bytes += len(c.Spec.PodTemplate.Raw)
	}
	for _, condition := range c.Status.Conditions {
		bytes += len(condition.Message)
	}
	return bytes
}

func decode(u *unstructured.Unstructured) Item {
	item := Item{Key: types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}}
	cache := &v1.ClusteredCache{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cache); err != nil {
		item.Err = fmt.Errorf("%w: %w", ErrUndecodable, err)
		return item
	}
	item.Input.Cache = cache
	return item
}

// One observes a single cache by name, with whatever has the names of its
// children, our labels or not. ErrNotFound: there is no such cache.
func (r *Reader) One(ctx context.Context, key types.NamespacedName) (model.Input, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.Kind))
	if err := r.client.Get(ctx, key, u); err != nil {
		if missing(err) {
			return model.Input{}, ErrNotFound
		}
		return model.Input{}, err
	}
	item := decode(u)
	if item.Err != nil {
		return model.Input{}, item.Err
	}
	in := model.Input{Cache: item.Input.Cache}
	var err error
	in.Live, err = r.Live(ctx, key)
	return in, err
}

// Live observes by name whatever has the names of a cache's children.
func (r *Reader) Live(ctx context.Context, key types.NamespacedName) (live model.Live, err error) {
	if live.StatefulSet, err = get(ctx, r.client, key, &appsv1.StatefulSet{}); err != nil {
		return live, err
	}
	if live.ClientService, err = get(ctx, r.client, key, &corev1.Service{}); err != nil {
		return live, err
	}
	nodes := types.NamespacedName{Namespace: key.Namespace, Name: resources.NodesServiceName(key.Name)}
	if live.NodesService, err = get(ctx, r.client, nodes, &corev1.Service{}); err != nil {
		return live, err
	}
	live.DisruptionBudget, err = get(ctx, r.client, key, &policyv1.PodDisruptionBudget{})
	return live, err
}

// missing tells that the object does not exist from that its kind is not
// installed, which is a 404 of the server, not of the API.
func missing(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func get[T client.Object](ctx context.Context, c client.Reader, key types.NamespacedName, o T) (T, error) {
	var none T
	switch err := c.Get(ctx, key, o); {
	case missing(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s: %w", o, key, err)
	}
	return o, nil
}

// Config reads the ConfigMap that the cache's spec names, if it names one.
func (r *Reader) Config(ctx context.Context, cache *v1.ClusteredCache) (model.Config, error) {
	if cache.Spec.Config == nil || cache.DeletionTimestamp != nil {
		return model.Config{}, nil
	}
	cm, err := get(ctx, r.client, types.NamespacedName{Namespace: cache.Namespace, Name: cache.Spec.Config.Name}, &corev1.ConfigMap{})
	if err != nil {
		return model.Config{}, err
	}
	if cm == nil {
		return model.Config{Missing: true}, nil
	}
	return model.Config{Hash: resources.ConfigHash(cm)}, nil
}
