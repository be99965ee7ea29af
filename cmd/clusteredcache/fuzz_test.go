package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"example.com/clusteredcache/reconcile"
)

// FuzzFlags checks that every command line either works or is refused with a
// usageError. The input holds one argument per line.
func FuzzFlags(f *testing.F) {
	for _, seed := range []string{
		"a", "a\n-n\nshop", "-A", "--wait\n--timeout\n1m", "--linger=1s", "--shard\n0/3", "--shard=99999999999999999999/3",
		"-o\njson=x\n-otext", "-l\na in (b,c),!d", "--request-timeout=1", "--color=\x1b[31m", "-f\n-", "--\n-a", "-", "-h",
		"--concurrency=-1", "-n=\xff", "--server\n://", "-vyA", "--kubeconfig=", "--timeout=9223372036854775807h", "--as\n\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		reconciling, err := parseReconcile(args)
		wantUsable(t, &reconciling.passFlags, err)
		diffing, err := parseDiff(args)
		wantUsable(t, &diffing.passFlags, err)
		looking, err := parseStatus(args)
		wantUsable(t, &looking.passFlags, err)
		_, err = parseRender(args)
		wantUsable(t, nil, err)
	})
}

// wantUsable checks what the rest of the program relies on.
func wantUsable(t *testing.T, o *passFlags, err error) {
	t.Helper()
	var usage *usageError
	switch {
	case err != nil && !errors.Is(err, pflag.ErrHelp) && !errors.As(err, &usage):
		t.Errorf("the error is a %T: %v", err, err)
	case err == nil && o != nil && (o.concurrency < 1 || len(o.outputs) == 0 || o.shard.Index < 0 || o.shard.Index > o.shard.Count):
		t.Errorf("accepted: %+v", o)
	}
}

// FuzzRender checks that every file is either rendered or refused with a message.
func FuzzRender(f *testing.F) {
	samples, err := filepath.Glob("../../testdata/scenarios/*/cache.yaml")
	if err != nil || len(samples) == 0 {
		f.Fatal(samples, err)
	}
	for _, path := range samples {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	head := "apiVersion: cache.example.com/v1\nkind: ClusteredCache\nmetadata: {name: c}\n"
	for _, seed := range []string{
		"", "---\n---\n", "null", "[]", "{", "&a [*a]", "kind: List\nitems: [[]]", "kind: XList\nitems: [{kind: ConfigMap, apiVersion: v1}]",
		`{"kind":"Namespace"}{"kind":"Namespace"}`, head, head + "spec: null", head + "spec: {version: 1}", head + "spec: {version: '1', size: -1}",
		head + "spec: {version: '1', storage: {size: 1e999999999}, engine: Custom, image: x}", head + "spec: {version: '1', args: ['-m', '']}",
		head + "spec: {version: '1', resources: {limits: {memory: -1}}}", head + "spec: {version: '1', podTemplate: {spec: {containers: 1}}}",
		head + "spec: {version: '1', port: 99999, suspend: true}\n---\n" + head, head + "status: {conditions: [{}]}\nspec: {version: a}",
		head + "spec: {version: '1', config: {name: x}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: 1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), []string{"render", "-f", "-"}, process{
			stdin: bytes.NewReader(content), stdout: &stdout, stderr: &stderr, render: reconcile.Render,
		})
		switch {
		case status == exitDone && stdout.Len() == 0, status == exitUsage && (stdout.Len() > 0 || stderr.Len() == 0),
			status == exitPartial && stderr.Len() == 0, status != exitDone && status != exitUsage && status != exitPartial:
			t.Errorf("exit status %d\nstdout %s\nstderr %s", status, &stdout, &stderr)
		}
	})
}
