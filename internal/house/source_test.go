package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the directory of the module.
const root = "../.."

// module is its path.
const module = "github.com/hushsum/hushsum"

// A source is one Go file of the checkout.
type source struct {
	path    string // from the root, with slashes
	text    string
	syntax  *ast.File
	fileset *token.FileSet
}

func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s *source) example() bool { return s.test() && strings.Contains(s.path, "example") }

// dir is the package's directory from the root, "." for the root itself.
func (s *source) dir() string { return filepath.ToSlash(filepath.Dir(s.path)) }

// public reports whether others can import the package, main packages apart.
func (s *source) public() bool {
	return s.syntax.Name.Name != "main" && !strings.Contains("/"+s.path, "/internal/")
}

// at names a place for an error.
func (s *source) at(n ast.Node) string {
	p := s.fileset.Position(n.Pos())
	return s.path + ":" + strconv.Itoa(p.Line)
}

// parsed holds every Go file of the checkout but testdata.
var parsed = sync.OnceValues(func() (all []*source, err error) {
	fileset := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(fileset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		all = append(all, &source{filepath.ToSlash(relative), string(text), syntax, fileset})
		return err
	})
	return all, err
})

// sources returns every Go file of the checkout but testdata.
func sources(t *testing.T) []*source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("%d Go files: this is not the checkout", len(all))
	}
	return all
}

// functions calls visit for every function of the files, with the name of its receiver's
// type, or "".
func functions(all []*source, visit func(s *source, f *ast.FuncDecl, receiver string)) {
	for _, s := range all {
		for _, d := range s.syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			receiver := ""
			if f.Recv != nil {
				receiver = typeName(f.Recv.List[0].Type)
			}
			visit(s, f, receiver)
		}
	}
}

// typeName is the name of a receiver's type, without pointer and type parameters.
func typeName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// isReader reports whether a type is written io.Reader.
func isReader(e ast.Expr) bool {
	x, ok := e.(*ast.SelectorExpr)
	return ok && x.Sel.Name == "Reader" && typeName(x.X) == "io"
}
