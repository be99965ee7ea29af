package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/clusteredcache/reconcile/observe"
)

// passFlags are the arguments of every command that makes a pass.
type passFlags struct {
	command    string
	connection connectionFlags
	// own and connecting are the two groups of flags in the help text.
	own, connecting *pflag.FlagSet

	names         []string
	namespaces    []string
	allNamespaces bool
	selectorText  string
	selector      labels.Selector
	shard         observe.Shard

	concurrency int
	reportFlags
}

// reportFlags choose the formats and the style of the reports.
type reportFlags struct {
	formats     []format // the values that -o accepts
	outputTexts []string
	outputs     []output
	color       string
	verbose     bool
}

func newPassFlags(command string) passFlags {
	return passFlags{command: command, own: newFlags(command), connecting: newFlags("connection"), reportFlags: reportFlags{formats: passFormats}}
}

// bindScope declares the flags that choose the caches.
func (o *passFlags) bindScope() {
	fs := o.own
	fs.StringSliceVarP(&o.namespaces, "namespace", "n", nil, "`NAMESPACE` to look in (repeatable)")
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Look in all namespaces")
	fs.StringVarP(&o.selectorText, "selector", "l", "", "Only ClusteredCaches whose labels match `QUERY`, such as a=b,c!=d")
	fs.Var(&o.shard, "shard", "Only the part `INDEX/COUNT` of the ClusteredCaches, such as 0/3, when COUNT processes share a fleet")
}

// bindRest declares the common flags that follow a command's own. The argument
// is the description of --verbose.
func (o *passFlags) bindRest(verbose string) {
	fs := o.own
	fs.IntVar(&o.concurrency, "concurrency", 10, "Work on `N` ClusteredCaches at the same time")
	fs.StringArrayVarP(&o.outputTexts, "output", "o", nil, "Report as "+formatNames(o.formats)+", to stdout or a file: `FORMAT[=FILE]` (repeatable; default text)")
	fs.StringVar(&o.color, "color", "auto", "Use colours `WHEN`: auto (obeys NO_COLOR), always or never")
	fs.BoolVarP(&o.verbose, "verbose", "v", false, verbose)
	o.connection.bind(o.connecting)
}

// parse reads args. It checks the common contradictions first, then those of the
// command's own flags. Its errors are usageErrors or pflag.ErrHelp.
func (o *passFlags) parse(args []string, ofCommand func() []contradiction) error {
	all := newFlags(o.command)
	all.AddFlagSet(o.own)
	all.AddFlagSet(o.connecting)
	return parseArgs(o.command, all, args, func() error {
		o.names = all.Args()
		return firstOf(slices.Concat(o.contradictions(), ofCommand()))
	}, o.complete)
}

// complete checks single flags and fills in the fields derived from them.
func (o *passFlags) complete() error {
	for _, name := range o.names {
		if validation.IsDNS1123Subdomain(name) != nil {
			return fmt.Errorf("%q cannot be the name of a ClusteredCache: pass the name alone, and its namespace with -n", name)
		}
	}
	for _, name := range o.namespaces {
		if err := checkNamespace(name); err != nil {
			return err
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
	outputs, err := parseOutputs(o.formats, o.outputTexts)
	o.outputs = outputs
	return err
}

// checkNamespace refuses a value of -n that no namespace can have as its name.
func checkNamespace(name string) error {
	if validation.IsDNS1123Label(name) != nil {
		return fmt.Errorf("-n: %q cannot be the name of a namespace", name)
	}
	return nil
}

// unique returns the values sorted, each once. The order on the command line has
// no meaning.
func unique(values []string) []string {
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values)
}

// contradiction is a combination of flags that a command must refuse.
type contradiction struct {
	found    bool
	sentence string
}

// firstOf returns the first contradiction that was found, as an error.
func firstOf(list []contradiction) error {
	for _, c := range list {
		if c.found {
			return errors.New(c.sentence)
		}
	}
	return nil
}

// contradictions lists those of the common flags.
func (o *passFlags) contradictions() []contradiction {
	named := len(o.names) > 0
	return []contradiction{
		{o.own.Changed("namespace") && len(o.namespaces) == 0, "-n: the namespace is empty"},
		{o.allNamespaces && len(o.namespaces) > 0, "-A and -n contradict: choose all namespaces or the named ones"},
		{named && o.selectorText != "", "NAME and -l contradict: choose ClusteredCaches by name or by label"},
		{named && o.allNamespaces, "NAME and -A contradict: a name means one ClusteredCache in one namespace"},
		{named && len(unique(o.namespaces)) > 1, "NAME with more than one -n: a name means one ClusteredCache in one namespace"},
		{named && o.shard.Count > 0, "NAME and --shard contradict: choose ClusteredCaches by name or by shard"},
		{o.concurrency < 1, "--concurrency must be at least 1"},
		{!slices.Contains([]string{"auto", "always", "never"}, o.color), "--color must be auto, always or never"},
	}
}
