package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sample is a small program with all that completion has.
var sample = &Program{
	Name: "sums", About: "adds up", Version: "sums v1", Codes: "Exit codes: 0 success, 1 failure.\n",
	Groups: map[string]string{"job": "jobs"},
	Commands: []Command{
		{Name: "run", About: "runs it's work", Help: "Usage: sums run\n.not a request\n'nor this\n",
			Parts: []string{"json"}, Words: []string{"fast", "slow"}, Examples: []string{"sums run fast"},
			Flags: []Flag{
				{Name: "law", Arg: "none|skellam", Usage: "of the noise", Words: []string{"none", "skellam"}},
				{Name: "rounds", Arg: "N", Usage: "this many"},
				{Name: "out", Arg: "DIR", Usage: "to write to"}, {Name: "json", Usage: `no \ table`}}},
		{Name: "job check", About: "checks", Help: "Usage: sums job check\n", Files: true,
			Flags: []Flag{{Name: "set", Arg: "PATH=VALUE", Usage: "sets"}}},
		{Name: "job fields", About: "lists", Help: "Usage: sums job fields\n"},
	},
	Settings: []Setting{
		{Path: "rounds", About: "Counts − up."},
		{Path: "sum.protocol", About: "Takes.", Words: []string{"pairwise", "oneshot"}},
		{Path: "world.party.0.at", About: "Says when.", Words: []string{"begin", "submit"}},
	},
}

// cases are lines up to the cursor, and what is offered there.
var cases = []struct {
	line, want string
}{
	{"sums ", "help job run version"}, {"sums j", "job"}, {"sums job ", "check fields"},
	{"sums help ", "job run"}, {"sums help job c", "check"}, {"sums help run ", "json"},
	{"sums run s", "slow"}, {"sums run --l", "--law"}, {"sums run fast --js", "--json"},
	{"sums run --law ", "none skellam"}, {"sums run --law s", "skellam"},
	{"sums run --rounds ", ""}, {"sums job check --s", "--set"},
	{"sums job check a.toml --set ro", "rounds="},
	{"sums job check --set sum.protocol=o", "oneshot"},
	{"sums job check --set world.party.0.at=", "begin submit"},
}

// shell returns a shell that the machine has, or skips.
func shell(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("there is no " + name)
	}
	return path
}

// output runs a shell with a text on its standard input.
func output(t *testing.T, path, text string, args ...string) string {
	t.Helper()
	command := exec.Command(path, args...)
	command.Stdin = strings.NewReader(text)
	command.Dir = t.TempDir() // without files to offer
	command.Env = append(os.Environ(), "HOME="+command.Dir)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// offered sorts words without descriptions.
func offered(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if word != "" {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

func TestBash(t *testing.T) {
	path := shell(t, "bash")
	script := sample.Completion("bash")
	if out := output(t, path, script, "-n"); out != "" {
		t.Error(out)
	}
	for _, c := range cases {
		got := offered(output(t, path, script+`
COMP_WORDBREAKS=$' \t\n=:' COMP_LINE=`+quoted(c.line)+` COMP_POINT=${#COMP_LINE}
_sums
printf '%s\n' "${COMPREPLY[@]}"
`, "--norc", "-s"))
		if !sameOffer(got, c.line, c.want) {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
	after := output(t, path, script+`
COMP_WORDBREAKS=$' \t\n=:' COMP_LINE='sums run --law=sk' COMP_POINT=17
_sums
echo "${COMPREPLY[@]}"
COMP_LINE='sums job check --set=sum.protocol=pa --x' COMP_POINT=36
_sums
echo "${COMPREPLY[@]}"
COMP_LINE='sums job check --set s' COMP_POINT=22
_sums
echo "${COMPREPLY[@]}"
`, "--norc", "-s")
	if after != "skellam\npairwise\nsum.protocol=\n" {
		t.Errorf("after equals signs, before the end: %q", after)
	}
}

// sameOffer compares what is offered: with the path before a word, and what is there already, or
// without, as shells have it.
func sameOffer(got, line, want string) bool {
	var words []string
	for _, w := range strings.Fields(got) {
		_, after, found := strings.Cut(w, "=")
		switch {
		case strings.HasSuffix(line, w):
		case found && after != "":
			words = append(words, after)
		default:
			words = append(words, w)
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ") == want
}

func TestFish(t *testing.T) {
	path := shell(t, "fish")
	script := filepath.Join(t.TempDir(), "sums.fish")
	if err := os.WriteFile(script, []byte(sample.Completion("fish")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		got := offered(output(t, path, "", "--no-config", "-c",
			"source "+script+"; complete -C "+quoted(c.line)))
		if !sameOffer(got, c.line, c.want) {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
}

// zshStubs tell what completion offers, in place of the functions that take it within a line.
const zshStubs = `compdef() { : }
compset() { PREFIX=${PREFIX#*=} value=${value#*=} }
_files() { : }
compadd() {
  local suffix='' w
  [[ $1 == -S ]] && suffix=$2 && shift 2
  shift
  for w in "$@"; do [[ $w$suffix == $PREFIX* ]] && print -r -- "$w$suffix"; done
  return 0
}
_describe() { local w; for w in "${(@P)2}"; do compadd -- "${w%%:*}"; done }
`

func TestZsh(t *testing.T) {
	path := shell(t, "zsh")
	script := zshStubs + sample.Completion("zsh")
	if out := output(t, path, script, "-n"); out != "" {
		t.Error(out)
	}
	for _, c := range cases {
		got := offered(output(t, path, script+`
line=`+quoted(c.line)+`
words=("${(@s. .)line}") CURRENT=$#words PREFIX=$words[-1]
_sums
`, "-f", "-s"))
		if !sameOffer(got, c.line, c.want) {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
}

func TestMan(t *testing.T) {
	page := sample.Man()
	for _, want := range []string{".TH SUMS 1 \"\" \"sums v1\"\n", ".SS sums job check\n",
		"\n\\&.not a request\n",
		"\n\\&'nor this\n", "\\fB\\-\\-law\\fR \\fInone|skellam\\fR\nof the noise\n", `no \e table`,
		"\\fBsum.protocol\\fR\nTakes.\n", `Counts \[u2212] up.`, "Exit codes: 0 success"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if path, err := exec.LookPath("groff"); err == nil {
		if out := output(t, path, page, "-man", "-Tascii", "-ww", "-z"); out != "" {
			t.Error(out)
		}
	}
}
