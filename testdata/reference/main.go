// reference writes the tables that are made from the API into a Markdown file:
// the fields of a CRD, and the reasons of a Go file. Each table stands between two
// comments, such as <!-- fields --> and <!-- end of fields -->.
//
//	reference CRD GO-FILE MARKDOWN
package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(crd, goFile, markdown string) error {
	fields, err := fieldTable(crd)
	if err != nil {
		return err
	}
	reasons, err := reasonTables(goFile)
	if err != nil {
		return err
	}
	document, err := os.ReadFile(markdown)
	if err != nil {
		return err
	}
	for name, table := range map[string]string{"fields": fields, "reasons": reasons} {
		if document, err = put(document, name, table); err != nil {
			return fmt.Errorf("%s: %w", markdown, err)
		}
	}
	return os.WriteFile(markdown, document, 0o644)
}

// put replaces what stands between the two comments of that name.
func put(document []byte, name, table string) ([]byte, error) {
	begin, end := []byte("<!-- "+name+" -->\n"), []byte("<!-- end of "+name+" -->\n")
	before, rest, found := bytes.Cut(document, begin)
	_, after, ended := bytes.Cut(rest, end)
	if !found || !ended {
		return nil, fmt.Errorf("it needs the lines %q and %q", begin, end)
	}
	return slices.Concat(before, begin, []byte(table), end, after), nil
}
