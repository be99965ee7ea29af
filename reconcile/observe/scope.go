package observe

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Scope says which caches a pass is about.
type Scope struct {
	// Namespaces to look in; empty: all of them.
	Namespaces []string
	// Names, if any, are the caches to look at, in the one namespace of
	// Namespaces; Selector is then not used.
	Names []string
	// Selector keeps the caches whose labels it matches; nil: all.
	Selector labels.Selector
	// Shard keeps a part of what the rest lets through; Names are all kept.
	Shard Shard
}

// Shard is part Index (from 0) of a fleet that Count processes share. The zero
// value is the whole.
type Shard struct {
	Index, Count int
}

// String is the form of the command line, "0/3"; empty for the whole.
func (s Shard) String() string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// Set reads the form of the command line.
func (s *Shard) Set(text string) error {
	index, count, _ := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(index)
	n, err2 := strconv.Atoi(count)
	if err1 != nil || err2 != nil || i < 0 || i >= n {
		return errors.New("it must be INDEX/COUNT, INDEX from 0 to COUNT-1, such as 0/3")
	}
	*s = Shard{Index: i, Count: n}
	return nil
}

// Type is what help texts call such a value.
func (s *Shard) Type() string { return "INDEX/COUNT" }

// Has tells whether the cache is in this shard. It goes by namespace and name
// alone, so that every process, of every release, divides a fleet the same way
// without asking another.
func (s Shard) Has(key types.NamespacedName) bool {
	if s.Count == 0 {
		return true
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key.Namespace + "/" + key.Name)) // never fails
	return hash.Sum64()%uint64(s.Count) == uint64(s.Index)
}
