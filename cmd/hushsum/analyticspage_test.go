package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A command of docs/analytics.md prints what follows it there, in the same lines, where a line with
// nothing but … stands for some that are left out: numbers but for those of a plan have noise, and
// are not compared.
func TestAnalyticsPage(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("docs/analytics.md")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`[0-9][0-9,]*(\.[0-9]+)?`)
	words := func(s string, exact bool) string {
		if !exact {
			s = number.ReplaceAllString(s, "#")
		}
		return strings.Join(strings.Fields(s), " ")
	}
	commands := 0
	const prompt = "\n    $ hushsum "
	for _, block := range strings.Split("\n"+string(text), prompt)[1:] {
		args, rest, _ := strings.Cut(block, "\n")
		want := ""
		for line := range strings.Lines(rest) {
			shown, is := strings.CutPrefix(line, "    ")
			if !is && strings.TrimSpace(line) != "" {
				break
			}
			want += shown
		}
		commands++
		code, printed, errs := call(t.Context(), strings.Fields(args)...)
		exact := strings.Contains(args, "--plan")
		got := words(errs+printed, exact)
		var parts []string
		for _, part := range strings.Split(want, "\n  …\n") {
			parts = append(parts, words(part, exact))
		}
		want = strings.Join(parts, " … ")
		same := got == want
		if len(parts) == 2 {
			rest, begins := strings.CutPrefix(got, parts[0])
			same = begins && strings.HasSuffix(rest, parts[1])
		}
		if code != 0 || !same {
			t.Errorf("hushsum %s: code %d\n%s\nwant\n%s", args, code, got, want)
		}
	}
	if commands != 8 {
		t.Errorf("%d commands", commands)
	}
}
