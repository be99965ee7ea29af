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

// RequestTimeout limits one request to the API server, unless the overrides set
// another limit.
const RequestTimeout = 30 * time.Second

// sources are the places, besides flags, where settings come from.
type sources struct {
	getenv func(string) string
	// home is the kubeconfig that is used if no other is configured.
	home string
	// account is the directory with the ServiceAccount token of a pod.
	account string
}

// Load finds the cluster. Flags win over KUBECONFIG. KUBECONFIG wins over the pod
// that we run in, and the pod wins over ~/.kube/config. Single overrides, such as a
// server or a token, change what was found. Several files in KUBECONFIG merge as in
// kubectl.
//
// A setting that exists but cannot be used is an error. Load does not try the next
// place then, because that may be another cluster.
func Load(overrides *clientcmd.ConfigOverrides, kubeconfigFlag string) (*Target, error) {
	return sources{
		getenv:  os.Getenv,
		home:    clientcmd.RecommendedHomeFile,
		account: "/var/run/secrets/kubernetes.io/serviceaccount",
	}.load(overrides, kubeconfigFlag)
}

// load does what Load describes, with these sources.
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
	// Without HOME the path is relative. It would then find any file of that name
	// below the current directory.
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

// namesEntry reports whether the overrides name an entry of a kubeconfig. Such
// overrides cannot be meant for the pod's own settings.
func namesEntry(o *clientcmd.ConfigOverrides) bool {
	return o.CurrentContext != "" || o.Context.Cluster != "" || o.Context.AuthInfo != ""
}

// fromFiles reads kubeconfig files. At least one of them must exist. The argument
// setting is the flag or variable that named them.
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

// resolve makes a Target of one context of raw. The argument origin describes where
// raw came from.
func resolve(raw *clientcmdapi.Config, origin string, o *clientcmd.ConfigOverrides) (*Target, error) {
	name, err := contextName(raw, origin, o)
	if err != nil {
		return nil, err
	}
	picked := clientcmd.NewNonInteractiveClientConfig(*raw, name, o, nil)
	config, err := picked.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("context %q of %s has no server address: add one to its cluster, or pass --server", name, origin)
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

// contextName returns the name of the context to use. It is empty if flags alone
// choose the server.
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

// finish adds to t and its config the settings that are the same for every source.
func finish(config *rest.Config, o *clientcmd.ConfigOverrides, t Target) *Target {
	if o.Timeout == "" {
		config.Timeout = RequestTimeout
	}
	// The server's priority and fairness limits the rate. A client-side limit in
	// addition would only make a pass slower.
	config.QPS = -1
	config.UserAgent = "clusteredcache"
	if o.AuthInfo.Token != "" {
		// Without this, the token file would win over the token that was requested.
		config.BearerToken, config.BearerTokenFile = o.AuthInfo.Token, ""
	}
	t.Config = config
	t.Clock = &Clock{}
	t.Server = withoutPassword(config.Host)
	t.Identity = identity(t.Identity, o, config)
	return &t
}
