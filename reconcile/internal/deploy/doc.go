// Package deploy tests what is shipped beside the program: the manifests, the
// pipelines, the health checks. It has no code of its own.
package deploy
