package declare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/job"
)

// oldForms has a declaration of each form that there was, with what it does not say.
var oldForms = map[string][]string{
	"plans/averaging.json":     {"--set", "parties.count=10"},
	"federations/study.toml":   nil,
	"specs/digits.toml":        nil,
	"scenarios/hospitals.toml": nil,
}

// oldFile returns the path of a file of an old form.
func oldFile(of string) string {
	return filepath.Join("..", "..", "..", "..", "job", "old", "testdata", of)
}

// Each old form becomes a job that is valid, with notes that go elsewhere.
func TestJobConvert(t *testing.T) {
	for file, more := range oldForms {
		path := oldFile(file)
		args := append([]string{"job", "convert", path}, more...)
		code, out, errs := call(t.Context(), args...)
		form := strings.TrimSuffix(filepath.Dir(file), "s")
		if code != 0 || !strings.Contains(flatText(errs), "is read as a "+form+".") ||
			!strings.Contains(errs, "\n- ") {
			t.Fatalf("%s: code %d, %s", file, code, errs)
		}
		clitest.Width(t, errs)
		j, err := job.Parse("x.toml", []byte(out))
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, out)
		}

		// The same from standard input, to a file that is not written over.
		into := filepath.Join(t.TempDir(), "job.toml")
		args = []string{"job", "convert", "-", "--out", into}
		if form == "plan" || form == "federation" { // of which nobody knows how many there are
			args = append(args, "--set", "parties.count=10")
		}
		for again := range 2 {
			code, out, errs := callWith(t, path, args...)
			text, err := os.ReadFile(into)
			if err != nil || out != "" || code != again ||
				again == 1 && !strings.Contains(flatText(errs), "already exists") {
				t.Fatalf("%v: code %d, %q, %s, %v", args, code, out, errs, err)
			}
			same, err := job.Parse(into, text)
			if err != nil {
				t.Fatal(err)
			}
			same.Parties.Count = j.Parties.Count
			if same.Digest() != j.Digest() {
				t.Errorf("%s: another job from standard input:\n%s", file, text)
			}
		}
	}
}

// flatText takes the breaks out of lines.
func flatText(text string) string { return strings.Join(strings.Fields(text), " ") }

// callWith is call with a file as standard input.
func callWith(t *testing.T, file string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	was := os.Stdin
	defer func() { os.Stdin = was }()
	os.Stdin = in
	return call(t.Context(), args...)
}

// What cannot be converted is refused, all mistakes at once, and nothing is printed or written.
func TestJobConvertMistakes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.toml")
	text := "name = \"a\"\nrouds = 3\nroster = \"r\"\n[recovery]\ndrop_uot = 0.2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{path, "--out", filepath.Join(dir, "out")}, 1,
			[]string{"f.toml:2:", "rouds", "f.toml:5:", "drop_uot"}},
		{[]string{oldFile("plans/steps.json")}, 1,
			[]string{"does not say who takes part", "parties.count=10"}},
		{[]string{oldFile("jobs/spec-six.toml")}, 1,
			[]string{"a job of today's form"}},
		{[]string{filepath.Join(dir, "none")}, 1, []string{"no such file"}},
		{nil, 2, []string{"which file?"}},
		{[]string{path, path}, 2, []string{"unexpected argument", "one FILE"}},
		{[]string{path, "--set", "rounds"}, 2, []string{"write PATH=VALUE"}},
	} {
		code, out, errs := call(t.Context(), append([]string{"job", "convert"}, c.args...)...)
		clitest.Width(t, strings.ReplaceAll(errs, dir, ""))
		for _, want := range c.want {
			if code != c.code || out != "" || !strings.Contains(flatText(errs), want) {
				t.Errorf("%v: code %d, %q, %s", c.args, code, out, errs)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("a file was written")
	}
}
