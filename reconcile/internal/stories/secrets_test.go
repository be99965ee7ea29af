package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/faults"
	"example.com/clusteredcache/reconcile/model"
)

// canary is in everything that nobody may see.
const canary = "canary-7f3a"

const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// What is in Secrets, in kubectl's copy of an object, in variables that others
// set, in ConfigMaps, in tokens and in the address of the server: no command
// prints it in any format, to any stream, and neither Events nor the status
// have it.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Create(&corev1.Secret{ObjectMeta: w.Meta("secret"), StringData: map[string]string{"password": canary + "-secret"}})
	w.Create(&corev1.ConfigMap{ObjectMeta: w.Meta("cfg"), Data: map[string]string{"a": canary + "-config"}})
	w.Cache(`metadata: {annotations: {`+lastAppliedAnnotation+`: '{"spec":{"token":"`+canary+`-applied"}}'}}`, `
spec:
  config: {name: cfg}
  podTemplate: {spec: {containers: [{name: cache, env: [
    {name: FROM_SECRET, valueFrom: {secretKeyRef: {name: secret, key: password}}},
    {name: LEVEL, value: info}]}]}}
`)
	w.Settle()
	told := &listener{World: w, program: world.Program(t), dir: t.TempDir()}
	told.listen("reconcile")

	// Others set variables: one of their own, and one in the place of ours.
	w.Patch(w.StatefulSet(), `{"metadata":{"annotations":{"`+lastAppliedAnnotation+`":"`+canary+`-child"}}}`)
	sts := w.StatefulSet()
	before := sts.DeepCopy()
	own := &sts.Spec.Template.Spec.Containers[0]
	own.Env = append(own.Env, corev1.EnvVar{Name: "THEIRS", Value: canary + "-env"})
	for i := range own.Env {
		if own.Env[i].Name == "LEVEL" {
			own.Env[i].Value = canary + "-taken"
		}
	}
	sts.Spec.Template.Spec.Containers = append(sts.Spec.Template.Spec.Containers, corev1.Container{Name: "theirs", Image: "x", Env: []corev1.EnvVar{{Name: "A", Value: canary + "-sidecar"}}})
	if err := w.Env.Client.Patch(t.Context(), sts, client.StrategicMergeFrom(before), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	w.Edit(`metadata: {annotations: {` + lastAppliedAnnotation + `: ` + canary + `-again}}`)
	told.listen("diff")
	told.listen("diff", "-f", told.manifests())
	told.listen("status")
	told.listen("reconcile")
	told.listen("reconcile", "--wait", "--timeout", "1s")

	// The server refuses, and its words are told.
	w.Edit(`spec: {podTemplate: {"spec":{"containers":[{"name":"cache","env":[{"name":"FROM SECRET=","valueFrom":{"secretKeyRef":{"name":"secret","key":"password"}}}],"envFrom":[{}]}]}}}`)
	told.listen("diff")
	told.listen("reconcile")

	for _, e := range told.events() {
		told.check("an Event", e)
	}
	status, err := json.Marshal(w.Stored().Status)
	if err != nil {
		t.Fatal(err)
	}
	told.check("the status", string(status))
	if told.hidden < 5 {
		t.Errorf("%d values are not shown: the test does not test", told.hidden)
	}
}

// listener runs the program and reads all that it says.
type listener struct {
	*world.World
	program, dir string
	hidden       int // how often it said that a value is not shown
}

func (l *listener) listen(command string, args ...string) {
	l.Helper()
	proxy := l.Proxy(func(int, *http.Request) faults.Fault { return faults.Fault{} })
	server := strings.Replace(proxy.Config.Host, "http://", "http://user:"+canary+"-address@", 1)
	formats := []string{"text", "json", "markdown", "name"}
	if command == "status" {
		formats = formats[:2]
	}
	args = append([]string{command, "-n", l.NS, "--server", server, "--token", canary + "-token", "-v"}, args...)
	for _, format := range formats {
		args = append(args, "-o", format+"="+filepath.Join(l.dir, format))
	}
	run := exec.Command(l.program, append(args, "-o", "text")...)
	run.Env = []string{"HOME=" + l.dir, "PASSWORD=" + canary + "-environment"}
	var output bytes.Buffer
	run.Stdout, run.Stderr = &output, &output
	var exit *exec.ExitError
	if err := run.Run(); err != nil && !errors.As(err, &exit) || exit != nil && exit.ExitCode() == 2 {
		l.Fatalf("%v\n%s", err, &output)
	}
	name := fmt.Sprint(args)
	l.check("a stream of "+name, output.String())
	for _, format := range formats {
		content, err := os.ReadFile(filepath.Join(l.dir, format))
		if err != nil {
			l.Fatal(err)
		}
		l.check(format+" of "+name, string(content))
	}
}

func (l *listener) check(where, what string) {
	l.Helper()
	l.hidden += strings.Count(what, "(not shown)")
	for _, line := range strings.Split(what, "\n") {
		if strings.Contains(line, canary) {
			l.Errorf("%s: %s", where, line)
		}
	}
}

// manifests is a file that a pipeline might hold, with what is secret in it.
func (l *listener) manifests() string {
	path := filepath.Join(l.dir, "manifests.yaml")
	content := `
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {password: ` + canary + `-file}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cfg}
data: {a: ` + canary + `-file}
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: cache, annotations: {` + lastAppliedAnnotation + `: ` + canary + `-file}}
spec: {version: 1.6.39, size: 2, config: {name: cfg}}
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}

// events are all of the namespace, as they are stored.
func (l *listener) events() []string {
	var all []string
	for _, e := range l.StoredEvents() {
		raw, err := json.Marshal(&e)
		if err != nil {
			l.Fatal(err)
		}
		all = append(all, string(raw))
	}
	return all
}

// A ServiceAccount named in the overlay puts no token into the nodes, and a token
// asked for there is refused: what runs stays as it is.
func TestNodesGetNoToken(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Create(&corev1.ServiceAccount{ObjectMeta: w.Meta("mighty")})
	w.Cache(`spec: {podTemplate: {"spec":{"serviceAccountName":"mighty"}}}`)
	w.Settle()
	node := w.Node(0)
	if node.Spec.ServiceAccountName != "mighty" || len(node.Spec.Volumes) > 0 {
		t.Errorf("ServiceAccount %q, volumes %+v", node.Spec.ServiceAccountName, node.Spec.Volumes)
	}
	before := w.StatefulSet().ResourceVersion
	for _, overlay := range []string{
		`{"spec":{"serviceAccountName":"mighty","automountServiceAccountToken":true}}`,
		`{"spec":{"serviceAccountName":"mighty","volumes":[{"name":"t","projected":{"sources":[{"serviceAccountToken":{"path":"token"}}]}}]}}`,
	} {
		w.Edit("spec: {podTemplate: " + overlay + "}")
		w.Pass().Wants(model.Stalled, v1.ReasonInvalidOverlay).Says("nodes get no credentials for the API server")
	}
	if after := w.StatefulSet().ResourceVersion; after != before {
		t.Errorf("the StatefulSet was written: %q, then %q", before, after)
	}
}
