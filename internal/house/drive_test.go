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

// Package host alone has the loop around a part in real time: what calls Advance of a drive.Part
// otherwise is a world in virtual time, or cheats.
func TestOnePartLoop(t *testing.T) {
	may := map[string]string{
		"host":                "the loop",
		"drive/jobtest":       "worlds of tests",
		"drive/partytest":     "a party of a coordinator that cheats",
		"simulation/scenario": "virtual time",
		"attacks/rounds":      "parties of a server that cheats",
	}
	seen := make(map[string]bool)
	for _, s := range sources(t) {
		if s.test() || s.dir() == "drive" || !imports(s, module+"/drive") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) > 0 { // that of a drive.Lead takes the time
				return true
			}
			if x, ok := call.Fun.(*ast.SelectorExpr); ok && x.Sel.Name == "Advance" {
				if seen[s.dir()] = true; may[s.dir()] == "" {
					t.Errorf("%s: a loop around a part: package host has it", s.at(x))
				}
			}
			return true
		})
	}
	for dir := range may {
		if !seen[dir] {
			t.Errorf("%s calls no Advance of a part: take it off the list", dir)
		}
	}
}

// imports reports whether a file imports a package.
func imports(s *source, path string) bool {
	return slices.ContainsFunc(s.syntax.Imports, func(i *ast.ImportSpec) bool {
		return i.Path.Value == `"`+path+`"`
	})
}
