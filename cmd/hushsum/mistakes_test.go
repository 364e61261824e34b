package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
)

// Mistakes at the command line, with the exit code and the first line on standard
// error. Nothing is printed on standard output, and nothing is written.
func TestMistakes(t *testing.T) {
	t.Setenv("HUSHSUM_DATA", filepath.Join(t.TempDir(), "none"))
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		code    int
		first   string
		then    string // the second line, or part of it
	}{
		{"", 2, "hushsum lets parties learn the sum of their vectors and nothing else.", ""},
		{"simulat", 2, `hushsum: there is no command "simulat"`, "Did you mean hushsum simulate?"},
		{"frobnicate", 2, `hushsum: there is no command "frobnicate"`,
			"Run 'hushsum help' for a list of commands"},
		{"--json simulate", 2, `hushsum: there is no command "--json"`, "Run 'hushsum help'"},
		{"help acount", 2, `hushsum: there is no command "acount"`,
			"Did you mean hushsum account?"},
		{"help simulate jsno", 2, `hushsum simulate: the help of simulate has no section "jsno"`,
			"Did you mean json?"},
		{"sidecar --parent 1", 1,
			"hushsum sidecar: process 1 did not start this one, or is gone", ""},
		{"sidecar --shared 999", 1,
			"hushsum sidecar: shared memory: descriptor 999: bad file descriptor", ""},
		{"sidecar --sockte x", 2, "hushsum sidecar: there is no flag --sockte",
			"Did you mean --socket?"},
		{"completion", 2, "hushsum completion: for which shell?", "Use one of bash, zsh, fish."},
		{"completion bsh", 2, `hushsum completion: completion for "bsh" is not supported`,
			"Did you mean bash?"},
		{"completion bash zsh", 2, `hushsum completion: unexpected argument "zsh"`,
			"It takes the name of one shell."},
		{"man simulate", 2, `hushsum man: unexpected argument "simulate"`, "It takes no arguments."},
		{"job", 2, "hushsum job: the first argument must be the command", "Use one of check, fields."},
		{"job chek", 2, `hushsum job: there is no command "chek" under job`, "Did you mean check?"},
		{"job check", 2, "hushsum job check: which file?", "Name a file, or - for standard input."},
		{"job check file file", 2, `hushsum job check: unexpected argument "file"`,
			"It takes one FILE, and flags."},
		{"job check none.toml", 1, "hushsum job check: open none.toml: no such file or directory", ""},
		{"job check file --set epsilon", 2, `hushsum job check: --set "epsilon": write PATH=VALUE, as in privacy.epsilon=4`,
			"Run"},
		{"experiment", 2, "hushsum experiment: which experiment?",
			"'hushsum experiment list' names them."},
		{"experiment poisoning", 1, "hushsum experiment: the current folder is in no clone of hushsum",
			"Change into one"},
		{"rows", 2, "hushsum rows: which rows?", "Name a file, or the address of a database."},
		{"rows file file", 2, `hushsum rows: unexpected argument "file"`, "It takes one SOURCE, and flags."},
		{"rows none", 1, "hushsum rows: open none: no such file or directory", ""},
		{"rows file", 1, "hushsum rows: file: it is empty: there is no line that names the columns", ""},
		{"rows file --sql x", 1, "hushsum rows: file: it is not a database", "Leave --sql out"},
		{"rows file --bare --header a", 2, "hushsum rows: --header and --bare contradict each other",
			"Leave one out."},
		{"rows --heder a", 2, "hushsum rows: there is no flag --heder", "Did you mean --header?"},
		{"verify", 2, "hushsum verify: which file?", "Name a file, or - for standard input."},
		{"verify none", 1, "hushsum verify: open none: no such file or directory", ""},
		{"verify file", 1, "hushsum verify: file: it is not evidence: it was truncated or changed, or " +
			"is", ""},
		{"job fields clp", 2, `hushsum job fields: no field matches "clp"`, "Did you mean clip?"},
		{"job fields --schema clip", 2, "hushsum job fields: --schema covers all fields",
			"Leave the rest out."},
		{"job fields --theorems clip", 2, "hushsum job fields: --theorems covers all fields",
			"Leave the rest out."},
		{"help job chek", 2, `hushsum job: there is no command "chek" under job`, "Did you mean check?"},
		{"help job check jsno", 2, `hushsum job check: the help of job check has no section "jsno"`,
			"Did you mean json?"},
		{"simulate --cleints 50", 2, "hushsum simulate: there is no flag --cleints",
			"Did you mean --clients?"},
		{"simulate -j", 2, "hushsum simulate: there is no flag --j",
			"Run 'hushsum simulate -h' for help."},
		{"simulate --clients", 2, "hushsum simulate: --clients needs a value", "Run"},
		{"simulate --clients ten", 2, `hushsum simulate: --clients "ten": want a whole number`,
			"Run"},
		{"simulate --clients 1", 2, "hushsum simulate: --clients: 1 is outside its range",
			"Write a whole number: 2 to 1,000,000."},
		{"simulate --drop 10", 2, "hushsum simulate: --drop: 10 is outside its range",
			"Write a number: 0 to below 1."},
		{"simulate --recovery true", 2, `hushsum simulate: unexpected argument "true"`,
			"Write true after an equals sign, as in --recovery=true."},
		{"simulate --noise skelam", 2,
			`hushsum simulate: --noise "skelam": want none, key, discrete-gaussian,`,
			"discrete-laplace or skellam"},
		{"simulate --adversary cheting --drop .1", 2,
			`hushsum simulate: --adversary "cheting": want cheating, semi-malicious or`,
			"Did you mean cheating?"},
		{"simulate --data mnsit", 1,
			`hushsum simulate: --data: there is no data set and no folder named "mnsit"`,
			"Did you mean mnist?"},
		{"simulate --model sofmax", 2, `hushsum simulate: --model: "sofmax" is outside its range`,
			"Write text: logistic, softmax"},
		{"simulate --rule fedprox+fedadm", 2, `hushsum simulate: --rule: there is no "fedadm"`,
			"Did you mean fedadam?"},
		{"simulate --split labelskew", 2, `hushsum simulate: --split "labelskew": want shuffled, iid, label-skew,`,
			"Did you mean label-skew?"},
		{"simulate --mask sotf", 2, `hushsum simulate: --mask "sotf": want none, soft or hard`,
			"Did you mean soft?"},
		{"simulate --protocol onshot", 2,
			`hushsum simulate: --protocol "onshot": want pairwise or oneshot`,
			"Did you mean oneshot?"},
		{"account", 2, "hushsum account: the first argument must be the mechanism",
			"Use one of gaussian, laplace"},
		{"account --rate .1 gaussian", 2,
			"hushsum account: the mechanism must come first, before all flags",
			"Use one of gaussian"},
		{"account gausian", 2, `hushsum account: "gausian" is not a mechanism`,
			"Did you mean gaussian?"},
		{"account gaussian --rate 2", 2,
			"hushsum account: --rate: 2 is not a probability of taking part",
			"Use a number above 0, at most 1."},
		{"account gaussian --adversary sever", 2,
			`hushsum account: --adversary "sever": want public or server`, "Did you mean server?"},
		{"calibrate gaussian", 2, "hushsum calibrate: --epsilon is required: it is the budget",
			"Give a number above 0, as in --epsilon 1."},
		{"calibrate gaussian --epsilon 0", 2, "hushsum calibrate: --epsilon: 0 is not a budget",
			"Give a number above 0"},
		{"calibrate gaussian --epsilon 1 --find round", 2,
			`hushsum calibrate: --find "round": want noise-multiplier, rounds or rate`,
			"Did you mean rounds?"},
		{"attack --run SplitVeiw", 2, `hushsum attack: --run: no attack matches "SplitVeiw"`,
			"Did you mean SplitView?"},
		{"attack SplitView", 2, `hushsum attack: unexpected argument "SplitView"`,
			"It takes flags only. Choose attacks with --run."},
		{"attack --run (", 2, `hushsum attack: --run: "(" is not a regular expression`,
			"Use the name of an attack"},
	} {
		code, out, errs := call(t.Context(), strings.Fields(c.command)...)
		first, rest, _ := strings.Cut(errs, "\n")
		if code != c.code || out != "" || first != c.first || !strings.Contains(rest, c.then) {
			t.Errorf(
				"%s: code %d, %q on standard output, on standard error\n%s\nwant %d and %q, %q",
				c.command, code, out, errs, c.code, c.first, c.then)
		}
		if c.command != "" { // which prints the usage
			clitest.Message(t, errs)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 1 {
		t.Errorf("files %v, %v: a mistake wrote some", entries, err)
	}
}
