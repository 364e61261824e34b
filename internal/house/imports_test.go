package house

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write internal/house/imports.txt anew")

const importsFile = "internal/house/imports.txt"

// importsOf returns, for each package of the checkout, the packages of ours that it imports, tests
// apart.
func importsOf(all []*source) map[string][]string {
	found := map[string][]string{}
	for _, s := range all {
		if !s.test() {
			found[s.dir()] = append(found[s.dir()], s.owns()...)
		}
	}
	for dir, owns := range found {
		slices.Sort(owns)
		found[dir] = slices.Compact(owns)
	}
	return found
}

// imports.txt has a line for each package with the packages of ours that it imports, so that a new
// import shows in review. go test ./internal/house -update writes it anew.
func TestImportsListed(t *testing.T) {
	imports := importsOf(sources(t))
	var b strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&b, "%s: %s\n", dir, strings.Join(imports[dir], " "))
	}
	want := strings.ReplaceAll(b.String(), ": \n", ":\n")
	file := path.Join(root, importsFile)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	listed, is := strings.Split(string(text), "\n"), strings.Split(want, "\n")
	for _, line := range is {
		if !slices.Contains(listed, line) {
			t.Errorf("%s lacks %q", importsFile, line)
		}
	}
	for _, line := range listed {
		if !slices.Contains(is, line) {
			t.Errorf("%s has %q, which is not so any more", importsFile, line)
		}
	}
	if t.Failed() {
		t.Log("if the new imports are meant: go test ./internal/house -update")
	}
}

// Utilities stand on nothing of ours: a package of internal imports packages of internal alone.
func TestUtilitiesStandAlone(t *testing.T) {
	utilities := 0
	for dir, owns := range importsOf(sources(t)) {
		if !internals(dir) {
			continue
		}
		utilities++
		for _, own := range owns {
			if !internals(own) {
				t.Errorf("%s imports %s: put the package where its importers are", dir, own)
			}
		}
	}
	if utilities < 20 {
		t.Errorf("%d packages of internal: the test does not see them", utilities)
	}
}

// A name means one package, wherever it is imported. Commands and what only they have may share
// names with the library.
func TestPackageNames(t *testing.T) {
	named := map[string]string{}
	for _, s := range sources(t) {
		name, dir := s.syntax.Name.Name, s.dir()
		if s.test() || name == "main" {
			continue
		}
		if other, found := named[name]; found && other != dir {
			t.Errorf("%s and %s are both package %s", other, dir, name)
		}
		named[name] = dir
	}
	if len(named) < 60 {
		t.Errorf("%d packages: the test does not see them", len(named))
	}
}

// No earlier format of anything is read: until there is a release, each saved thing has one.
func TestOneFormat(t *testing.T) {
	comparison := regexp.MustCompile(`(?i)(format|version)\w*(\(\))? *(<=?|>=?) `)
	for _, s := range sources(t) {
		if s.test() || slices.ContainsFunc(outside, func(o string) bool { return within(s.dir(), o) }) {
			continue
		}
		number := 0
		for line := range strings.Lines(s.text) {
			number++
			code, _, _ := strings.Cut(line, "//")
			if comparison.MatchString(code) {
				t.Errorf("%s:%d compares a format: %s", s.path, number, strings.TrimSpace(line))
			}
		}
	}
}

// shape counts the rooms of the house, its floors, and the imports between rooms: each pair of
// rooms of which one imports the other, and how many of the pairs run upwards or along a floor.
func shape(all []*source) (rooms, storeys, arrows, up int) {
	at := func(dir string) (string, int) {
		if internals(dir) {
			return "internal", len(floors)
		}
		return roomOf(dir)
	}
	seen, pairs := map[string]bool{}, map[[2]string]bool{}
	for dir, owns := range importsOf(all) {
		from, floor := at(dir)
		if from == "" || slices.ContainsFunc(outside, func(o string) bool { return within(dir, o) }) {
			continue
		}
		seen[from] = true
		for _, own := range owns {
			to, below := at(own)
			if to == from || pairs[[2]string{from, to}] {
				continue
			}
			pairs[[2]string{from, to}] = true
			if below <= floor {
				up++
			}
		}
	}
	return len(seen), len(floors) + 1, len(pairs), up
}

// docs/packages.md says how large the house is.
func TestShape(t *testing.T) {
	rooms, storeys, arrows, up := shape(sources(t))
	if up > 0 {
		t.Errorf("%d imports run upwards or along a floor: TestFloors names them", up)
	}
	want := fmt.Sprintf("%d rooms on %d floors, with %d imports between rooms, all of which run down",
		rooms, storeys, arrows)
	page, err := os.ReadFile(path.Join(root, "docs/packages.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/packages.md does not say %q", want)
	}
}

// The table of docs/packages.md has the folders that ls shows, and no others.
func TestPackagesPage(t *testing.T) {
	page, err := os.ReadFile(path.Join(root, "docs/packages.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| \\[`([a-z]+)`\\]\\(\\.\\./([a-z]+)\\) \\|")
	listed := map[string]bool{}
	for _, found := range row.FindAllStringSubmatch(string(page), -1) {
		if found[1] != found[2] {
			t.Errorf("docs/packages.md links %s to %s", found[1], found[2])
		}
		listed[found[1]] = true
	}
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || strings.HasPrefix(name, ".") || name == "testdata" {
			continue
		}
		if !listed[name] {
			t.Errorf("docs/packages.md has no row for %s", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("docs/packages.md has a row for %s, which is not there", name)
	}
}
