// Package deploy has only tests. They check what is shipped beside the program: the
// manifests, the pipelines and the health checks. It stands below reconcile,
// because reconcile/internal/testenv cannot be imported from deploy.
package deploy
