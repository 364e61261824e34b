package job

import (
	"fmt"
	"go/ast"
	goformat "go/format"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// withComments gives the fields of the types in a Go file the comments that the table has for
// them.
func withComments(present []byte) ([]byte, error) {
	fileset := token.NewFileSet()
	syntax, err := parser.ParseFile(fileset, "", present, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	comments := commentsOf(reflect.TypeFor[Job](), "", map[string]string{})
	lines := strings.Split(string(present), "\n")
	insert := map[int]string{} // before a line, from 0
	ast.Inspect(syntax, func(n ast.Node) bool {
		declared, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		for _, f := range declared.Type.(*ast.StructType).Fields.List {
			text, known := comments[declared.Name.Name+"."+f.Names[0].Name]
			if !known {
				continue
			}
			at := fileset.Position(f.Pos()).Line - 1
			if f.Doc != nil {
				for i := fileset.Position(f.Doc.Pos()).Line - 1; i < at; i++ {
					lines[i] = "\x00"
				}
			}
			insert[at] = text
		}
		return true
	})
	var b strings.Builder
	for i, line := range lines {
		if text, ok := insert[i]; ok {
			for _, part := range fold(text, 95) {
				fmt.Fprintf(&b, "\t// %s\n", part)
			}
		}
		if line != "\x00" {
			b.WriteString(line + "\n")
		}
	}
	return goformat.Source([]byte(strings.TrimRight(b.String(), "\n") + "\n"))
}

// commentsOf tells the comments of a type's fields, by the names of both, and of the types in it.
func commentsOf(of reflect.Type, at string, all map[string]string) map[string]string {
	fields := slices.Collect(Fields())
	for i := range of.NumField() {
		f := of.Field(i)
		path, inner := join(at, snake(f.Name)), f.Type
		if inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			path, inner = path+"[]", inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == of.PkgPath() {
			commentsOf(inner, path, all)
			continue
		}
		for _, row := range fields {
			if row.Path == path {
				all[of.Name()+"."+f.Name] = row.Sentence + " " + domain(row)
			}
		}
	}
	return all
}

// domain says in sentences which values a field takes, and which it has where none is given. A
// type of a programming language says the rest.
func domain(f Field) string {
	var text string
	switch {
	case f.Range == "":
	case slices.Contains([]Kind{Text, Texts, Word}, f.Kind):
		text = "Values: " + f.Range + ". "
	case f.Unit != "":
		text = "Range: " + f.Range + " (" + f.Unit + "). "
	default:
		text = "Range: " + f.Range + ". "
	}
	switch {
	case f.Required:
		text += "Required."
	case f.Default != "":
		text += "Default: " + f.Default + "."
	}
	return strings.TrimSpace(text)
}

// fold breaks a text between words into lines of at most this many characters.
func fold(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
