package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// hollowed returns a parser for all files of a load. It empties the functions of code outside the
// folder: reading those of the standard library and of other modules takes longer than reading
// ours. What analyzers have to know of them, as of fmt.Printf, is in lists of their own.
func hollowed(config packages.Config, patterns []string) (
	func(*token.FileSet, string, []byte) (*ast.File, error), error,
) {
	config.Mode = packages.NeedName | packages.NeedImports | packages.NeedDeps
	loaded, err := packages.Load(&config, patterns...)
	if err != nil {
		return nil, err
	}
	names := map[string]string{} // of packages, by path
	for p := range packages.Postorder(loaded) {
		for path, imported := range p.Imports {
			names[path] = imported.Name
		}
	}
	return func(files *token.FileSet, name string, src []byte) (*ast.File, error) {
		f, err := parser.ParseFile(files, name, src, parser.AllErrors|parser.ParseComments|
			parser.SkipObjectResolution)
		if err == nil && !strings.HasPrefix(name, config.Dir+"/") {
			hollow(f, names)
		}
		return f, err
	}, nil
}

// hollow has each function of a file return at once, and each import that only bodies use import
// nothing.
func hollow(f *ast.File, names map[string]string) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		if results := fn.Type.Results; results != nil {
			for _, r := range results.List {
				if len(r.Names) == 0 {
					r.Names = []*ast.Ident{{NamePos: r.Pos(), Name: "_"}}
				}
			}
		}
		at := fn.Body.Lbrace
		fn.Body.List = []ast.Stmt{&ast.ReturnStmt{Return: at}}
	}
	used := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	for _, i := range f.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		switch {
		case err != nil, i.Name != nil && (i.Name.Name == "." || used[i.Name.Name]),
			i.Name == nil && used[names[path]]:
		default:
			i.Name = &ast.Ident{NamePos: i.Path.Pos(), Name: "_"}
		}
	}
}
