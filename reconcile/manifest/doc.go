// Package manifest reads files: the ClusteredCaches in them, and the ConfigMaps and
// Namespaces that count as if they were applied. It asks no cluster.
//
// A file that cannot be read as manifests is an error of the whole. A
// ClusteredCache that cannot be used is a Document with an error, and the others
// go on. Decoding is as strict as a server that validates fields strictly.
package manifest
