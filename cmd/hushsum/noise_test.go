package main

import (
	"math"
	"strings"
	"testing"
)

const noisyRun = "simulate --clients 10 --rows-per-client 20 --rounds 2 --local-steps 5 --bits 14"

func TestNoiseTable(t *testing.T) {
	for law, drop := range map[string]string{"discrete-laplace": "", "discrete-gaussian": " --drop 0.2 --colluders 1", "skellam": ""} {
		code, out, errs := call(t.Context(), strings.Fields(noisyRun+" --noise-multiplier 0.5 --clip 0.25 --noise "+law+drop)...)
		if code != 0 || errs != "" {
			t.Fatalf("%s: code %d, %q", law, code, errs)
		}
		checkWidth(t, out)
		want := []string{
			"ring      14 bits for each of 64 coordinates",
			"noise     " + strings.ReplaceAll(law, "-", " ") + ", multiplier 0.5; ",
			"clipped to 0.25, ", " L2 sensitivity ", " 10 honest shares must suffice", "no epsilon is computed yet",
			"largest difference between two weights",
		}
		if drop != "" {
			want[4] = " 7 honest shares must suffice"
		}
		words := strings.Join(strings.Fields(out), " ")
		for _, text := range want {
			if !strings.Contains(words, strings.Join(strings.Fields(text), " ")) {
				t.Errorf("%s: the output lacks %q:\n%s", law, text, out)
			}
		}
		if strings.Contains(out, "the ring takes up to") {
			t.Errorf("%s: a range that is not used:\n%s", law, out)
		}
	}
}

func TestNoiseJSON(t *testing.T) {
	code, out, errs := call(t.Context(), strings.Fields(noisyRun+" --noise skellam --noise-multiplier 2 --clip 0.5 --json")...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	objects := decode(t, out)
	last := objects[len(objects)-1]
	for key, want := range map[string]any{
		"noise": "skellam", "noise_multiplier": 2.0, "clip": 0.5, "noise_shares": 10.0, "ring_bits": 14.0, "count_bits": 0.0, "lost_rounds": 0.0,
	} {
		if last[key] != want {
			t.Errorf("%s is %v, want %v", key, last[key], want)
		}
	}
	sensitivity, deviation := last["sensitivity"].(float64), last["noise_stddev"].(float64)
	if sensitivity < 0.5 || sensitivity > 0.7 || math.Abs(deviation/(2*sensitivity)-1) > 1e-9 {
		t.Errorf("sensitivity %v, standard deviation %v", sensitivity, deviation)
	}

	code, out, _ = call(t.Context(), append(strings.Fields(quick), "--noise", "none", "--json")...)
	objects = decode(t, out)
	last = objects[len(objects)-1]
	if code != 0 || last["noise"] != "none" || last["noise_multiplier"] != 0.0 || last["clip"] != 0.0 || last["noise_stddev"] != 0.0 || last["count_bits"] == 0.0 {
		t.Errorf("without noise: code %d, %v", code, last)
	}
}

// Without noise all is as if the flag were not there: the same models, bit for bit.
func TestNoNoise(t *testing.T) {
	outcome := func(args ...string) [3]any {
		_, out, _ := call(t.Context(), append(strings.Fields(quick+" --json"), args...)...)
		last := decode(t, out)[3]
		return [3]any{last["max_abs_diff"], last["largest_weight"], last["bytes_up"]}
	}
	if a, b := outcome(), outcome("--noise", "none"); a != b {
		t.Errorf("%v and %v", a, b)
	}
}

func TestNoiseUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--noise loud", 2, `--noise "loud": want none, discrete-laplace,`},
		{"--clip 2", 2, "--clip: it says something about noise, which is off\nAdd --noise"},
		{"--noise none --bits 16", 2, "--bits: it says something about noise"},
		{"--noise skellam --range 3", 2, "--range: it is of no use with noise\nUse --clip and --bits"},
		{"--noise skellam --noise-multiplier 0", 2, "--noise-multiplier: 0 is no multiple of the sensitivity\nUse a number above 0"},
		{"--noise skellam --noise-multiplier NaN", 2, "--noise-multiplier: NaN"},
		{"--noise skellam --clip -1", 2, "--clip: -1 bounds no norm"},
		{"--noise skellam --bits 65", 2, "--bits: 65 is outside 1 to 64"},
		{"--noise skellam --bits 3", 1, "--bits: 3 is too few"},
		{"--noise skellam --bits 40", 1, "Use fewer bits."},
		{"--noise skellam --noise-multiplier 1e-12", 1, "Use a larger multiplier"},
	} {
		code, out, errs := call(t.Context(), append(strings.Fields(quick), strings.Fields(c.args)...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, %q; want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
		checkMessage(t, errs)
	}
}
