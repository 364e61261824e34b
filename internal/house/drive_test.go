package house

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Package drive alone decides when a step of a session or round ends, and what follows. Other
// packages do not call what does that of package protocol, but for those that decide nothing.
func TestDriveDecides(t *testing.T) {
	ends := []string{"BeginDigest", "Certificate", "EndStep", "Gather", "Invite", "Skip", "Succeed",
		"SumVector", "TakeOver"}
	may := map[string]string{
		"protocol":        "it is its own",
		"drive/partytest": "a coordinator that cheats",
		"sidecar":         "a call for each, by which a program decides for itself",
		"simulation":      "rounds of one batch, without waiting, of which the cost is measured",
		"simulation/cost": "the cost of each call is measured",
		"attacks":         "servers that cheat",
	}
	seen := 0
	for _, s := range sources(t) {
		top, _, _ := strings.Cut(s.dir(), "/")
		allowed := may[s.dir()] != "" || top == "attacks" || top == "protocol"
		if s.test() || allowed || !imports(s, module+"/protocol") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			x, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains(ends, x.Sel.Name) {
				return true
			}
			if s.dir() == "drive" {
				seen++
			} else if of, ok := x.X.(*ast.Ident); !ok || of.Name != "maps" {
				t.Errorf("%s: %s decides: package drive does", s.at(x), x.Sel.Name)
			}
			return true
		})
	}
	if seen < 5 {
		t.Errorf("package drive decides %d times: the test does not see it", seen)
	}
}

// The loop around a lead is in package host, once for real time. Worlds in virtual time have loops
// of their own.
func TestHostLeads(t *testing.T) {
	may := map[string]bool{"host": false, "drive/jobtest": false, "attacks/rounds": false,
		"simulation/scenario": false}
	for _, s := range sources(t) {
		if s.test() || !imports(s, module+"/drive") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			if x, ok := call.Fun.(*ast.SelectorExpr); ok && x.Sel.Name == "Tick" {
				if _, known := may[s.dir()]; !known {
					t.Errorf("%s: %s leads: package host does", s.at(call), s.dir())
				}
				may[s.dir()] = true
			}
			return true
		})
	}
	for dir, leads := range may {
		if !leads {
			t.Errorf("%s has no loop: it need not be listed", dir)
		}
	}
}

// imports reports whether a file imports a package.
func imports(s *source, path string) bool {
	return slices.ContainsFunc(s.syntax.Imports, func(i *ast.ImportSpec) bool {
		return i.Path.Value == `"`+path+`"`
	})
}
