package simulate

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training"
)

// declaredFirst are the first lines of the files of refused calls.
const declaredFirst = `name = "study"
rounds = 4
parties.count = 6
model.name = "logistic"
world.data.rows = 40
`

// refusal is a call that makes no sense: its arguments, the lines of its file, and what it says.
type refusal struct {
	args string
	file []string
	says string
}

// readRefusals reads testdata/refusals.txt, in which $ comes before the arguments of a call, =
// before a line of the file that it names as FILE, and > before what it says.
func readRefusals(t *testing.T) (all []*refusal) {
	t.Helper()
	text, err := os.ReadFile("testdata/refusals.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "$":
			all = append(all, &refusal{args: rest})
		case "=":
			all[len(all)-1].file = append(all[len(all)-1].file, rest)
		case ">":
			all[len(all)-1].says += rest + "\n"
		}
	}
	return all
}

// goNames are the names of Go's options, which no user of the command has.
func goNames() *regexp.Regexp {
	names := []string{"Private", "Recovery's", "OptionI", "DifferenceClip", "ModelClip", "SCAFFOLD"}
	for _, of := range []any{simulation.World{}, training.Options{}, protocol.Recovery{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if regexp.MustCompile(`[a-z][A-Z]`).MatchString(f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
}

// Calls that make no sense are refused in the words of the call or of its file: a refusal names a
// flag or a field that the user wrote, no option of Go, and says what to write.
func TestRefusals(t *testing.T) {
	all, names := readRefusals(t), goNames()
	if len(all) < 40 {
		t.Fatalf("%d calls", len(all))
	}
	for _, r := range all {
		args := strings.Fields(r.args)
		path := filepath.Join(t.TempDir(), "job.toml")
		if r.file != nil {
			text := declaredFirst + strings.Join(r.file, "\n") + "\n"
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			args[slices.Index(args, "FILE")] = path
		}
		code, out, errs := call(t.Context(), append([]string{"simulate"}, args...)...)
		said := strings.ReplaceAll(errs, path, "FILE")
		said = strings.TrimSuffix(said, "Run 'hushsum simulate -h' for help.\n")
		want := cli.ExitUsage
		if r.file != nil {
			want = cli.ExitFailure
		}
		if said != r.says || out != "" || code != want {
			t.Errorf("%s: exit %d, %q\n%swant\n%s", r.args, code, out, said, r.says)
		}
		words := clitest.Flat(said)
		if bad := names.FindString(words); bad != "" {
			t.Errorf("%s: %s is an option of Go: %s", r.args, bad, words)
		}
		if !namesSome(words, r) {
			t.Errorf("%s: it names nothing of that: %s", r.args, words)
		}
	}
}

// namesSome reports whether a refusal names a flag of the call, or a field that the call or its
// file sets.
func namesSome(said string, r *refusal) bool {
	for _, word := range strings.Fields(r.args + " " + strings.Join(r.file, " ")) {
		word, _, _ = strings.Cut(word, "=")
		if strings.HasPrefix(word, "--") && word != "--set" && strings.Contains(said, word) {
			return true
		}
	}
	for f := range job.Fields() {
		in := strings.Contains(r.args, f.Path) || slices.ContainsFunc(r.file, func(line string) bool {
			return strings.HasPrefix(line, f.Path)
		})
		if in && strings.Contains(said, f.Path) {
			return true
		}
	}
	return false
}
