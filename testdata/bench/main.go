// bench measures what passes over fleets of ClusteredCaches cost, next to what
// else could be done with the same objects, and prints a Markdown table. It runs
// on control planes of its own (etcd and the API server, no controllers: nothing
// moves while it measures), one for each fleet.
//
// Of each fleet these rows are measured, all by processes of their own:
//
//	lists          the pages that a pass reads, read and decoded, and nothing else
//	pass           clusteredcache reconcile over the converged fleet
//	diff           clusteredcache diff over the converged fleet
//	drift          clusteredcache reconcile when somebody has scaled 1 % of the StatefulSets
//	kubectl diff   kubectl diff --server-side of the children of all caches
//	kubectl apply  kubectl apply --server-side of them
//	per object     one GET and one dry-run apply for each of them
//	operator       a controller-runtime operator, from its start until it has seen all caches once
//
// A round measures each row once, one after the other, so that what else the
// machine does meets all of them; the table has medians. Requests and bytes are
// counted in a further run of each row, through a proxy, before the first round.
// On a control plane of its own the creation of caches is measured, next to a
// loop that sends the same requests.
//
// Requests must be what they should be. Times are reported, never judged.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
)

// bench is one run of the benchmark.
type bench struct {
	root     string // of the repository
	programs string // directory of our own ones, built by make bench
	assets   string // directory of the control plane's programs
	dir      string // of files that go away with us
	fleets   []int
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("bench: ")
	crlog.SetLogger(logr.Discard())
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	fleets := flags.String("fleets", "100 1000 10000", "numbers of caches, the smallest first")
	if err := flags.Parse(args); err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	b := &bench{programs: filepath.Dir(own)}
	b.root = filepath.Join(b.programs, "..", "..")
	for _, text := range strings.Fields(*fleets) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-fleets: %q is no number of caches", text)
		}
		b.fleets = append(b.fleets, n)
	}
	readme := filepath.Join(b.root, "testdata", "bench", "README.md")
	if _, _, err := splitReadme(readme); err != nil {
		return err // before the 20 minutes, not after
	}
	if b.dir, err = os.MkdirTemp("", "clusteredcache-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	var table strings.Builder
	if err := b.measure(ctx, io.MultiWriter(os.Stdout, &table)); err != nil {
		return err
	}
	return writeReadme(readme, table.String())
}

// measure does everything, and writes each table when it is complete.
func (b *bench) measure(ctx context.Context, w io.Writer) error {
	var err error
	if b.assets, err = b.buildControlPlane(ctx); err != nil {
		return err
	}
	perChild, err := b.comparison(ctx)
	if err != nil {
		return err
	}
	start, size, err := b.start(ctx)
	if err != nil {
		return err
	}
	var fleets []fleetResult
	for i, n := range b.fleets {
		log.Printf("a fleet of %d", n)
		if err := b.onControlPlane(ctx, func(c *controlPlane) error {
			if i == 0 {
				writeHead(w, c.version)
			}
			f, err := b.fleet(ctx, c, n)
			fleets = append(fleets, f)
			return err
		}); err != nil {
			return fmt.Errorf("fleet of %d: %w", n, err)
		}
		fleets[i].write(w)
	}
	writeGrowth(w, fleets)
	log.Print("creation")
	var made creationResult
	if err := b.onControlPlane(ctx, func(c *controlPlane) (err error) {
		made, err = b.creation(ctx, c, min(creationSize, b.fleets[len(b.fleets)-1]))
		return err
	}); err != nil {
		return fmt.Errorf("creation: %w", err)
	}
	made.write(w)
	say(w, "To compare a child with what it should be takes %s (`BenchmarkConverged`, in memory). `clusteredcache version` takes %s;\n"+
		"the program has %s.\n", short(perChild), short(start), volume(size))
	return nil
}

// buildControlPlane returns the directory of the control plane's programs.
func (b *bench) buildControlPlane(ctx context.Context) (string, error) {
	build := exec.CommandContext(ctx, "sh", filepath.Join(b.root, "testdata", "controlplane", "build.sh"))
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("building the control plane: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (b *bench) product() string { return filepath.Join(b.root, "bin", "clusteredcache") }

// own is one of our programs.
func (b *bench) own(name string) string { return filepath.Join(b.programs, name) }
