package resources

import (
	"fmt"
	"strconv"
	"strings"

	v1 "example.com/clusteredcache/api/v1"
)

// NodesServiceName returns the name of the governing Service of a cache.
func NodesServiceName(cacheName string) string {
	return v1.NodesServicePrefix + cacheName
}

// ClaimName returns the name that the StatefulSet controller gives to the claim of a
// node.
func ClaimName(cacheName string, ordinal int) string {
	return fmt.Sprintf("%s-%s-%d", v1.ClaimName, cacheName, ordinal)
}

// SelectorLabels returns the labels that select the pods of a cache. They depend only
// on its name, because a StatefulSet's selector cannot be changed.
func SelectorLabels(cacheName string) map[string]string {
	return map[string]string{
		v1.NameLabel:     v1.NameValue,
		v1.InstanceLabel: cacheName,
	}
}

// Port returns the port where the nodes of the cache listen.
func Port(cache *v1.ClusteredCache) int32 {
	if cache.Spec.Port != 0 {
		return cache.Spec.Port
	}
	return profileOf(cache).port
}

// Nodes returns the stable addresses, as host:port, of this many nodes in order. The
// hosts are without cluster domain, which only the cluster knows. The resolver of
// every pod completes them.
func Nodes(cache *v1.ClusteredCache, replicas int32) []string {
	nodes := make([]string, 0, max(replicas, 0))
	for ordinal := range replicas {
		nodes = append(nodes, nodeAddress(cache, strconv.Itoa(int(ordinal))))
	}
	return nodes
}

func nodeAddress(cache *v1.ClusteredCache, ordinal string) string {
	return fmt.Sprintf("%s-%s.%s.%s.svc:%d",
		cache.Name, ordinal, NodesServiceName(cache.Name), cache.Namespace, Port(cache))
}

// NodeName returns the name of a StatefulSet's node with this ordinal.
func NodeName(statefulSet string, ordinal int32) string {
	return fmt.Sprintf("%s-%d", statefulSet, ordinal)
}

// Ordinal returns the number at the end of the name of a node or claim. It returns -1
// for a name without number.
func Ordinal(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}
