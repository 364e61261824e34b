package house

import (
	"go/ast"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A race takes two goroutines. The gate runs the race detector where code or tests start some:
// all tests of a package that does, or, where only a few tests do, those.
func TestGoroutinesAreRaced(t *testing.T) {
	apart := map[string]string{ // from the library's packages
		"attacks":         "runs that share nothing, on all cores, for minutes",
		"simulation/cost": "it measures memory, which the race detector takes",
	}
	gate, err := os.ReadFile(path.Join(root, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	raced := races(string(gate))
	if len(raced) < 4 {
		t.Fatalf("the gate races %v: the test does not see it", raced)
	}
	starts := map[string][]*source{} // the files of packages that start goroutines
	for _, s := range sources(t) {
		top, _, _ := strings.Cut(s.dir(), "/")
		if apart[s.dir()] != "" || apart[top] != "" {
			continue
		}
		if s.syntax.Name.Name != "main" && top != "service" && top != "cmd" && top != "tools" {
			starts[s.dir()] = append(starts[s.dir()], s)
		}
	}
	maps.DeleteFunc(starts, func(dir string, files []*source) bool {
		return len(starting(files)) == 0
	})
	if len(starts) < 4 {
		t.Errorf("%d packages start goroutines: the test does not see them", len(starts))
	}
	for dir, files := range starts {
		chosen, ok := raced[dir]
		switch {
		case !ok:
			t.Errorf("package %s starts goroutines: race it in .ci/run", dir)
		case chosen != nil:
			for name := range starting(files) {
				if entry.MatchString(name) && !chosen.MatchString(name) {
					t.Errorf("%s: %s starts goroutines: race it in .ci/run", dir, name)
				}
			}
			for name := range starting(slices.DeleteFunc(files, (*source).test)) {
				t.Errorf("%s: %s starts goroutines: race all of the package", dir, name)
			}
		}
	}
}

// entry matches what go test runs.
var entry = regexp.MustCompile(`^(Test|Example|Fuzz)`)

// races returns the packages that a script runs with the race detector, each with the pattern
// that chooses among its tests, or nil for all.
func races(script string) map[string]*regexp.Regexp {
	raced := map[string]*regexp.Regexp{}
	for line := range strings.Lines(script) {
		arguments, ok := strings.CutPrefix(strings.TrimSpace(line), "go test -race ")
		if !ok {
			continue
		}
		var chosen *regexp.Regexp
		if _, pattern, ok := strings.Cut(arguments, "-run '"); ok {
			pattern, _, _ = strings.Cut(pattern, "'")
			chosen = regexp.MustCompile(pattern)
		}
		for _, argument := range strings.Fields(arguments) {
			if argument == "." || strings.HasPrefix(argument, "./") {
				raced[path.Clean(argument)] = chosen
			}
		}
	}
	return raced
}

// starting returns the names of a package's functions that start goroutines or run next to
// others, by themselves or through others of them.
func starting(files []*source) map[string]bool {
	names := map[string]bool{}
	for before := -1; before < len(names); {
		before = len(names)
		functions(files, func(_ *source, f *ast.FuncDecl, _ string) {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					names[f.Name.Name] = true
				case *ast.CallExpr:
					switch called := n.Fun.(type) {
					case *ast.Ident:
						if names[called.Name] {
							names[f.Name.Name] = true
						}
					case *ast.SelectorExpr:
						switch called.Sel.Name {
						case "Go", "Parallel", "RunParallel":
							names[f.Name.Name] = true
						}
					}
				}
				return true
			})
		})
	}
	return names
}
