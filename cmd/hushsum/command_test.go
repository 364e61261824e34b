package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
)

// call runs the program with all its commands.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return clitest.Call(ctx, args, commands()...)
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}, {"help", "help"}} {
		code, out, errs := call(t.Context(), args...)
		if code != 0 || errs != "" || !strings.Contains(out, "simulate") ||
			!strings.Contains(out, "Usage:") || !strings.Contains(out, "Exit codes:") {
			t.Errorf("%v: code %d, %q, %q", args, code, out, errs)
		}
		clitest.Width(t, out)
	}
	for _, args := range [][]string{{"help", "simulate"}, {"simulate", "-h"},
		{"simulate", "--help"}} {
		code, out, errs := call(t.Context(), args...)
		if code != 0 || errs != "" {
			t.Errorf("%v: code %d, stderr %q", args, code, errs)
		}
		for _, flag := range []string{
			"--data SET", "--clients N", "--rows-per-client N", "--rounds N",
			"--local-steps N",
			"--rate X", "--lambda X", "--range X", "--fraction-bits N", "--seed N", "--json",
			"--drop F", "--recovery", "--adversary cheating|semi-malicious|curious", "--colluders N",
			"--min-survivors N",
			"(default 100; for images 10)", "(default 0.0001; for images 0.0)",
			"(default logistic; for images softmax)", "(default synthetic)", "(default cheating)",
			"Exit codes: 0 success",
		} {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), flag) {
				t.Errorf("%v does not show %q", args, flag)
			}
		}
		clitest.Width(t, out)
	}
	// Nothing asked for: help, as an error.
	code, out, errs := call(t.Context())
	if code != 2 || out != "" || !strings.Contains(errs, "Usage:") {
		t.Errorf("without arguments: code %d, %q, %q", code, out, errs)
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"--version", "version"} {
		code, out, errs := call(t.Context(), arg)
		if code != 0 || errs != "" || !strings.HasPrefix(out, "hushsum ") ||
			!strings.Contains(out, "go1.") || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: code %d, %q, %q", arg, code, out, errs)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		says string
	}{
		{"frobnicate", `no command "frobnicate"`},
		{"help frobnicate", `no command "frobnicate"`},
		{"--json simulate", `no command "--json"`},
		{"simulate --frobnicate", "frobnicate"},
		{"simulate x.toml now", `unexpected argument "now"`},
		{"simulate --clients", "--clients needs a value"},
		{"simulate --clients many", `--clients "many": want a whole number`},
		{"simulate --clients 1e2", `--clients "1e2": want a whole number`},
		{"simulate --clients 99999999999999999999", "use fewer digits"},
		{"simulate --rate fast", `--rate "fast": want a number`},
		{"simulate --rate 1e999", "the number is too large"},
		{"simulate --json=perhaps", `--json "perhaps": want true or false`},
		{"simulate --recovery false", "as in --recovery=false"},
		{"simulate --clients 1", "--clients: 1 is outside its range\nWrite a whole number: 2 to"},
		{"simulate --clients 6000 --rows-per-client 20", "--clients: "},
		{"simulate --rows-per-client 0", "--rows-per-client: 0 is outside its range"},
		{"simulate --rounds -1", "--rounds: -1 is outside its range"},
		{"simulate --local-steps 0", "--local-steps: 0 is outside its range"},
		{"simulate --rate -2", "--rate: -2 is outside its range"},
		{"simulate --rate NaN", "--rate: NaN is outside its range"},
		{"simulate --lambda -1", "--lambda: -1 is outside its range"},
		{"simulate --range 0", "--range: 0 is outside its range"},
		{"simulate --range 1e300", "--range: the sum of 100 parties"},
		{"simulate --range 1e300", "Use a smaller --range, a smaller --fraction-bits, or fewer rows or parties."},
		{"simulate --fraction-bits -1", "--fraction-bits: -1 is outside its range"},
		{"simulate --fraction-bits 40 --range 1e9", "--fraction-bits: the sum of 100 parties, 200 rows"},
		{"simulate --seed -1", "Write a whole number: 0 to 2^63"},
		{"simulate --seed 1.5", `--seed "1.5": want a whole number`},
		{"simulate --data=", `--data: "" is outside its range`},
		{"simulate --drop 10", "--drop: 10 is outside its range\nWrite a number: 0 to below 1."},
		{"simulate --drop NaN", "--drop: NaN is outside its range"},
		{"simulate --drop -0.1", "--drop: -0.1 is outside its range"},
		{"simulate --drop 0.1 --recovery=false", "without recovery nobody may drop out"},
		{"simulate --drop 0.1 --adversary evil",
			`--adversary "evil": want cheating, semi-malicious or curious`},
		{"simulate --min-survivors 3", "--min-survivors is about recovery"},
		{"simulate --set rouds=3", "--set rouds=3: there is no such field\nDid you mean rounds?"},
		{"simulate --drop 0.1 --colluders 99",
			"--colluders: 99 is outside 0 to 34\n" +
				"Use 0 to 34, with which 100 parties withstand a cheating server."},
		{"simulate --drop 0.1 --min-survivors 10", "--min-survivors: 10 is outside 68 to 100"},
		{"simulate --recovery --min-survivors 101", "--min-survivors: 101 is outside 68 to 100"},
	} {
		code, out, errs := call(t.Context(), strings.Fields(c.args)...)
		if code != 2 || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, %q; want 2 and %q", c.args, code, out, errs, c.says)
		}
		if !strings.Contains(errs, "for help") && !strings.Contains(errs, "'hushsum help'") {
			t.Errorf("%s: the message does not lead to help: %q", c.args, errs)
		}
		clitest.Message(t, errs)
	}
}

// fullDisk takes some bytes and then fails.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if len(b) > d.left {
		return 0, errors.New("no space left")
	}
	d.left -= len(b)
	return len(b), nil
}

func TestOutputThatFails(t *testing.T) {
	var errs bytes.Buffer
	args := []string{"account", "gaussian", "--json"}
	if code := clitest.Run(t.Context(), &fullDisk{left: 100}, &errs, args,
		commands()...); code != 1 ||
		!strings.Contains(errs.String(), "no space left") {
		t.Errorf("code %d, %q", code, errs.String())
	}
}
