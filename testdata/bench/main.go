// bench measures what passes over fleets of ClusteredCaches cost. It compares them
// with other programs that handle the same objects, and prints a Markdown table. Each
// fleet has its own control plane: etcd and an API server without controllers. So
// nothing changes while bench measures.
//
// bench measures these rows for each fleet, each in its own process:
//
//	lists          the pages that a pass reads, read and decoded, and nothing else
//	pass           clusteredcache reconcile over the converged fleet
//	diff           clusteredcache diff over the converged fleet
//	drift          clusteredcache reconcile when somebody has scaled 1 % of the StatefulSets
//	kubectl diff   kubectl diff --server-side of the children of all caches
//	kubectl apply  kubectl apply --server-side of the same children
//	per object     one GET and one dry-run apply for each of these children
//	operator       a controller-runtime operator, from its start until it has seen all caches once
//
// A round measures each row once, one after the other. So other work of the machine
// affects all rows alike. The table has medians. Before the first round, each row
// runs once through a proxy that counts requests and bytes. Another control plane
// serves to measure the creation of caches, next to a loop that sends the same
// requests.
//
// Unexpected requests are an error. Times are only reported.
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
	root     string // the directory of the repository
	programs string // the directory of our own programs, built by make bench
	assets   string // the directory of the control plane's programs
	dir      string // the directory of temporary files
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
			return fmt.Errorf("-fleets: %q is not a number of caches", text)
		}
		b.fleets = append(b.fleets, n)
	}
	readme := filepath.Join(b.root, "testdata", "bench", "README.md")
	if _, _, err := splitReadme(readme); err != nil {
		return err // better now than after the 20 minutes
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

// measure runs the whole benchmark and writes each table when it is complete.
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

// buildControlPlane builds the control plane's programs and returns their directory.
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

// own returns the path of one of our programs.
func (b *bench) own(name string) string { return filepath.Join(b.programs, name) }
