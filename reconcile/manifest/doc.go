// Package manifest reads files. It returns the ClusteredCaches in them, and the
// ConfigMaps and Namespaces that count as applied. It sends no request to a
// cluster.
//
// If a file cannot be read as manifests, Read fails as a whole. A ClusteredCache
// that cannot be used is a Document with an error, and the others are not affected.
// Decoding is as strict as a server with strict field validation.
package manifest
