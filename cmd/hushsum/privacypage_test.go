package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A command in docs/privacy.md prints the lines that follow it there, among others.
func TestPrivacyPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/privacy.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	const prompt = "    $ hushsum "
	out, commands, lines := "", 0, 0
	for line := range strings.Lines(page) {
		args, isCommand := strings.CutPrefix(line, prompt)
		switch {
		case isCommand:
			code, printed, errs := call(t.Context(), strings.Fields(args)...)
			if code != 0 {
				t.Errorf("%scode %d, %s", line, code, errs)
			}
			out = words(printed)
			commands++
		case !strings.HasPrefix(line, "    "):
			out = ""
		case out != "":
			if lines++; !strings.Contains(out, words(line)) {
				t.Errorf("no %q in %q", words(line), out)
			}
		}
	}
	if commands != 6 || lines != 13 {
		t.Errorf("%d commands with %d lines", commands, lines)
	}
	// The least multipliers for ε = 1, 2 and 8, rounded up.
	rows := regexp.MustCompile("(?m)^\\| .* \\| `(--.*)` \\| (.*) \\| (.*) \\| (.*) \\|$").
		FindAllStringSubmatch(page, -1)
	if len(rows) != 5 {
		t.Errorf("%d rows of multipliers", len(rows))
	}
	for _, row := range rows {
		for k, epsilon := range []string{"1", "2", "8"} {
			args := strings.Fields("calibrate gaussian --adversary server --json " + row[1])
			code, printed, errs := call(t.Context(), append(args, "--epsilon", epsilon)...)
			var found struct {
				Z float64 `json:"noise_multiplier"`
			}
			if err := json.Unmarshal([]byte(printed), &found); err != nil || code != 0 {
				t.Errorf("%v: code %d, %v, %s", args, code, err, errs)
			}
			if want := fmt.Sprintf("%.2f", math.Ceil(found.Z*100)/100); row[2+k] != want {
				t.Errorf("%v, epsilon %s: the page has %s, want %s", args, epsilon, row[2+k], want)
			}
		}
	}
}
