package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	stopTimeout = 10 * time.Second
	tailLines   = 15
)

// component is a child process.
type component struct {
	name    string
	logFile string
	process *os.Process
	ended   chan struct{} // closed when the process has ended
	reason  string        // why it ended, once ended is closed
}

// startComponent runs a program in dir, with its output in dir/<name>.log, and
// reports its end to died.
func startComponent(program, dir string, died chan<- *component, args ...string) (*component, error) {
	name := filepath.Base(program)
	logFile := filepath.Join(dir, name+".log")
	output, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("create the log of %s: %w", name, err)
	}
	defer func() { _ = output.Close() }() // the child has its own copy

	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = childAttributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &component{name: name, logFile: logFile, process: cmd.Process, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		c.reason = cmd.ProcessState.String()
		close(c.ended)
		died <- c
	}()
	return c, nil
}

// stop asks the process to end, waits for it, and kills it if it takes too long.
func (c *component) stop() {
	_ = c.process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
		fmt.Fprintf(os.Stderr, "up: %s did not stop within %s and is killed\n", c.name, stopTimeout)
		_ = c.process.Kill()
		<-c.ended
	}
}

// failure describes an unexpected end, with the last lines of the log.
func (c *component) failure() error {
	log, _ := os.ReadFile(c.logFile) // without a log the error says enough
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return fmt.Errorf("%s ended (%s); the end of %s:\n%s", c.name, c.reason, c.logFile, strings.Join(lines, "\n"))
}

// portTaken tells whether another process took the port first.
func (c *component) portTaken() bool {
	log, _ := os.ReadFile(c.logFile)
	return bytes.Contains(log, []byte("address already in use"))
}
