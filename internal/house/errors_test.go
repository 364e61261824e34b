package house

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// oneKind has the names under which an error would be of a kind that has a name already.
var oneKind = map[string]string{
	"ErrRandomness": "ErrRandom", "ErrEntropy": "ErrRandom", "ErrRand": "ErrRandom",
	"ErrParameter": "ErrConfig", "ErrParameters": "ErrConfig", "ErrOption": "ErrConfig",
	"ErrOptions": "ErrConfig", "ErrArgument": "ErrConfig", "ErrInvalid": "ErrConfig",
	"ErrSize": "ErrLength",
}

// Errors that can be tested for are called Err…, one name a kind, and their text begins
// with the package.
func TestErrors(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		if s.test() || s.syntax.Name.Name == "main" {
			continue
		}
		for _, d := range s.syntax.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i >= len(v.Values) {
						continue
					}
					text, isError := errorText(v.Values[i])
					if !isError {
						continue
					}
					seen++
					switch {
					case !strings.HasPrefix(name.Name, "Err") && !strings.HasPrefix(name.Name, "err"):
						t.Errorf("%s: an error is called %s", s.at(name), name.Name)
					case oneKind[name.Name] != "":
						t.Errorf("%s: %s is %s elsewhere", s.at(name), name.Name, oneKind[name.Name])
					case s.public() && name.IsExported() && !strings.HasPrefix(text, s.syntax.Name.Name+": "):
						t.Errorf("%s: the text of %s does not begin with the package", s.at(name), name.Name)
					}
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d errors: the test does not see them", seen)
	}
}

// errorText is the text of errors.New or the format of fmt.Errorf.
func errorText(e ast.Expr) (text string, isError bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "New" && f.Sel.Name != "Errorf" {
		return "", false
	}
	if from := typeName(f.X); from != "errors" && from != "fmt" {
		return "", false
	}
	return literal(call.Args[0]), true
}

// literal is the text of a string literal, or of several that are added.
func literal(e ast.Expr) string {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		return literal(sum.X) + literal(sum.Y)
	}
	if x, ok := e.(*ast.BasicLit); ok {
		text, _ := strconv.Unquote(x.Value)
		return text
	}
	return ""
}

// One type says what is wrong with a job: job.ConfigError. Others that name a field, give a reason
// and advise are about something else.
func TestOneConfigError(t *testing.T) {
	others := map[string]string{
		"privacy.ConfigError": "fields of a release, and what is asked of the accountant: both know no job",
		"sidecar.faultJSON":   "any error, as other languages get it",
	}
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			fields := map[string]bool{}
			for _, f := range structure.Fields.List {
				for _, name := range f.Names {
					fields[name.Name] = true
				}
			}
			name := s.dir() + "." + spec.Name.Name
			if fields["Reason"] && fields["Advice"] && (fields["Field"] || fields["Path"]) {
				seen[name] = true
				if others[name] == "" && name != "job.ConfigError" {
					t.Errorf("%s: %s is job.ConfigError once more", s.at(spec), name)
				}
			}
			return true
		})
	}
	for name := range others {
		if !seen[name] {
			t.Errorf("%s is gone: it needs no reason to stay", name)
		}
	}
	if !seen["job.ConfigError"] {
		t.Error("the test does not see job.ConfigError")
	}
}

// A map made to be ranged over would choose which of several errors is told by chance: a list has
// an order.
func TestRangesHaveOrder(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if r, ok := n.(*ast.RangeStmt); ok && isMap(r.X) {
				t.Errorf("%s: a range over a map that is written there", s.at(r))
			}
			return true
		})
	}
}

func isMap(e ast.Expr) bool {
	c, ok := e.(*ast.CompositeLit)
	if !ok {
		return false
	}
	_, ok = c.Type.(*ast.MapType)
	return ok
}
