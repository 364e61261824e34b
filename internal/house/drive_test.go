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

// Package host has the loops around a lead and around a part in real time. Who calls Tick of a
// drive.Lead otherwise, or Advance of a drive.Part, is a world in virtual time, or cheats.
func TestLoops(t *testing.T) {
	calls := map[string]struct {
		arguments int
		may       string // who may call it
	}{
		"Tick":    {1, "host drive/jobtest attacks/rounds simulation"},
		"Advance": {0, "host drive/jobtest drive/partytest attacks/rounds simulation"},
	}
	seen := make(map[string]string) // folders, by call
	for _, s := range sources(t) {
		if s.test() || s.dir() == "drive" || !imports(s, module+"/drive") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			x, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, known := calls[x.Sel.Name]
			if !known || len(call.Args) != of.arguments {
				return true
			}
			seen[x.Sel.Name] += s.dir() + " "
			if !slices.Contains(strings.Fields(of.may), s.dir()) {
				t.Errorf("%s: a loop around package drive: package host has it", s.at(x))
			}
			return true
		})
	}
	for name, of := range calls {
		for dir := range strings.FieldsSeq(of.may) {
			if !slices.Contains(strings.Fields(seen[name]), dir) {
				t.Errorf("%s calls no %s: take it off the list", dir, name)
			}
		}
	}
}

// imports reports whether a file imports a package.
func imports(s *source, path string) bool {
	return slices.ContainsFunc(s.syntax.Imports, func(i *ast.ImportSpec) bool {
		return i.Path.Value == `"`+path+`"`
	})
}
