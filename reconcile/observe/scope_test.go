package observe

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Each cache is in exactly one shard, and the shards are of about one size.
func TestShards(t *testing.T) {
	const fleet = 6000
	for _, n := range []int{1, 2, 3, 4, 7, 8, 16} {
		sizes := make([]int, n)
		for i := range fleet {
			key := types.NamespacedName{Namespace: []string{"x", "x-y", "xa"}[i%3], Name: fmt.Sprintf("cache-%04d", i/3)}
			in := 0
			for s := range n {
				if (Shard{Index: s, Count: n}).Has(key) {
					sizes[s]++
					in++
				}
			}
			if in != 1 {
				t.Fatalf("%s is in %d of %d shards", key, in, n)
			}
		}
		for s, size := range sizes {
			if size < fleet/n*8/10 || size > fleet/n*12/10 {
				t.Errorf("shard %d of %d has %d of %d caches", s, n, size, fleet)
			}
		}
	}
}

// Which shard a cache is in is part of the API: releases that disagreed would
// leave caches out while both run.
func TestShardIsStable(t *testing.T) {
	for name, want := range map[string]int{"cache": 1, "cache-0000": 0, "cache-0001": 4} {
		for s := range 5 {
			if (Shard{Index: s, Count: 5}).Has(types.NamespacedName{Namespace: "shop", Name: name}) && s != want {
				t.Errorf("shop/%s is in shard %d of 5, and was in %d", name, s, want)
			}
		}
	}
}
