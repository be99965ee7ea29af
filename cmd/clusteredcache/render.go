package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/manifest"
)

// renderFlags are the arguments of render.
type renderFlags struct {
	own       *pflag.FlagSet
	files     []string
	namespace string
}

func newRenderFlags() *renderFlags {
	o := &renderFlags{own: newFlags("render")}
	o.own.StringArrayVarP(&o.files, "filename", "f", nil, "Read manifests from `FILE`: a file, a directory or - for stdin (repeatable)")
	o.own.StringVarP(&o.namespace, "namespace", "n", "default", "`NAMESPACE` for manifests that name none")
	return o
}

// parseRender reads args. Its errors are usageErrors or pflag.ErrHelp.
func parseRender(args []string) (*renderFlags, error) {
	o := newRenderFlags()
	err := parseArgs("render", o.own, args, func() error {
		return firstOf(slices.Concat([]contradiction{
			{o.own.NArg() > 0, "render takes no arguments: pass each file with its own -f"},
			{len(o.files) == 0, "-f is needed: render reads manifests, not a cluster"},
			{o.namespace == "", "-n: the namespace is empty"},
		}, unreadable(o.files)))
	}, func() error {
		return checkNamespace(o.namespace)
	})
	return o, err
}

// runRender prints the children of the ClusteredCaches in manifests. It works
// without a cluster and without a kubeconfig.
func runRender(_ context.Context, args []string, p process) error {
	flags, err := parseRender(args)
	if err != nil {
		return err
	}
	manifests, err := manifest.Read(flags.files, p.stdin, flags.namespace)
	if err != nil {
		return err
	}
	stderr := &console{w: p.stderr}
	saySkipped(stderr, manifests)
	if err := requireCaches(manifests, flags.files); err != nil {
		return err
	}
	rendered := p.render(manifests)
	if err := writeYAML(p.stdout, rendered); err != nil {
		stderr.say("clusteredcache: " + err.Error())
		return statusError(exitIncomplete)
	}
	if !sayFailures(stderr, rendered) {
		return statusError(exitPartial)
	}
	return nil
}

// writeYAML writes all objects as one stream of YAML documents.
func writeYAML(w io.Writer, rendered []reconcile.Rendered) error {
	var b bytes.Buffer
	for _, r := range rendered {
		for _, object := range r.Objects {
			document, err := yaml.Marshal(object)
			if err != nil {
				return fmt.Errorf("encoding an object of ClusteredCache %s/%s: %w", r.Namespace, r.Name, err)
			}
			if b.Len() > 0 {
				b.WriteString("---\n")
			}
			b.Write(document)
		}
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the objects: %w", err)
	}
	return nil
}

// sayFailures says which caches could not be rendered in full, and why. It
// returns true when every cache was.
func sayFailures(c *console, rendered []reconcile.Rendered) bool {
	failed := 0
	for _, r := range rendered {
		if r.Err == nil {
			continue
		}
		failed++
		for _, err := range unjoin(r.Err) {
			c.say(fmt.Sprintf("clusteredcache: %s/%s: %s", r.Namespace, r.Name, strings.TrimSpace(err.Error())))
		}
	}
	if failed == 0 {
		return true
	}
	c.say(fmt.Sprintf("%d of %d ClusteredCaches cannot be rendered in full.", failed, len(rendered)))
	return false
}

// unjoin returns the parts of a joined error, so that each gets its own line.
func unjoin(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

func helpRender(w io.Writer) {
	_, _ = fmt.Fprintf(w, `Print the children of the ClusteredCaches in manifests as YAML, as reconcile
would apply them to an empty cluster. No cluster is contacted.

Usage:
  clusteredcache render -f FILE [FLAGS]

Exit status:
  0  everything is printed
  2  the command line or a file cannot be used
  3  some ClusteredCaches cannot be rendered in full; the others are printed
  5  the output could not be written

Flags:
%s`, newRenderFlags().own.FlagUsagesWrapped(100))
}
