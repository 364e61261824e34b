package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Tests of the default suite assert no time, since a time depends on the processor and on
// what else the machine does. A comparison with what time.Since or Sub returns, or with what
// testing.Benchmark measured, stands in a benchmark, or in a test that the flag -timing runs
// (package suite).
func TestTimes(t *testing.T) {
	functions := 0
	for _, s := range sources(t) {
		if !s.test() {
			continue
		}
		timed := callsTiming(s.syntax)
		for _, d := range s.syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || strings.HasPrefix(f.Name.Name, "Benchmark") {
				continue
			}
			functions++
			if timed[f.Name.Name] {
				continue
			}
			for _, at := range timesCompared(f.Body) {
				t.Errorf("%s: %s compares a time: measure in a benchmark, or behind suite.OnlyTiming",
					s.at(at), f.Name.Name)
			}
		}
	}
	if functions < 1000 {
		t.Errorf("%d functions of tests: the test does not see them", functions)
	}
}

// The test finds what it is for.
func TestTimesFound(t *testing.T) {
	for text, found := range map[string]bool{
		"if time.Since(start) > limit { }":               true,
		"took := time.Since(start); if took < a { }":     true,
		"d := time.Now().Sub(start); _ = d >= 2*e":       true,
		"r := testing.Benchmark(f); _ = r.NsPerOp() > 9": true,
		"t.Log(time.Since(start))":                       false,
		"if time.Now().After(deadline) { }":              false,
		"took := time.Since(start); t.Log(took)":         false,
	} {
		got := timesCompared(block(t, text))
		if len(got) > 0 != found {
			t.Errorf("%s: found is %v, want %v", text, len(got) > 0, found)
		}
	}
}

// callsTiming returns the functions of a file that the flag -timing runs.
func callsTiming(file *ast.File) map[string]bool {
	out := map[string]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name := called(call); name == "suite.OnlyTiming" || name == "suite.Timing" {
				out[f.Name.Name] = true
			}
			return true
		})
	}
	return out
}

// called is the function that a call names, with its package or receiver.
func called(call *ast.CallExpr) string {
	x, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if from, ok := x.X.(*ast.Ident); ok {
		return from.Name + "." + x.Sel.Name
	}
	return "." + x.Sel.Name
}

// timesCompared returns the comparisons with a time that was measured, or with a variable
// that holds one.
func timesCompared(body *ast.BlockStmt) (out []ast.Node) {
	held := map[string]bool{}
	measures := func(e ast.Node) (found bool) {
		ast.Inspect(e, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.CallExpr:
				name := called(x)
				found = found || name == "time.Since" || name == "testing.Benchmark" ||
					strings.HasSuffix(name, ".Sub") && isNow(x.Fun.(*ast.SelectorExpr).X)
			case *ast.Ident:
				found = found || held[x.Name]
			}
			return !found
		})
		return found
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			for i, left := range x.Lhs {
				name, ok := left.(*ast.Ident)
				if ok && len(x.Lhs) == len(x.Rhs) && measures(x.Rhs[i]) {
					held[name.Name] = true
				}
			}
		case *ast.BinaryExpr:
			switch x.Op {
			case token.LSS, token.GTR, token.LEQ, token.GEQ:
				if measures(x.X) || measures(x.Y) {
					out = append(out, x)
				}
			}
		}
		return true
	})
	return out
}

// isNow reports whether an expression is a call of time.Now.
func isNow(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && called(call) == "time.Now"
}

// block parses statements.
func block(t *testing.T, text string) *ast.BlockStmt {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+text+"\n}", 0)
	if err != nil {
		t.Fatal(err)
	}
	return file.Decls[0].(*ast.FuncDecl).Body
}
