package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/report"
)

// output is one value of -o: FORMAT[=FILE].
type output struct {
	format format
	// file is empty for stdout.
	file string
}

// style says how a report appears.
type style struct {
	preview, verbose, color bool
}

// format is one way to write a report.
type format struct {
	name  string
	write func(io.Writer, model.Fleet, style) error
}

// The formats of the commands that make a pass.
var (
	textFormat = format{"text", func(w io.Writer, f model.Fleet, s style) error {
		return report.Text(w, f, report.TextOptions{Preview: s.preview, Verbose: s.verbose, Color: s.color})
	}}
	jsonFormat = format{"json", func(w io.Writer, f model.Fleet, s style) error {
		return report.JSON(w, f, report.JSONOptions{Preview: s.preview})
	}}
	markdownFormat = format{"markdown", func(w io.Writer, f model.Fleet, s style) error {
		return report.Markdown(w, f, report.MarkdownOptions{Preview: s.preview, Verbose: s.verbose})
	}}
	nameFormat = format{"name", func(w io.Writer, f model.Fleet, s style) error {
		return report.Name(w, f, report.NameOptions{Preview: s.preview})
	}}

	// passFormats lists them in the order of the help text. The first is the
	// default.
	passFormats = []format{textFormat, jsonFormat, markdownFormat, nameFormat}
)

// formatNames lists the names in words: "text, json, markdown or name".
func formatNames(formats []format) string {
	last := len(formats) - 1
	names := make([]string, 0, last)
	for _, f := range formats[:last] {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ") + " or " + formats[last].name
}

func findFormat(formats []format, name string) (format, bool) {
	at := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if at < 0 {
		return format{}, false
	}
	return formats[at], true
}

// parseOutputs reads the values of -o. Without values the first format goes to
// stdout.
func parseOutputs(formats []format, values []string) ([]output, error) {
	if len(values) == 0 {
		return []output{{format: formats[0]}}, nil
	}
	var outputs []output
	taken := map[string]string{}
	for _, value := range values {
		name, file, isFile := strings.Cut(value, "=")
		f, known := findFormat(formats, name)
		if !known {
			return nil, fmt.Errorf("-o %s: the format must be %s", value, formatNames(formats))
		}
		if isFile && file == "" {
			return nil, fmt.Errorf("-o %s: the name of the file is missing", value)
		}
		if other, twice := taken[file]; twice {
			target := file
			if !isFile {
				target = "standard output"
			}
			return nil, fmt.Errorf("-o %s and -o %s both write to %s", other, value, target)
		}
		taken[file] = value
		if isFile {
			if err := writable(file); err != nil {
				return nil, fmt.Errorf("-o %s: %w", value, err)
			}
		}
		outputs = append(outputs, output{f, file})
	}
	return outputs, nil
}

// writable checks, before a pass changes anything, that its report can be written
// to path. It creates no file.
func writable(path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no directory %s", dir)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory", path)
	}
	const write = 2 // W_OK of access(2)
	if syscall.Access(path, write) == nil {
		return nil
	}
	if err := syscall.Access(dir, write); err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return nil
}

// write writes f to stdout or to the file of o, which gets no colours.
func (o output) write(stdout io.Writer, f model.Fleet, s style) error {
	if o.file == "" {
		if err := o.format.write(stdout, f, s); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		return nil
	}
	s.color = false
	err := replaceFile(o.file, func(w io.Writer) error { return o.format.write(w, f, s) })
	if err != nil {
		return fmt.Errorf("writing the report to %s: %w", o.file, err)
	}
	return nil
}

// replaceFile makes path hold what fill writes, or leaves it unchanged. Pipes,
// terminals and files that cannot be replaced are written in place.
func replaceFile(path string, fill func(io.Writer) error) error {
	if target, resolved := filepath.EvalSymlinks(path); resolved == nil {
		path = target
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return replaceWhole(path, fill)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return writeInto(path, os.O_WRONLY, fill)
	}
	if err = replaceWhole(path, fill); pinned(err) {
		err = writeInto(path, os.O_WRONLY|os.O_TRUNC, fill)
	}
	return err
}

// pinned reports whether err means that a file can only be written in place. It
// is mounted, like the termination log of a container, or its directory is
// read-only.
func pinned(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

// replaceWhole writes a new file and renames it to path.
func replaceWhole(path string, fill func(io.Writer) error) error {
	other := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	err := os.Remove(other)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = writeInto(other, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fill)
	if err == nil {
		err = os.Rename(other, path)
	}
	if err != nil {
		_ = os.Remove(other)
	}
	return err
}

// writeInto opens path with flag and lets fill write to it.
func writeInto(path string, flag int, fill func(io.Writer) error) error {
	file, err := os.OpenFile(path, flag, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(fill(file), file.Close())
}
