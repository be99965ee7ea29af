package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// RequestTimeout bounds one request to the API server unless overrides say
// otherwise.
const RequestTimeout = 30 * time.Second

// sources are the places besides flags that settings come from.
type sources struct {
	getenv func(string) string
	// home is the kubeconfig that counts when nothing else does.
	home string
	// account is the directory that holds a pod's ServiceAccount token.
	account string
}

// Load finds the cluster. Flags win over KUBECONFIG, that wins over the pod
// that we run in, and that over ~/.kube/config. Single overrides (a server, a
// token) change what was found. Files of KUBECONFIG merge as kubectl merges
// them.
//
// A setting that is there but cannot be used is an error, and never a reason
// to try the next place: the next place may be another cluster.
func Load(overrides *clientcmd.ConfigOverrides, kubeconfigFlag string) (*Target, error) {
	return sources{
		getenv:  os.Getenv,
		home:    clientcmd.RecommendedHomeFile,
		account: "/var/run/secrets/kubernetes.io/serviceaccount",
	}.load(overrides, kubeconfigFlag)
}

func (s sources) load(o *clientcmd.ConfigOverrides, flag string) (*Target, error) {
	if flag != "" {
		return fromFiles([]string{flag}, "--kubeconfig", o)
	}
	if env := s.getenv(clientcmd.RecommendedConfigPathEnvVar); env != "" {
		return fromFiles(filepath.SplitList(env), clientcmd.RecommendedConfigPathEnvVar, o)
	}
	if s.inPod() && !namesEntry(o) {
		return s.fromPod(o)
	}
	// Without HOME the path is relative, and would find whatever the current
	// directory holds.
	if _, err := os.Stat(s.home); filepath.IsAbs(s.home) && !errors.Is(err, fs.ErrNotExist) {
		return fromFiles([]string{s.home}, "the default kubeconfig", o)
	}
	if namesEntry(o) {
		return nil, errors.New("--context, --cluster and --user need a kubeconfig to look them up in: pass --kubeconfig or set KUBECONFIG")
	}
	if o.ClusterInfo.Server == "" {
		return nil, errors.New("no cluster is configured: pass --kubeconfig or --server, set KUBECONFIG, or run in a pod that has a ServiceAccount token")
	}
	return resolve(clientcmdapi.NewConfig(), "the flags", o)
}

// namesEntry says whether overrides name an entry of a kubeconfig: they then
// cannot be meant for the pod's own settings.
func namesEntry(o *clientcmd.ConfigOverrides) bool {
	return o.CurrentContext != "" || o.Context.Cluster != "" || o.Context.AuthInfo != ""
}

// fromFiles reads kubeconfig files, of which at least one must exist. setting
// is what named them.
func fromFiles(paths []string, setting string, o *clientcmd.ConfigOverrides) (*Target, error) {
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == "" })
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s names no file", setting)
	}
	missing := func(p string) bool {
		_, err := os.Stat(p)
		return errors.Is(err, fs.ErrNotExist)
	}
	if !slices.ContainsFunc(paths, func(p string) bool { return !missing(p) }) {
		return nil, fmt.Errorf("%s names %s, which does not exist", setting, strings.Join(paths, " and "))
	}
	raw, err := (&clientcmd.ClientConfigLoadingRules{Precedence: paths}).Load()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", setting, err)
	}
	return resolve(raw, setting+" ("+strings.Join(paths, ", ")+")", o)
}

// resolve picks the context out of raw, which came from origin, and makes it a
// Target.
func resolve(raw *clientcmdapi.Config, origin string, o *clientcmd.ConfigOverrides) (*Target, error) {
	name, err := contextName(raw, origin, o)
	if err != nil {
		return nil, err
	}
	picked := clientcmd.NewNonInteractiveClientConfig(*raw, name, o, nil)
	config, err := picked.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("context %q of %s leads to no server: give its cluster one, or pass --server", name, origin)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", origin, err)
	}
	namespace, _, err := picked.Namespace()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", origin, err)
	}
	user := o.Context.AuthInfo
	if context := raw.Contexts[name]; user == "" && context != nil {
		user = context.AuthInfo
	}
	return finish(config, o, Target{Context: name, Identity: user, Namespace: namespace}), nil
}

// contextName is the context to use; empty when flags alone say where the
// server is.
func contextName(raw *clientcmdapi.Config, origin string, o *clientcmd.ConfigOverrides) (string, error) {
	known := "it has none"
	if len(raw.Contexts) > 0 {
		known = "it has " + strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
	}
	if name := o.CurrentContext; name != "" {
		if raw.Contexts[name] == nil {
			return "", fmt.Errorf("there is no context %q in %s: %s", name, origin, known)
		}
		return name, nil
	}
	name := raw.CurrentContext
	switch {
	case name == "" && o.ClusterInfo.Server == "" && o.Context.Cluster == "":
		return "", fmt.Errorf("%s has no current context: pass --context (%s)", origin, known)
	case name != "" && raw.Contexts[name] == nil:
		return "", fmt.Errorf("the current context %q is not in %s: pass --context (%s)", name, origin, known)
	}
	return name, nil
}

// finish adds to t and its config what does not depend on where they came from.
func finish(config *rest.Config, o *clientcmd.ConfigOverrides, t Target) *Target {
	if o.Timeout == "" {
		config.Timeout = RequestTimeout
	}
	// The server's priority and fairness decides; a client-side limit on top
	// would only slow a pass down.
	config.QPS = -1
	config.UserAgent = "clusteredcache"
	if o.AuthInfo.Token != "" {
		// A token file would win over the token that was asked for.
		config.BearerToken, config.BearerTokenFile = o.AuthInfo.Token, ""
	}
	t.Config = config
	t.Clock = &Clock{}
	t.Server = withoutPassword(config.Host)
	t.Identity = identity(t.Identity, o, config)
	return &t
}
