// meter runs a program and writes its cost to a file:
//
//	meter FILE PROGRAM [ARGUMENT...]
//
// meter is a process between the benchmark and the program. On Linux, the peak memory
// of a child starts with the memory of its parent. The benchmark needs more memory
// than the programs that it measures. meter needs about 5 MiB.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"example.com/clusteredcache/testdata/bench/cost"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: meter FILE PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "meter:", err)
		os.Exit(1)
	}
}

func run(file string, argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // fails only when the program has already ended
		}
	}()
	err := cmd.Wait()
	wall := time.Since(start)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return err
	}
	state := cmd.ProcessState
	usage := state.SysUsage().(*syscall.Rusage)
	memory := int64(usage.Maxrss)
	if runtime.GOOS == "linux" {
		memory *= 1024 // Maxrss is in KiB on Linux, in bytes elsewhere
	}
	data, err := json.Marshal(cost.Cost{
		Wall: wall, CPU: state.UserTime() + state.SystemTime(), Memory: memory, Exit: state.ExitCode(),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
