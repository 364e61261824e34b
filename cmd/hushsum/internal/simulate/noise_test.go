package simulate

import (
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
)

// warnedOrQuiet reports whether nothing is on standard error, but that noise is large.
func warnedOrQuiet(errs string) bool {
	return errs == "" || strings.HasPrefix(errs, "hushsum simulate: there will be more noise than") &&
		strings.Count(errs, "hushsum simulate") == 1
}

const noisyRun = "simulate --clients 10 --rows-per-client 20 --rounds 2 --local-steps 5 --bits 14"

func TestNoiseTable(t *testing.T) {
	for law, drop := range map[string]string{"discrete-laplace": "",
		"discrete-gaussian": " --drop 0.2 --colluders 1", "skellam": ""} {
		code, out, errs := call(t.Context(),
			strings.Fields(noisyRun+" --noise-multiplier 0.5 --clip 0.25 --noise "+law+drop)...)
		if code != 0 || errs != "" {
			t.Fatalf("%s: code %d, %q", law, code, errs)
		}
		clitest.Width(t, out)
		want := []string{
			"ring      14 bits for each of 40 coordinates",
			"noise     " + strings.ReplaceAll(law, "-", " ") + ", multiplier 0.5; ",
			"clipped to 0.25, ", " L2 sensitivity ", " 10 honest shares must suffice",
			"epsilon is stated at delta 1e-05; there is no budget",
			"eps server eps public", "at delta 1e-05 for each party, against a server that cheats",
			"at delta 1e-05 for each party, against those who see released sums", " proves the upper bound.",
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
		if strings.Contains(out, "the ring holds up to") {
			t.Errorf("%s: a range that is not used:\n%s", law, out)
		}
	}
}

func TestNoiseJSON(t *testing.T) {
	code, out, errs := call(t.Context(),
		strings.Fields(noisyRun+" --noise skellam --noise-multiplier 2 --clip 0.5 --json")...)
	if code != 0 || !warnedOrQuiet(errs) {
		t.Fatalf("code %d, %q", code, errs)
	}
	objects := decode(t, out)
	last := objects[len(objects)-1]
	for key, want := range map[string]any{
		"noise": "skellam", "noise_multiplier": 2.0, "clip": 0.5, "noise_shares": 10.0, "ring_bits": 14.0,
		"count_bits": 0.0, "lost_rounds": 0.0,
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
	if code != 0 || last["noise"] != "none" || last["noise_multiplier"] != 0.0 ||
		last["clip"] != 0.0 || last["noise_stddev"] != 0.0 || last["count_bits"] == 0.0 {
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
		{"--noise loud", 2, `--noise "loud": want none, key,`},
		{"--clip 2", 2, "training.submit: updates are clipped, and weights are not"},
		{"--noise none --bits 16", 2, "--bits: it has no effect: there is no noise"},
		{"--noise skellam --range 3", 2, "--range: sums with noise use --bits"},
		{"--noise skellam --noise-multiplier 0", 2,
			"--noise-multiplier: 0 is outside its range\nWrite a number: above 0"},
		{"--noise skellam --noise-multiplier NaN", 2, "--noise-multiplier: NaN"},
		{"--noise skellam --epsilon -1", 2, "--epsilon: -1 is outside its range"},
		{"--noise skellam --delta 0", 2, "--delta: 0 is outside its range"},
		{"--noise skellam --delta 1", 2, "--delta: 1 is outside its range"},
		{"--delta 1e-6", 2, "--delta: it has no effect: there is no noise"},
		{"--noise none --epsilon 1", 2, "--epsilon: it has no effect: there is no noise"},
		{"--epsilon 0.01 --bits 12", 2, "--bits: 12 is too few for the sum of 4 parties and noise of\nmultiplier"},
		{"--noise skellam --clip -1", 2, "--clip: -1 is outside its range"},
		{"--noise skellam --bits 65", 2, "--bits: 65 is outside its range"},
		{"--noise skellam --bits 3", 2, "--bits: 3 is outside its range"},
		{"--noise discrete-laplace --noise-multiplier 1e7 --bits 64", 2, "Use fewer bits, or less noise."},
		{"--noise skellam --noise-multiplier 1e-12", 2, "Use a larger multiplier"},
	} {
		code, out, errs := call(t.Context(), append(strings.Fields(quick), strings.Fields(c.args)...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, %q; want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
		clitest.Message(t, errs)
	}
}

// With a budget alone the noise is calibrated to it, and all rounds fit.
func TestBudget(t *testing.T) {
	code, out, errs := call(t.Context(),
		strings.Fields(noisyRun+" --bits 20 --epsilon 4 --delta 1e-6 --json")...)
	if code != 0 || !warnedOrQuiet(errs) {
		t.Fatalf("code %d, %q", code, errs)
	}
	objects := decode(t, out)
	last := objects[len(objects)-1]
	spent := last["spent"].(map[string]any)
	if e := spent["epsilon"].(float64); len(objects) != 3 || e > 4 || e < 3.95 {
		t.Errorf("%d objects, epsilon %v, want just below 4", len(objects), e)
	}
	for key, want := range map[string]any{
		"noise": "discrete-gaussian", "stopped": false, "complete": true,
	} {
		if last[key] != want {
			t.Errorf("%s is %v, want %v", key, last[key], want)
		}
	}
	budget, public := last["budget"].(map[string]any), last["spent_public"].(map[string]any)
	if spent["accountant"] != "PLD" || spent["delta"] != 1e-6 || spent["server"] != "cheating" ||
		public["server"] != "public" || budget["epsilon"] != 4.0 || budget["server"] != "cheating" {
		t.Errorf("%v, %v of %v", spent, public, budget)
	}
	after := func(k int) float64 { return objects[k]["spent"].(map[string]any)["epsilon"].(float64) }
	if first, second := after(0), after(1); first <= 0 ||
		first >= second {
		t.Errorf("epsilon is %v after a round and %v after two", first, second)
	}
}

// A delta above one in the parties, or in the records, is told.
func TestLargeDeltaIsTold(t *testing.T) {
	const parties = "simulate --clients 8 --rows-per-client 5 --rounds 1 --noise discrete-gaussian " +
		"--noise-multiplier 1 --delta "
	for args, caution := range map[string]string{
		parties + "0.1":                "",
		parties + "0.2":                "delta = 0.2 is above 1 / 8 units",
		parties + "0.02 --unit record": "",
		parties + "0.03 --unit record": "delta = 0.03 is above 1 / 40 units",
	} {
		_, out, _ := call(t.Context(), strings.Fields(args)...)
		if !strings.Contains(out, "Caution: "+caution) && caution != "" ||
			strings.Contains(out, "Caution") != (caution != "") {
			t.Errorf("%s: no %q in\n%s", args, caution, out)
		}
		_, out, _ = call(t.Context(), strings.Fields(args+" --json")...)
		objects := decode(t, out)
		if said, _ := objects[len(objects)-1]["caution"].(string); !strings.HasPrefix(said, caution) ||
			(said == "") != (caution == "") {
			t.Errorf("%s --json: %q", args, said)
		}
	}
}

// With noise of the user's own the budget ends the run, or does not let it begin.
func TestBudgetStops(t *testing.T) {
	for args, want := range map[string]string{
		" --epsilon 1.5 --noise-multiplier 3": "The run ended after 1 round: with one more, epsilon 1.",
		" --epsilon 1 --noise-multiplier .5":  "No round was begun: with the first, epsilon ",
	} {
		code, out, errs := call(t.Context(), strings.Fields(noisyRun+" --bits 20"+args)...)
		begun := strings.HasPrefix(want, "The run")
		if (code == 0) != begun || warnedOrQuiet(errs) != begun || !strings.Contains(out, want) {
			t.Errorf("%s: code %d, %q, no %q in\n%s", args, code, errs, want, out)
		}
		clitest.Width(t, out)
	}
}

// A budget that ends a run is about whom it protects.
func TestBudgetOfRecordsStops(t *testing.T) {
	const run = "simulate --unit record --clients 4 --rows-per-client 150 --rounds 4 " +
		"--noise-multiplier 3 --epsilon "
	for epsilon, want := range map[string]string{
		"0.6": "with one more, epsilon 0.",
		"0.1": "with the first, epsilon 0.",
	} {
		_, out, _ := call(t.Context(), strings.Fields(run+epsilon)...)
		about := "at most epsilon " + epsilon + " at delta 1e-05 for each record of a party, against a "
		beyond := " at delta 1e-05 is beyond the budget, epsilon " + epsilon + " at delta 1e-05."
		for _, want := range []string{want, about, beyond} {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("%s: no %q in\n%s", epsilon, want, out)
			}
		}
		clitest.Width(t, out)
	}
}

// Correlated noise is too much where it is in sums of rounds: what it is in one of them,
// which later ones take back, is no reason to warn.
func TestNoiseOfTurnsWarns(t *testing.T) {
	const run = "simulate --clients 60 --rows-per-client 40 --rounds 40 --steps 1 --rate 1 " +
		"--clip 0.1 --set world.fidelity=ring --set world.evaluate_every=40 --noise discrete-gaussian " +
		"--factorise 10 --epsilon "
	for epsilon, warns := range map[string]bool{"8": false, "2": true} {
		code, _, errs := call(t.Context(), strings.Fields(run+epsilon)...)
		said := strings.Join(strings.Fields(errs), " ")
		about := strings.Contains(said, "as independent noise")
		if code != 0 || (errs != "") != warns || about != warns {
			t.Errorf("epsilon %s: code %d, %q", epsilon, code, errs)
		}
	}
}
