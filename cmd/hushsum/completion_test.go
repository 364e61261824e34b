package main

import (
	"os/exec"
	"strings"
	"testing"

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
		{"hushsum simulate --scen", "--scenario"},
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
