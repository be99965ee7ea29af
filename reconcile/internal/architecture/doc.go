// Package architecture has only tests. They check that the imports between packages
// match the picture in reconcile/doc.go.
package architecture
