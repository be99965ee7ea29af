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

// Scope selects the caches of a pass.
type Scope struct {
	// Namespaces are the namespaces to list. Empty means all of them.
	Namespaces []string
	// Names, if any, are the caches to read. Namespaces must then hold one
	// namespace, and Selector is ignored.
	Names []string
	// Selector keeps the caches whose labels it matches. If it is nil, all are
	// kept.
	Selector labels.Selector
	// Shard keeps a part of the selected caches. It has no effect on Names.
	Shard Shard
}

// Shard is part Index (from 0) of a fleet that Count processes share. The zero
// value is the whole fleet.
type Shard struct {
	Index, Count int
}

// String returns the form of the command line, such as "0/3". It is empty for the
// whole fleet.
func (s Shard) String() string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// Set parses the form of the command line.
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

// Type returns the placeholder of a value in help texts.
func (s *Shard) Type() string { return "INDEX/COUNT" }

// Has reports whether the cache belongs to this shard. It depends on namespace and
// name alone. So every process, of every release, divides a fleet in the same way
// without asking the others.
func (s Shard) Has(key types.NamespacedName) bool {
	if s.Count == 0 {
		return true
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key.Namespace + "/" + key.Name)) // never fails
	return hash.Sum64()%uint64(s.Count) == uint64(s.Index)
}
