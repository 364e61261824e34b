package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// call runs the program as a shell would, without a terminal.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}} {
		code, out, errs := call(t.Context(), args...)
		if code != 0 || errs != "" || !strings.Contains(out, "simulate") || !strings.Contains(out, "Usage:") {
			t.Errorf("%v: code %d, %q, %q", args, code, out, errs)
		}
	}
	for _, args := range [][]string{{"help", "simulate"}, {"simulate", "-h"}, {"simulate", "--help"}} {
		code, out, errs := call(t.Context(), args...)
		if code != 0 || errs != "" {
			t.Errorf("%v: code %d, stderr %q", args, code, errs)
		}
		for _, flag := range []string{
			"--data synthetic|PATH", "--clients N", "--rows-per-client N", "--rounds N", "--local-steps N",
			"--rate X", "--lambda X", "--range X", "--fraction-bits N", "--seed N", "--json",
			"(default 100)", "(default 0.0001)", "(default synthetic)",
		} {
			if !strings.Contains(out, flag) {
				t.Errorf("%v does not show %q", args, flag)
			}
		}
		checkWidth(t, out)
	}
	// Nothing asked for: help, as an error.
	code, out, errs := call(t.Context())
	if code != 2 || out != "" || !strings.Contains(errs, "Usage:") {
		t.Errorf("without arguments: code %d, %q, %q", code, out, errs)
	}
}

func checkWidth(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		for _, part := range strings.Split(strings.TrimRight(line, "\n"), "\r") {
			if n := len([]rune(part)); n > 80 {
				t.Errorf("a line of %d characters: %q", n, part)
			}
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
		{"simulate now", `unexpected argument "now"`},
		{"simulate --clients", "needs an argument"},
		{"simulate --clients many", `"many"`},
		{"simulate --clients 1", "--clients: 1 is too few; the sum of one party is that party's update"},
		{"simulate --clients -5", "--clients: -5 is too few"},
		{"simulate --clients 1000000", "--clients: 1000000 is too many"},
		{"simulate --rows-per-client 0", "--rows-per-client: 0 is too few"},
		{"simulate --rounds -1", "--rounds: -1 is too few"},
		{"simulate --local-steps 0", "--local-steps: 0 is too few"},
		{"simulate --rate -2", "--rate: -2 is no learning rate"},
		{"simulate --rate NaN", "--rate: NaN is no learning rate"},
		{"simulate --lambda -1", "--lambda: -1 is no regularisation"},
		{"simulate --range 0", "--range: 0 bounds no weight"},
		{"simulate --fraction-bits -1", "--fraction-bits: -1 is outside 0 to 62"},
		{"simulate --fraction-bits 50", "--fraction-bits: with 50, the sum of 100 parties of 200 rows"},
		{"simulate --seed -1", "whole number from 0"},
		{"simulate --seed 1.5", "whole number from 0"},
	} {
		code, out, errs := call(t.Context(), strings.Fields(c.args)...)
		if code != 2 || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, %q; want 2 and %q", c.args, code, out, errs, c.says)
		}
		if !strings.Contains(errs, "for help") && !strings.Contains(errs, "'hushsum help'") {
			t.Errorf("%s: the message does not lead to help: %q", c.args, errs)
		}
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
	args := append(strings.Fields(quick), "--json")
	if code := run(t.Context(), args, &fullDisk{left: 100}, &errs); code != 1 || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("code %d, %q", code, errs.String())
	}
}
