// Command platforms checks the code as compilers for other systems and processors see it.
//
//	go run -C tools ./platforms
//
// It runs the analyzers of go vet. That command compiles all that a package imports, the standard
// library too, anew for each platform: this one reads types from source, in a tenth of the time. It
// reports errors in types, findings of the analyzers and missing functions; limits that only a
// compiler knows, such as on the size of a type, are left to go build.
//
// It exits with 0 if it found nothing, with 1 if it found something, and with 2 if it could
// not find out.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// A platform says what code is compiled for, and which of our code has to compile for it. "work" is
// the library, the command and the service.
type platform struct {
	system, processor string
	patterns          []string
}

var platforms = []platform{
	{"linux", "arm64", []string{"work"}},
	{"linux", "s390x", []string{"./..."}}, // big-endian
	{"linux", "386", []string{"./..."}},   // phones and small machines have 32 bits
	{"linux", "arm", []string{"./..."}},
	{"js", "wasm", []string{".", "./protocol", "./privacy", "./oneshot"}},
}

func main() {
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		fatal(fmt.Errorf("finding the root of the repository: %w", err))
	}
	found := false
	for _, p := range platforms {
		findings, err := p.check(strings.TrimSpace(string(root)))
		if err != nil {
			fatal(err)
		}
		for _, text := range findings {
			found = true
			fmt.Printf("%s/%s: %s\n", p.system, p.processor, text)
		}
	}
	if found {
		os.Exit(1)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "platforms:", err)
	os.Exit(2)
}

// check returns what is wrong on the platform with packages of the folder, including tests, in the
// order of the text. A package and its variant with tests share files: each finding appears once.
func (p platform) check(dir string) ([]string, error) {
	config := packages.Config{
		Dir:   dir,
		Tests: true,
		Env:   append(os.Environ(), "GOOS="+p.system, "GOARCH="+p.processor, "CGO_ENABLED=0"),
	}
	parse, err := hollowed(config, p.patterns)
	if err != nil {
		return nil, err
	}
	config.Mode, config.ParseFile = packages.LoadAllSyntax, parse
	loaded, err := packages.Load(&config, p.patterns...)
	if err != nil {
		return nil, err
	}
	if len(loaded) == 0 {
		return nil, errors.New("no packages")
	}
	findings := map[string]bool{}
	for l := range packages.Postorder(loaded) {
		for _, e := range l.Errors {
			findings[e.Error()] = true
		}
	}
	if len(findings) == 0 { // what does not compile cannot be analysed
		err = analyse(loaded, findings)
	}
	return slices.Sorted(maps.Keys(findings)), err
}

// analyse adds the findings of the analyzers.
func analyse(loaded []*packages.Package, findings map[string]bool) error {
	analyzers := append([]*analysis.Analyzer{bodies}, vet...)
	graph, err := checker.Analyze(analyzers, loaded, nil)
	if err != nil {
		return err
	}
	for _, action := range graph.Roots {
		if action.Err != nil {
			return fmt.Errorf("%s: %w", action, action.Err)
		}
		for _, d := range action.Diagnostics {
			position := action.Package.Fset.Position(d.Pos)
			findings[fmt.Sprintf("%s: %s", position, d.Message)] = true
		}
	}
	return nil
}
