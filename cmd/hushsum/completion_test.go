package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hushsum/hushsum/job"
)

// Completion and the manual page have every command, every flag that its help shows, and every
// field.
func TestCompletionIsWhole(t *testing.T) {
	scripts := map[string]string{}
	for _, args := range []string{"completion bash", "completion zsh", "completion fish", "man"} {
		code, out, errs := call(t.Context(), strings.Fields(args)...)
		if code != 0 || errs != "" {
			t.Fatalf("%s: code %d, %q", args, code, errs)
		}
		scripts[args] = out
	}
	man := strings.ReplaceAll(scripts["man"], `\-`, "-")
	for _, c := range commands() {
		var names []string
		for _, below := range c.Below {
			names = append(names, c.Name+" "+below.Name)
		}
		if names == nil {
			names = []string{c.Name}
		}
		for _, name := range names {
			if !strings.Contains(man, ".SS hushsum "+name+"\n") {
				t.Errorf("the manual page has no %s", name)
			}
			_, help, _ := call(t.Context(), append([]string{"help"}, strings.Fields(name)...)...)
			files := strings.Contains(scripts["completion fish"], "__hushsum_in "+name+"' -F\n")
			want := strings.Contains(help, name+" FILE") || strings.Contains(help, name+" [FILE]")
			if files != want {
				t.Errorf("%s: files are completed: %v", name, files)
			}
			_, flags, _ := strings.Cut(help, "\nFlags:\n")
			for line := range strings.Lines(flags) {
				flag, ok := strings.CutPrefix(line, "  --")
				if !ok {
					continue
				}
				flag = strings.Fields(flag)[0]
				if !strings.Contains(man, `\fB--`+flag+`\fR`) ||
					!strings.Contains(scripts["completion bash"], "--"+flag) ||
					!strings.Contains(scripts["completion zsh"], "'--"+flag+":") ||
					!strings.Contains(scripts["completion fish"], "__hushsum_in "+name+"' -l "+flag+" ") {
					t.Errorf("%s: --%s is left out", name, flag)
				}
			}
		}
	}
	for f := range job.Fields() {
		path := strings.ReplaceAll(f.Path, "[]", ".0")
		for args, script := range scripts {
			if args == "man" {
				script = man
			}
			if !strings.Contains(script, path) {
				t.Errorf("%s: no %s", args, path)
			}
		}
	}
}

// The manual page is one that its readers' programs take without a warning, and what they show of
// it fits a terminal of 80 columns, but for the few words that are longer.
func TestManIsRead(t *testing.T) {
	_, page, _ := call(t.Context(), "man")
	shown := 0
	for _, args := range [][]string{
		{"groff", "-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u", "-"},
		{"mandoc", "-man", "-Tutf8", "-Owidth=80", "-W", "warning"},
	} {
		path, err := exec.LookPath(args[0])
		if err != nil {
			continue
		}
		var errs strings.Builder
		c := exec.Command(path, args[1:]...)
		c.Stdin, c.Stderr = strings.NewReader(page), &errs
		out, err := c.Output()
		for line := range strings.Lines(errs.String()) {
			// A date would differ in each build.
			if !strings.Contains(line, "missing date") && !strings.Contains(line, "see above") {
				t.Errorf("%s: %s", args[0], line)
			}
		}
		if len(out) == 0 {
			t.Errorf("%s: %v", args[0], err)
		}
		shown++
		text := regexp.MustCompile(".\b").ReplaceAllString(string(out), "") // what mandoc strikes over
		for _, want := range []string{"SYNOPSIS", "hushsum simulate", "--epsilon", "privacy.epsilon",
			"Usage: hushsum query FILE", "EXIT STATUS"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not show %q", args[0], want)
			}
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if utf8.RuneCountInString(line) > 80 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line of %d characters: %q", args[0], utf8.RuneCountInString(line), line)
			}
		}
	}
	if shown == 0 {
		t.Skip("there is neither groff nor mandoc")
	}
}

// What bash offers for the real command.
func TestCompletionOfBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	_, script, _ := call(t.Context(), "completion", "bash")
	for _, c := range []struct{ line, want string }{
		{"hushsum si", "simulate\nsidecar"}, {"hushsum job ch", "check"},
		{"hushsum simulate --adversary ", "cheating\nsemi-malicious\ncurious"},
		{"hushsum simulate --swe", "--sweep"},
		{"hushsum account discrete-g", "discrete-gaussian"},
		{"hushsum job check a.toml --set privacy.clip_q", "privacy.clip_quantile="},
		{"hushsum job check a.toml --set privacy.noise=discrete-", "discrete-gaussian\ndiscrete-laplace"},
		{"hushsum help simulate js", "json"}, {"hushsum completion f", "fish"},
	} {
		command := exec.Command(bash, "--norc", "-s")
		command.Stdin = strings.NewReader(script + "\nCOMP_WORDBREAKS=$' \\t\\n=:' COMP_LINE='" + c.line +
			"' COMP_POINT=" + "${#COMP_LINE}\n_hushsum\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
		out, err := command.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.line, got, err, c.want)
		}
	}
}
