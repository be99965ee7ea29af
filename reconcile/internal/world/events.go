package world

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
)

// Tell makes a pass that writes Events.
func (w *World) Tell(c client.Client) Fleet {
	w.Helper()
	return w.Run(c, reconcile.Options{Concurrency: 2, Events: true})
}

// StoredEvents are the Events of the caches, in order of their time.
func (w *World) StoredEvents() []eventsv1.Event {
	w.Helper()
	list := &eventsv1.EventList{}
	w.List(list, client.MatchingFields{"regarding.kind": v1.Kind})
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int {
		return cmp.Or(a.EventTime.Compare(b.EventTime.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items
}

// Events are those of the caches, "Type Reason: note".
func (w *World) Events() []string {
	w.Helper()
	var events []string
	for _, e := range w.StoredEvents() {
		events = append(events, e.Type+" "+e.Reason+": "+e.Note)
	}
	return events
}

// Count is how many of list begin with prefix.
func Count(list []string, prefix string) int {
	n := 0
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// InParallel does something to each key, a few at the same time.
func (w *World) InParallel(keys []client.ObjectKey, do func(client.ObjectKey) error) {
	w.Helper()
	work := make(chan client.ObjectKey)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for key := range work {
				if err := do(key); err != nil {
					w.Error(key, err)
				}
			}
		})
	}
	for _, key := range keys {
		work <- key
	}
	close(work)
	workers.Wait()
	if w.Failed() {
		w.FailNow()
	}
}
