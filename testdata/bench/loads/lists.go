package main

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/testdata/bench/recording"
)

// list is one list that the product read, page by page.
type list struct {
	resource string
	selector labels.Selector
	limits   []int64 // the limits of its pages, in order
}

// runLists reads all recorded lists at the same time. No program that needs the same
// objects can be faster.
func runLists(ctx context.Context, to target, args []string) error {
	requests, err := recording.Read(args[0])
	if err != nil {
		return err
	}
	lists, err := listsOf(requests)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range lists {
		group.Go(func() error {
			read := 0
			for _, err := range l.pages(ctx, to.client, "") {
				// A pass does not read the pages after the last cache.
				if read++; err != nil || read == len(l.limits) {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// listsOf finds the lists among the requests.
func listsOf(requests []recording.Request) ([]*list, error) {
	var lists []*list
	known := map[string]*list{}
	for _, r := range requests {
		if r.Verb() != "list" {
			continue
		}
		resource, _ := r.Resource()
		text := r.Query.Get("labelSelector")
		l := known[resource+"?"+text]
		if l == nil {
			selector, err := labels.Parse(text)
			if err != nil {
				return nil, err
			}
			l = &list{resource: resource, selector: selector}
			known[resource+"?"+text] = l
			lists = append(lists, l)
		}
		limit, err := strconv.ParseInt(r.Query.Get("limit"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s was listed without pages: %w", r.Path, err)
		}
		l.limits = append(l.limits, limit)
	}
	return lists, nil
}

// pages reads the list to its end, in pages as large as the recorded ones. Further
// pages are as large as the last recorded one. After an error it yields nothing more.
func (l *list) pages(ctx context.Context, c client.Client, namespace string) iter.Seq2[client.ObjectList, error] {
	return func(yield func(client.ObjectList, error) bool) {
		token := ""
		for n := 0; n == 0 || token != ""; n++ {
			objects, err := newList(l.resource)
			if err == nil {
				limit := l.limits[min(n, len(l.limits)-1)]
				err = c.List(ctx, objects, client.InNamespace(namespace), client.Limit(limit), client.Continue(token),
					client.MatchingLabelsSelector{Selector: l.selector})
			}
			if !yield(objects, err) || err != nil {
				return
			}
			token = objects.GetContinue()
		}
	}
}

func newList(resource string) (client.ObjectList, error) {
	switch resource {
	case "clusteredcaches":
		return &v1.ClusteredCacheList{}, nil
	case "statefulsets":
		return &appsv1.StatefulSetList{}, nil
	case "services":
		return &corev1.ServiceList{}, nil
	case "poddisruptionbudgets":
		return &policyv1.PodDisruptionBudgetList{}, nil
	}
	return nil, fmt.Errorf("the product listed %s, which this benchmark does not know: add it here", resource)
}
