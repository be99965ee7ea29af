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

// ErrNotFound reports that no cache has the requested name.
var ErrNotFound = errors.New("there is no such ClusteredCache")

// ErrUndecodable reports that a stored cache does not have the form that this
// version knows.
var ErrUndecodable = errors.New("the stored object does not decode")

// UnlistedError names the namespaces of the scope that the identity may not list.
// The caches of the other namespaces were all yielded.
type UnlistedError struct {
	// Namespaces maps each name to the answer of the server.
	Namespaces map[string]error
}

func (e *UnlistedError) Error() string {
	names := slices.Sorted(maps.Keys(e.Namespaces))
	return fmt.Sprintf("namespaces that may not be listed: %s (%v)", strings.Join(names, ", "), e.Namespaces[names[0]])
}

// Item is one cache as observed, or the reason why it could not be observed. It
// holds no time, because the run supplies that.
type Item struct {
	Key   types.NamespacedName
	Input model.Input
	Err   error
}

// Reader reads the cluster through a client.
type Reader struct {
	client client.Reader
}

// NewReader returns a Reader that uses c.
func NewReader(c client.Reader) *Reader { return &Reader{client: c} }

// Fleet calls yield with every cache in scope until yield returns false. The caches
// of each namespace come in key order. A cache that cannot be observed is an Item
// with an error.
//
// The returned error means that a list could not be read, so caches are missing.
// When only some of several namespaces may not be listed, the others are still
// read. The error is then an UnlistedError.
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
		return refused[namespaces[0]] // none of them could be listed
	}
	return unlisted(refused)
}

// unlisted returns an UnlistedError, or nil if every namespace was listed.
func unlisted(refused map[string]error) error {
	if len(refused) == 0 {
		return nil
	}
	return &UnlistedError{refused}
}

// named yields the caches that the scope names.
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

// join merges the streams of one namespace, or of all namespaces if ns is empty. It
// returns false if yield returned false.
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

// caches returns a stream of the caches of one namespace, without their children.
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

// add adds an object of the cache with this key to the page.
func (p *page[T]) add(key types.NamespacedName, object T) {
	p.entries = append(p.entries, entry[T]{key: key.Namespace + "/" + key.Name, object: object})
}

// undecoded reports whether a list arrived but could not be decoded. A single
// object in the list may be the cause.
func undecoded(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	var connection *url.Error
	return err != nil && ctx.Err() == nil && !errors.As(err, &status) && !errors.As(err, &connection)
}

// itemByItem reads a page again when a cache in it does not decode. That cache
// becomes an Item with an error.
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

// weight returns roughly how many bytes a cache takes in a list. It counts the
// parts whose size is unlimited, and a constant for the rest.
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

// decode converts a cache from its JSON form. The Item has an error if it does not
// decode.
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

// One observes a single cache by name. It also reads every object that has the name
// of a child, even without our labels. It returns ErrNotFound if the cache does not
// exist.
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

// Live reads every object that has the name of a child of the cache.
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

// missing reports whether the answer means that the object does not exist. A 404
// for a kind that is not installed is different: it comes from the server and not
// from the API.
func missing(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// get reads one object. It returns nil, without an error, if the object does not
// exist.
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

// Config reads the ConfigMap that the spec of the cache names. It returns the zero
// Config if the spec names none or the cache is being deleted.
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
