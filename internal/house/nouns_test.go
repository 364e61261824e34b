package house

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// nouns are those that meant several things once: what each means now, wherever it is exported as a
// type, and the packages that do.
var nouns = []struct{ noun, means, folders string }{
	{"Config", "what the sides of a protocol agree on before they begin",
		"oblivious oneshot protocol"},
	{"Member", "one of the committee: of its process, of its protocol",
		". oneshot service/party"},
	{"Options", "what one side may choose for itself",
		"attacks drive/jobtest host protocol/conform service/door service/node service/page " +
			"service/runner simulation/crowd training"},
	{"Party", "one whose vectors are summed: of its process, of its protocol",
		"drive/jobtest oneshot protocol service/party"},
	{"Round", "one round of a job: what it gave; what it spends", "accounting job"},
}

// A noun has one meaning: those of nouns are types of the packages listed, and of no other.
func TestNouns(t *testing.T) {
	found := map[string][]string{}
	for _, s := range sources(t) {
		if s.test() || !s.public() || outsideHouse(s.dir()) {
			continue
		}
		for _, d := range s.syntax.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				// Another name of a type, as the root has some, is not another type.
				if ts, ok := spec.(*ast.TypeSpec); ok && !ts.Assign.IsValid() {
					found[ts.Name.Name] = append(found[ts.Name.Name], s.dir())
				}
			}
		}
	}
	for _, n := range nouns {
		slices.Sort(found[n.noun])
		if got := strings.Join(found[n.noun], " "); got != n.folders {
			t.Errorf("%s is %s in %s; it is a type in %s", n.noun, n.means, n.folders, got)
		}
	}
}

// outsideHouse reports whether a folder is next to the house.
func outsideHouse(dir string) bool {
	return slices.ContainsFunc(outside, func(o string) bool { return within(dir, o) })
}
