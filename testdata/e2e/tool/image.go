package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

type object = map[string]any

// image writes an image of one layer in the format of `docker save`. It adds the
// libraries of programs that are linked dynamically.
func image(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	out := flags.String("o", "", "file to write")
	name := flags.String("name", "", "full name of the image, with tag")
	entrypoint := flags.String("entrypoint", "", "command to start")
	if err := flags.Parse(args); err != nil {
		return err
	}
	layer, err := layerOf(flags.Args())
	if err != nil {
		return err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(layer))
	process := object{"Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, "Labels": object{"name": *name}}
	if *entrypoint != "" {
		process["Entrypoint"] = strings.Fields(*entrypoint)
	}
	config, err := json.Marshal(object{"architecture": runtime.GOARCH, "os": "linux", "config": process,
		"rootfs": object{"type": "layers", "diff_ids": []string{"sha256:" + digest}}})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]object{{"Config": "config.json", "RepoTags": []string{*name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []file{{"config.json", 0o644, config}, {"layer.tar", 0o644, layer}, {"manifest.json", 0o644, manifest}} {
		if err := f.write(w); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(*out, b.Bytes(), 0o644)
}

type file struct {
	path    string
	mode    int64
	content []byte
}

func (f file) write(w *tar.Writer) error {
	if err := w.WriteHeader(&tar.Header{Name: f.path, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
		return err
	}
	_, err := w.Write(f.content)
	return err
}

// layerOf returns a layer with files, given as FILE or FILE=PATH, and their libraries.
func layerOf(given []string) ([]byte, error) {
	sources := map[string]string{} // maps a path in the image to a path here
	for _, g := range given {
		source, target, named := strings.Cut(g, "=")
		if !named {
			target = source
		}
		sources[path.Clean("/"+target)] = source
		libraries(source, sources)
	}
	targets := make([]string, 0, len(sources))
	for target := range sources {
		targets = append(targets, target)
	}
	slices.Sort(targets)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, directory := range []string{"dev/", "etc/", "proc/", "sys/", "tmp/"} {
		if err := w.WriteHeader(&tar.Header{Name: directory, Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	for _, target := range targets {
		source, err := filepath.EvalSymlinks(sources[target])
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		if err := (file{strings.TrimPrefix(target, "/"), 0o755, content}).write(w); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

var library = regexp.MustCompile(`(?m)^\s*(?:(\S+) => )?(/\S+) \(0x`)

// libraries adds the libraries that the loader finds here for the program. A static
// program has none.
func libraries(program string, sources map[string]string) {
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return
	}
	for _, m := range library.FindAllStringSubmatch(string(out), -1) {
		target := m[2]
		if m[1] != "" && !strings.HasPrefix(m[1], "/") {
			target = "/lib/x86_64-linux-gnu/" + m[1]
			if runtime.GOARCH == "arm64" {
				target = "/lib/aarch64-linux-gnu/" + m[1]
			}
		}
		sources[target] = m[2]
	}
}
