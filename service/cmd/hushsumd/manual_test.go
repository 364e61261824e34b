package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// fits reports the lines of a text that a terminal of 80 columns breaks.
func fits(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > 80 {
			t.Errorf("%s: a line of %d characters: %q", what, utf8.RuneCountInString(line), line)
		}
	}
}

// Help fits a terminal; completion and the manual page have every command and every flag of it.
func TestManualIsWhole(t *testing.T) {
	scripts := map[string]string{}
	for _, args := range []string{"completion bash", "completion zsh", "completion fish", "man"} {
		code, text := says(t, strings.Fields(args)...)
		if code != 0 {
			t.Fatalf("%s: code %d, %s", args, code, text)
		}
		scripts[args] = text
	}
	man := strings.ReplaceAll(scripts["man"], `\-`, "-")
	for _, v := range environment {
		if !strings.Contains(man, `\fB`+v.Name+`\fR`) {
			t.Errorf("the manual page has no %s", v.Name)
		}
	}
	code, text := says(t, "help")
	if code != 0 || !strings.Contains(text, "NO_COLOR") {
		t.Errorf("%d %s", code, text)
	}
	fits(t, "help", text)
	flags := 0
	for _, c := range commands() {
		if !strings.Contains(man, ".SS hushsumd "+c.name+"\n") {
			t.Errorf("the manual page has no %s", c.name)
		}
		code, help := says(t, "help", c.name)
		if code != 0 || !strings.HasPrefix(help, "Usage: hushsumd "+c.name) {
			t.Errorf("help %s: %d %s", c.name, code, help)
		}
		fits(t, "help "+c.name, help)
		_, list, _ := strings.Cut(help, "\nFlags:\n")
		for line := range strings.Lines(list) {
			flag, ok := strings.CutPrefix(line, "  --")
			if !ok {
				continue
			}
			flags++
			flag = strings.Fields(flag)[0]
			if !strings.Contains(man, `\fB--`+flag+`\fR`) ||
				!strings.Contains(scripts["completion bash"], "--"+flag) ||
				!strings.Contains(scripts["completion zsh"], "'--"+flag+":") ||
				!strings.Contains(scripts["completion fish"], "_in "+c.name+"' -l "+flag+" ") {
				t.Errorf("%s: --%s is left out", c.name, flag)
			}
		}
	}
	if flags < 60 {
		t.Errorf("help has %d flags: the test does not see them", flags)
	}
}

// Programs that show manual pages take this one without a warning, and it fits 80 columns.
func TestManIsRead(t *testing.T) {
	_, page := says(t, "man")
	shown := 0
	for _, args := range [][]string{
		{"groff", "-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u", "-"},
		{"mandoc", "-man", "-Tutf8", "-Owidth=80", "-W", "warning"},
	} {
		path, err := exec.LookPath(args[0])
		if err != nil {
			continue
		}
		shown++
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
		text := regexp.MustCompile(".\b").ReplaceAllString(string(out), "") // what mandoc strikes over
		for _, want := range []string{"SYNOPSIS", "Usage: hushsumd serve", "--identity", "ENVIRONMENT",
			"EXIT STATUS"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s, %v: it does not show %q", args[0], err, want)
			}
		}
		fits(t, args[0], text)
	}
	if shown == 0 {
		t.Skip("there is neither groff nor mandoc")
	}
}

// Bash offers the commands and flags of the real command.
func TestCompletionOfBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	_, script := says(t, "completion", "bash")
	for _, c := range []struct{ line, want string }{
		{"hushsumd fe", "federation"}, {"hushsumd identity s", "show"},
		{"hushsumd serve --nats-n", "--nats-nkey"}, {"hushsumd v", "version"},
		{"hushsumd key list --tok", "--token-file"}, {"hushsumd help ba", "backup"},
	} {
		command := exec.Command(bash, "--norc", "-s")
		command.Stdin = strings.NewReader(script + "\nCOMP_WORDBREAKS=$' \\t\\n=:' COMP_LINE='" + c.line +
			"' COMP_POINT=" + "${#COMP_LINE}\n_hushsumd\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
		out, err := command.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.line, got, err, c.want)
		}
	}
}
