package world

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// EachRequest runs test for the first request of a run, the second, and so on, a few
// at the same time, each in a namespace of its own. It ends with the one that says
// that there was no such request; fewer than least are too few to test anything.
func EachRequest(t *testing.T, least int, test func(w *World, k int) bool) {
	t.Helper()
	var last, done atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for !t.Failed() {
				k, reached := int(last.Add(1)), false
				t.Run(strconv.Itoa(k), func(t *testing.T) { reached = test(Shared(t), k) })
				if !reached {
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	if n := int(done.Load()); n < least && !t.Failed() {
		t.Errorf("only %d requests: the test does not test", n)
	}
}
