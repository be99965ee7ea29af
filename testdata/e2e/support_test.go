// Package e2e runs the shipped manifests and image on a real node. run.sh starts it.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "example.com/clusteredcache/api/v1"
)

const system = "clusteredcache-system"

var (
	cluster client.Client
	// root is the directory of the repository, state the directory of this run.
	root, state string
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func connect() error {
	state = os.Getenv("E2E_STATE")
	if state == "" {
		return errors.New("run this with testdata/e2e/run.sh")
	}
	var err error
	if root, err = filepath.Abs(filepath.Join("..", "..")); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	if err := v1.AddToScheme(clientscheme.Scheme); err != nil {
		return err
	}
	cluster, err = client.New(config, client.Options{Scheme: clientscheme.Scheme})
	return err
}

// sh runs a command in a POSIX shell. The command must succeed.
func sh(t *testing.T, command string) string {
	t.Helper()
	out, status := shell(t, command)
	if status != 0 {
		t.Fatalf("exit status %d of %s\n%s", status, command, out)
	}
	return out
}

func shell(t *testing.T, command string) (string, int) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", command)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// apply applies manifests as a user would.
func apply(t *testing.T, manifests string) {
	t.Helper()
	file := filepath.Join(state, "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, "kubectl apply --server-side -f "+file)
}

// install applies deploy with components and our image, by a kustomization like a
// user's.
func install(t *testing.T, components ...string) {
	t.Helper()
	overlay := filepath.Join(state, "overlay")
	sh(t, fmt.Sprintf("rm -rf %[1]s; mkdir -p %[1]s; cp -R deploy %[1]s/deploy", overlay))
	text := "resources: [deploy]\nimages: [{name: clusteredcache, newName: clusteredcache.test/clusteredcache, newTag: '1'}]\ncomponents:\n"
	for _, c := range components {
		text += "- deploy/components/" + c + "\n"
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, "kubectl apply --server-side --force-conflicts -k "+overlay)
}

// pass starts a Job from the CronJob by hand, waits for its end and returns its
// termination message and exit status. The CronJob does not own the Job, because its
// history limit would delete the Job before the test reads it.
func pass(t *testing.T) (string, int32) {
	t.Helper()
	name := fmt.Sprintf("by-hand-%d", time.Now().UnixNano())
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name},
		Spec: get(t, system, "clusteredcache", &batchv1.CronJob{}).Spec.JobTemplate.Spec}
	if err := cluster.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	eventually(t, 4*time.Minute, "Job "+name+" ends", func() bool {
		get(t, system, name, job)
		return job.Status.Succeeded+job.Status.Failed > 0
	})
	message, status := ended(t, name)
	t.Logf("pass: exit status %d: %s", status, message)
	return message, status
}

// goodPass runs a pass that must succeed, and returns its termination message.
func goodPass(t *testing.T) string {
	t.Helper()
	message, status := pass(t)
	if status != 0 {
		t.Fatalf("a pass ended with %d:\n%s", status, sh(t, "kubectl logs -n "+system+" -l app.kubernetes.io/name=clusteredcache-reconcile --tail=20"))
	}
	return message
}

// ended returns the termination message and the exit status of a Job's pod.
func ended(t *testing.T, job string) (string, int32) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := cluster.List(t.Context(), pods, client.InNamespace(system), client.MatchingLabels{"job-name": job}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			if end := s.State.Terminated; end != nil {
				return end.Message, end.ExitCode
			}
		}
	}
	t.Fatalf("no pod of Job %s has ended", job)
	return "", 0
}

func get[T client.Object](t *testing.T, ns, name string, o T) T {
	t.Helper()
	if err := cluster.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

func cache(t *testing.T, ns, name string) *v1.ClusteredCache {
	t.Helper()
	return get(t, ns, name, &v1.ClusteredCache{})
}

// spec changes the spec of a cache by a merge patch.
func spec(t *testing.T, ns, name, patch string) {
	t.Helper()
	c := &v1.ClusteredCache{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	if err := cluster.Patch(t.Context(), c, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+patch+`}`))); err != nil {
		t.Fatal(err)
	}
}

func condition(c *v1.ClusteredCache, kind string) metav1.Condition {
	for _, condition := range c.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return metav1.Condition{}
}

func eventually(t *testing.T, within time.Duration, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !so(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s\n%s", within, what, standing())
		}
	}
}

// standing returns the state of the cluster, for a failure message.
func standing() string {
	cmd := exec.CommandContext(context.Background(), "sh", "-c",
		"kubectl get clusteredcaches,pods,jobs -A; kubectl get events -A --field-selector type=Warning | tail -n 15")
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}
