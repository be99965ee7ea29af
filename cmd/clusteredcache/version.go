package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is set when a release is built (-ldflags "-X main.version=v1.2.3").
var version = "v0.0.0-dev"

func runVersion(_ context.Context, args []string, p process) error {
	fs := newFlags("version")
	err := parseArgs("version", fs, args, func() error {
		return firstOf([]contradiction{{fs.NArg() > 0, "version takes no arguments"}})
	})
	if err != nil {
		return err
	}
	info, _ := debug.ReadBuildInfo()
	if _, err := io.WriteString(p.stdout, versionText(info)); err != nil {
		return fmt.Errorf("writing the version: %w", err)
	}
	return nil
}

// versionText returns the version, the commit and the Go release. info may be
// nil.
func versionText(info *debug.BuildInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "clusteredcache %s\n", version)
	settings := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	if commit := settings["vcs.revision"]; commit != "" {
		fmt.Fprintf(&b, "commit %s", commit)
		if at := settings["vcs.time"]; at != "" {
			b.WriteString(" of " + at)
		}
		if settings["vcs.modified"] == "true" {
			b.WriteString(", modified")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return b.String()
}

func helpVersion(w io.Writer) {
	_, _ = io.WriteString(w, "Print the version, the commit it was built from, and the Go release.\n\nUsage:\n  clusteredcache version\n")
}
