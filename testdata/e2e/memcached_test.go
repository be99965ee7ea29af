package e2e

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 5 * time.Second

// ask sends one command to a memcached and returns the whole answer.
func ask(ctx context.Context, node, command string) (string, error) {
	connection, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", node)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(connection, command+"quit\r\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(connection)
	return string(answer), err
}

// keys returns enough keys that every node has some. nodeOf spreads them over the nodes
// as client libraries do.
func keys() []string {
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf("key-%d", i))
	}
	return all
}

func nodeOf(key string, nodes []string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return nodes[int(h.Sum32())%len(nodes)]
}

func writeKeys(t *testing.T, nodes []string) {
	t.Helper()
	used := map[string]bool{}
	for _, key := range keys() {
		node := nodeOf(key, nodes)
		used[node] = true
		value := "value of " + key
		answer, err := ask(t.Context(), node, fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value))
		if err != nil || answer != "STORED\r\n" {
			t.Fatalf("set %s on %s: %q, %v", key, node, answer, err)
		}
	}
	if len(used) != len(nodes) {
		t.Fatalf("the keys are on %d of %d nodes", len(used), len(nodes))
	}
}

// found returns how many keys the nodes have.
func found(t *testing.T, nodes []string) int {
	t.Helper()
	n := 0
	for _, key := range keys() {
		answer, err := ask(t.Context(), nodeOf(key, nodes), "get "+key+"\r\n")
		if err != nil {
			t.Fatalf("get %s: %v", key, err)
		}
		if strings.Contains(answer, "value of "+key+"\r\n") {
			n++
		}
	}
	return n
}

// watcher asks all nodes again and again. It remembers how many were silent at the
// same time.
type watcher struct {
	mu    sync.Mutex
	most  int
	which map[string]bool
	stop  context.CancelFunc
	ended chan struct{}
}

func watch(t *testing.T, nodes []string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{which: map[string]bool{}, stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			w.poll(ctx, nodes)
		}
	}()
	return w
}

func (w *watcher) poll(ctx context.Context, nodes []string) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var silent []string
	for _, node := range nodes {
		group.Go(func() {
			if answer, err := ask(ctx, node, "version\r\n"); err != nil || !strings.HasPrefix(answer, "VERSION ") {
				mu.Lock()
				silent = append(silent, node)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = max(w.most, len(silent))
	for _, node := range silent {
		w.which[node] = true
	}
}

// result returns how many nodes at most were silent at the same time, and how many
// different nodes were silent.
func (w *watcher) result() (most, all int) {
	w.stop()
	<-w.ended
	return w.most, len(w.which)
}
