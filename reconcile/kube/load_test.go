package kube

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is a kubeconfig with one context, cluster and user, all called
// name, whose server is https://<name>:6443.
func kubeconfig(name, current, namespace string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %[2]q
clusters: [{name: %[1]s, cluster: {server: "https://%[1]s:6443"}}]
users: [{name: %[1]s-user, user: {token: t}}]
contexts: [{name: %[1]s, context: {cluster: %[1]s, user: %[1]s-user, namespace: %[3]q}}]
`, name, current, namespace)
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// world is a directory with everything that settings may come from.
type world struct {
	dir string
	env map[string]string
}

func (w world) file(name string) string { return filepath.Join(w.dir, name) }

func (w world) sources() sources {
	return sources{
		getenv:  func(k string) string { return w.env[k] },
		home:    w.file("home/.kube/config"),
		account: w.file("account"),
	}
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{dir: t.TempDir(), env: map[string]string{}}
	write(t, w.file("a"), kubeconfig("a", "a", "shop"))
	write(t, w.file("b"), kubeconfig("b", "b", ""))
	write(t, w.file("nocurrent"), kubeconfig("nc", "", ""))
	write(t, w.file("dangling"), kubeconfig("d", "gone", ""))
	write(t, w.file("broken"), "{")
	write(t, w.file("empty"), "")
	return w
}

func (w world) withHome(t *testing.T) world {
	write(t, w.file("home/.kube/config"), kubeconfig("home", "home", ""))
	return w
}

func (w world) withPod(t *testing.T) world {
	w.env["KUBERNETES_SERVICE_HOST"], w.env["KUBERNETES_SERVICE_PORT"] = "fd00::1", "443"
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:ops:clusteredcache"}`))
	write(t, w.file("account/token"), "h."+claims+".s")
	write(t, w.file("account/namespace"), "ops\n")
	return w
}

var loadTests = []struct {
	name      string
	flag, env string // file names in the world, joined by ","
	home, pod bool
	overrides clientcmd.ConfigOverrides
	want      string // Target.String() and the namespace
	wantErr   string
}{
	{name: "the flag wins over everything", flag: "a", env: "b", home: true, pod: true,
		want: "https://a:6443 (context a, user a-user), shop"},
	{name: "KUBECONFIG wins over pod and home", env: "b", home: true, pod: true,
		want: "https://b:6443 (context b, user b-user), default"},
	{name: "pod wins over home", home: true, pod: true,
		want: "https://[fd00::1]:443 (in cluster, user system:serviceaccount:ops:clusteredcache), ops"},
	{name: "home is last", home: true,
		want: "https://home:6443 (context home, user home-user), default"},
	{name: "nothing at all", wantErr: "no cluster is configured: pass --kubeconfig or --server, set KUBECONFIG"},

	{name: "flag names a missing file", flag: "gone", env: "a", home: true, wantErr: "--kubeconfig names "},
	{name: "flag names a broken file", flag: "broken", env: "a", wantErr: "--kubeconfig cannot be used: error loading config file"},
	{name: "flag names a directory", flag: ".", wantErr: "--kubeconfig cannot be used"},
	{name: "KUBECONFIG names only missing files", env: "gone,gone2", home: true, pod: true,
		wantErr: "KUBECONFIG names "},
	{name: "KUBECONFIG names no file", env: ",", home: true, wantErr: "KUBECONFIG names no file"},
	{name: "one of two files is missing", env: "gone,a",
		want: "https://a:6443 (context a, user a-user), shop"},
	{name: "one of two files is broken", env: "a,broken", wantErr: "KUBECONFIG cannot be used"},
	{name: "two files merge, the first current-context counts", env: "b,a",
		want: "https://b:6443 (context b, user b-user), default"},
	{name: "two files merge, the context of the second", env: "b,a",
		overrides: clientcmd.ConfigOverrides{CurrentContext: "a"},
		want:      "https://a:6443 (context a, user a-user), shop"},
	{name: "empty file", env: "empty", wantErr: "has no current context: pass --context (it has none)"},
	{name: "no current context", env: "nocurrent", pod: true,
		wantErr: "has no current context: pass --context (it has nc)"},
	{name: "no current context, but --context", env: "nocurrent",
		overrides: clientcmd.ConfigOverrides{CurrentContext: "nc"},
		want:      "https://nc:6443 (context nc, user nc-user), default"},
	{name: "current context is not there", env: "dangling", wantErr: `the current context "gone" is not in KUBECONFIG`},
	{name: "unknown --context", flag: "a",
		overrides: clientcmd.ConfigOverrides{CurrentContext: "x"},
		wantErr:   `there is no context "x" in --kubeconfig`},
	{name: "unknown --user", flag: "a",
		overrides: clientcmd.ConfigOverrides{Context: clientcmdapi.Context{AuthInfo: "x"}},
		wantErr:   `auth info "x" does not exist`},
	{name: "--context means a kubeconfig even in a pod", home: true, pod: true,
		overrides: clientcmd.ConfigOverrides{CurrentContext: "home"},
		want:      "https://home:6443 (context home, user home-user), default"},
	{name: "--context without a kubeconfig", pod: true,
		overrides: clientcmd.ConfigOverrides{CurrentContext: "home"},
		wantErr:   "--context, --cluster and --user need a kubeconfig"},
	{name: "--server and --token need no file",
		overrides: clientcmd.ConfigOverrides{
			ClusterInfo: clientcmdapi.Cluster{Server: "https://s:1"},
			AuthInfo:    clientcmdapi.AuthInfo{Token: "x"},
		},
		want: "https://s:1 (user --token), default"},
	{name: "--as", flag: "a",
		overrides: clientcmd.ConfigOverrides{AuthInfo: clientcmdapi.AuthInfo{Impersonate: "jane"}},
		want:      "https://a:6443 (context a, user jane, impersonated by a-user), shop"},
	{name: "--as and --token", flag: "a",
		overrides: clientcmd.ConfigOverrides{AuthInfo: clientcmdapi.AuthInfo{Impersonate: "jane", Token: "x"}},
		want:      "https://a:6443 (context a, user jane, impersonated by --token), shop"},
	{name: "a password in the server address is not shown",
		overrides: clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: "https://u:secret@s:1"}},
		want:      "https://u:xxxxx@s:1, default"},
}

// A flag wins over KUBECONFIG, and that over the pod; what is given and cannot be
// used is an error.
func TestLoad(t *testing.T) {
	for _, tc := range loadTests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			if tc.home {
				w.withHome(t)
			}
			if tc.pod {
				w.withPod(t)
			}
			flag := ""
			if tc.flag != "" {
				flag = w.file(tc.flag)
			}
			if tc.env != "" {
				var paths []string
				for name := range strings.SplitSeq(tc.env, ",") {
					if name != "" {
						name = w.file(name)
					}
					paths = append(paths, name)
				}
				w.env["KUBECONFIG"] = strings.Join(paths, string(filepath.ListSeparator))
			}
			got, err := w.sources().load(&tc.overrides, flag)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got %v, %v, want an error with %q", got, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := got.String() + ", " + got.Namespace; s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
		})
	}
}

// Load itself reads the process's environment.
func TestLoadEnvironment(t *testing.T) {
	w := newWorld(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	t.Setenv("KUBECONFIG", w.file("a"))
	got, err := Load(&clientcmd.ConfigOverrides{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if got.InCluster || got.Context != "a" {
		t.Errorf("got %s, in cluster: %v; want context a", got, got.InCluster)
	}
}

func TestLoadConnection(t *testing.T) {
	t.Run("limits and agent", func(t *testing.T) {
		got, err := newWorld(t).withHome(t).sources().load(&clientcmd.ConfigOverrides{}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got.Config.QPS != -1 || got.Config.Timeout != RequestTimeout || got.Config.UserAgent != "clusteredcache" {
			t.Errorf("QPS %v, timeout %v, agent %q", got.Config.QPS, got.Config.Timeout, got.Config.UserAgent)
		}
	})
	t.Run("--request-timeout", func(t *testing.T) {
		for value, want := range map[string]time.Duration{"0": 0, "2s": 2 * time.Second} {
			got, err := newWorld(t).withHome(t).sources().load(&clientcmd.ConfigOverrides{Timeout: value}, "")
			if err != nil || got.Config.Timeout != want {
				t.Errorf("%s: %v, %v", value, got.Config.Timeout, err)
			}
		}
	})
	// The kubelet renews it while a pass runs.
	t.Run("the pod's token stays a path", func(t *testing.T) {
		w := newWorld(t).withPod(t)
		got, err := w.sources().load(&clientcmd.ConfigOverrides{}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got.Config.BearerTokenFile != w.file("account/token") {
			t.Errorf("token file %q", got.Config.BearerTokenFile)
		}
	})
	t.Run("--token replaces the pod's token", func(t *testing.T) {
		o := clientcmd.ConfigOverrides{AuthInfo: clientcmdapi.AuthInfo{Token: "mine"}}
		got, err := newWorld(t).withPod(t).sources().load(&o, "")
		if err != nil {
			t.Fatal(err)
		}
		if got.Config.BearerToken != "mine" || got.Config.BearerTokenFile != "" {
			t.Errorf("token %q, file %q", got.Config.BearerToken, got.Config.BearerTokenFile)
		}
	})
}
