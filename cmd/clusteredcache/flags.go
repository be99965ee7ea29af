package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
)

// reconcileFlags are the arguments of reconcile.
type reconcileFlags struct {
	connection connectionFlags
	// own and connecting are the two groups of the help text.
	own, connecting *pflag.FlagSet

	names         []string
	namespaces    []string
	allNamespaces bool
	selectorText  string
	selector      labels.Selector

	wait        bool
	timeout     time.Duration
	linger      time.Duration
	concurrency int
	failOn      string
	yes         bool

	outputTexts []string
	outputs     []output
	color       string
	verbose     bool
}

func newReconcileFlags() *reconcileFlags {
	o := &reconcileFlags{own: newFlags("reconcile"), connecting: newFlags("connection")}
	fs := o.own
	fs.StringSliceVarP(&o.namespaces, "namespace", "n", nil, "`NAMESPACE` to look in (repeatable)")
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Look in all namespaces")
	fs.StringVarP(&o.selectorText, "selector", "l", "", "Only ClusteredCaches whose labels match `QUERY`, such as a=b,c!=d")
	fs.BoolVar(&o.wait, "wait", false, "Repeat passes until every cache has settled or is stalled")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "Give up waiting after this long; 0: never (with --wait)")
	fs.DurationVar(&o.linger, "linger", 0, "Repeat passes until everything has settled, but for at most this long since the start; what is then under way is no failure")
	fs.IntVar(&o.concurrency, "concurrency", 10, "Work on `N` ClusteredCaches at the same time")
	fs.StringVar(&o.failOn, "fail-on", string(failOnStalled), "`STATE` that makes the exit status 3: stalled (failed too), or failed")
	fs.BoolVarP(&o.yes, "yes", "y", false, "Do not ask before changing anything")
	fs.StringArrayVarP(&o.outputTexts, "output", "o", nil, "Report as text or json, to stdout or a file: `FORMAT[=FILE]` (repeatable; default text)")
	fs.StringVar(&o.color, "color", "auto", "Colours `WHEN`: auto, always or never; auto obeys NO_COLOR")
	fs.BoolVarP(&o.verbose, "verbose", "v", false, "Report status writes and the number of requests; log more")
	o.connection.bind(o.connecting)
	return o
}

// parseReconcile reads args. Its errors are usageErrors, or pflag.ErrHelp.
func parseReconcile(args []string) (*reconcileFlags, error) {
	o := newReconcileFlags()
	all := newFlags("reconcile")
	all.AddFlagSet(o.own)
	all.AddFlagSet(o.connecting)
	err := all.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return nil, err
	}
	if err == nil {
		o.names = all.Args()
		err = o.complete()
	}
	if err != nil {
		return nil, &usageError{"reconcile", err}
	}
	return o, nil
}

// complete checks the flags and fills in what follows from them.
func (o *reconcileFlags) complete() error {
	for _, rule := range contradictions {
		if rule.broken(o) {
			return errors.New(rule.sentence)
		}
	}
	for _, name := range o.names {
		if validation.IsDNS1123Subdomain(name) != nil {
			return fmt.Errorf("%q cannot be the name of a ClusteredCache: pass the name, and its namespace with -n", name)
		}
	}
	for _, name := range o.namespaces {
		if validation.IsDNS1123Label(name) != nil {
			return fmt.Errorf("-n: %q cannot be the name of a namespace", name)
		}
	}
	if _, err := clientcmd.ParseTimeout(o.connection.overrides.Timeout); err != nil {
		return fmt.Errorf("--request-timeout %s: %w", o.connection.overrides.Timeout, err)
	}
	o.names = unique(o.names)
	o.namespaces = unique(o.namespaces)
	if o.selectorText != "" {
		selector, err := labels.Parse(o.selectorText)
		if err != nil {
			return fmt.Errorf("-l %q: %w", o.selectorText, err)
		}
		o.selector = selector
	}
	outputs, err := parseOutputs(o.outputTexts)
	o.outputs = outputs
	return err
}

// unique sorts values and leaves each once: the order they are given in says
// nothing.
func unique(values []string) []string {
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values)
}

// contradictions are the flags that cannot be meant as they stand, in the
// order in which they are told.
var contradictions = []struct {
	broken   func(*reconcileFlags) bool
	sentence string
}{
	{func(o *reconcileFlags) bool { return o.own.Changed("namespace") && len(o.namespaces) == 0 }, "-n: the namespace is empty"},
	{func(o *reconcileFlags) bool { return o.allNamespaces && len(o.namespaces) > 0 },
		"-A and -n contradict: all namespaces, or those named"},
	{func(o *reconcileFlags) bool { return len(o.names) > 0 && o.selectorText != "" },
		"NAME and -l contradict: the ClusteredCaches of these names, or of these labels"},
	{func(o *reconcileFlags) bool { return len(o.names) > 0 && o.allNamespaces },
		"NAME and -A contradict: a name means one ClusteredCache in one namespace"},
	{func(o *reconcileFlags) bool { return len(o.names) > 0 && len(unique(o.namespaces)) > 1 },
		"NAME with more than one -n: a name means one ClusteredCache in one namespace"},
	{func(o *reconcileFlags) bool { return o.wait && o.own.Changed("linger") },
		"--wait and --linger contradict: --wait insists that everything settles, --linger does not"},
	{func(o *reconcileFlags) bool { return !o.wait && o.own.Changed("timeout") },
		"--timeout needs --wait: one pass has no timeout (--request-timeout is for single requests)"},
	{func(o *reconcileFlags) bool { return o.concurrency < 1 }, "--concurrency must be at least 1"},
	{func(o *reconcileFlags) bool { return o.timeout < 0 }, "--timeout must not be negative"},
	{func(o *reconcileFlags) bool { return o.linger < 0 }, "--linger must not be negative"},
	{func(o *reconcileFlags) bool {
		return !slices.Contains([]failOn{failOnStalled, failOnFailed}, failOn(o.failOn))
	}, "--fail-on must be stalled or failed"},
	{func(o *reconcileFlags) bool { return !slices.Contains([]string{"auto", "always", "never"}, o.color) },
		"--color must be auto, always or never"},
}
