// Package architecture has tests and no code. They hold the packages to the
// picture in reconcile/doc.go: which package imports what.
package architecture
