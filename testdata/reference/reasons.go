package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// reasonTables has a table for each group of constants whose names begin with
// Reason. The comment of the group comes first. The comment of a constant gives its
// row: "ReasonName: what is so. To do: what to do."
func reasonTables(goFile string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), goFile, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var tables strings.Builder
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		rows, err := reasonRows(group)
		if err != nil {
			return "", fmt.Errorf("%s: %w", goFile, err)
		}
		if rows != "" {
			fmt.Fprintf(&tables, "%s\n\n| reason | what is so | what to do |\n|---|---|---|\n%s\n", cell(group.Doc.Text()), rows)
		}
	}
	if tables.Len() == 0 {
		return "", fmt.Errorf("%s has no constants whose names begin with Reason", goFile)
	}
	return tables.String(), nil
}

func reasonRows(group *ast.GenDecl) (string, error) {
	var rows strings.Builder
	for _, spec := range group.Specs {
		constant := spec.(*ast.ValueSpec)
		name := constant.Names[0].Name
		if !strings.HasPrefix(name, "Reason") {
			continue
		}
		value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		comment := cell(constant.Doc.Text())
		about, named := strings.CutPrefix(comment, name+": ")
		what, todo, complete := strings.Cut(about, " To do: ")
		if !named || !complete {
			return "", fmt.Errorf("the comment of %s must be %q", name, name+": what is so. To do: what to do.")
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", value, sentence(what), sentence(todo))
	}
	return rows.String(), nil
}

// sentence begins with a capital letter, unless it begins with code.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:]
}
