package simulate

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/internal/realdata"
)

// federated is a run of other rules on made-up rows.
const federated = "simulate --rounds 2 --clients 4 --rows-per-client 50"

func TestTrainingTable(t *testing.T) {
	for args, want := range map[string]string{
		"--model softmax": "softmax, 82 weights",
		"--model logistic --epochs 2": "logistic, 40 weights training 2 rounds " +
			"of 2 local epochs over all rows",
		"--model mlp:8,4": "mlp:8,4, 374 weights",
		"--split dirichlet-labels --rule fedprox --mu 0.1": "dealt by dirichlet-labels",
		"--rule scaffold+fedyogi --mask soft":              "mask soft, threshold 0.4",
		"--rule fedga --beta 0.1 --local-steps 3": "2 rounds of 3 local steps over all rows; " +
			"rule fedga",
		"--mask hard --mask-threshold 0.9 --clip 0.1": "clipping updates to an L2 norm of 0.1",
		"--per-round 3": "3 in each round",
		"--model softmax --drop 0.1 --clients 10": "over private sums",
		"--model softmax --epsilon 20": "at most epsilon 20 at delta 1e-05 for each party, " +
			"against a server that cheats",
		"--mask soft --noise skellam --noise-multiplier 2": "epsilon is stated at delta 1e-05; there " +
			"is no budget",
	} {
		code, out, errs := call(t.Context(), strings.Fields(federated+" "+args)...)
		if code != 0 || !warnedOrQuiet(errs) ||
			!strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%s: code %d, %q, no %q in\n%s", args, code, errs, want, out)
		}
		clitest.Width(t, out)
	}
	code, out, errs := call(t.Context(),
		strings.Fields(federated+" --model softmax --noise skellam --noise-multiplier 1 --epsilon 1")...)
	if code != 1 || !strings.Contains(errs, "the privacy budget does not allow one round") ||
		!strings.Contains(strings.Join(strings.Fields(out), " "),
			"is beyond the budget, epsilon 1 at delta 1e-05.") {
		t.Errorf("budget: code %d, %q\n%s", code, errs, out)
	}
}

// What a census run says about drop-outs and costs, a training says too.
func TestTrainingDropOuts(t *testing.T) {
	const args = "simulate --clients 10 --rows-per-client 20 --rounds 2 --local-steps 5 --model " +
		"logistic --drop 0.2"
	code, out, errs := call(t.Context(), strings.Fields(args)...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	clitest.Width(t, out)
	for _, want := range []string{
		"ring      31 bits for each coordinate of an update: up to 64, 20 binary places\n",
		"recovery  cheating server, 0 colluders; 5 of 9 shares rebuild a secret;\n          at least " +
			"8 of 10 parties in a sum\n",
		"drop-outs 2 of 10 parties in each round, at random moments\n",
		"\nCost of a party, whole run", "\n  key exchange, once ", "The largest part of a party's time",
		"The run took ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	_, help, _ := call(t.Context(), "help", "simulate", "all")
	code, out, errs = call(t.Context(), strings.Fields(args+" --json")...)
	var last map[string]any
	for line := range strings.Lines(out) {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatal(err)
		}
		for key := range last {
			if !regexp.MustCompile(`\b` + key + `\b`).MatchString(help) {
				t.Errorf("help does not explain %s", key)
			}
		}
	}
	for key, want := range map[string]any{
		"recovery": "cheating", "drop": 0.2, "threshold": 5.0, "min_survivors": 8.0, "lost_rounds": 0.0,
		"ring_bits": 31.0, "noise": "none",
	} {
		if last[key] != want {
			t.Errorf("%s is %v, want %v", key, last[key], want)
		}
	}
	if up, _ := last["setup_bytes_up"].(float64); code != 0 || errs != "" || up <= 0 {
		t.Errorf("code %d, %q, set-up of %v bytes", code, errs, up)
	}

	code, out, errs = call(t.Context(), strings.Fields(args+" --drop 0.8 --per-round 8")...)
	lost := "hushsum simulate: there is no sum: every round was lost\nLower --drop.\n"
	if code != 1 || errs != lost ||
		!strings.Contains(out, "2 of 2 rounds were lost: too few") ||
		!strings.Contains(out, "at least 7 of 8 parties") ||
		!strings.Contains(out, "\nCost of one in every round") {
		t.Errorf("code %d, %q\n%s", code, errs, out)
	}
}

// Over digits, as over all data, the private model is the one in the clear but for
// rounding.
func TestTrainingDigits(t *testing.T) {
	dir := realdata.Dir(t, "digits")
	t.Setenv("HUSHSUM_DATA", filepath.Dir(dir))
	for _, data := range []string{"digits", dir} {
		code, out, errs := call(t.Context(), "simulate", "--data", data, "--mask", "soft", "--rounds",
			"10", "--json")
		if code != 0 || errs != "" {
			t.Fatalf("code %d, %q", code, errs)
		}
		var objects []map[string]any
		for line := range strings.Lines(out) {
			var o map[string]any
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, o)
		}
		last := objects[len(objects)-1]
		if len(objects) != 11 || last["complete"] != true || last["parameters"] != 650.0 ||
			last["max_abs_diff"].(float64) > 1e-4 ||
			last["accuracy"].(float64) < 0.85 ||
			math.Abs(last["accuracy"].(float64)-last["clear_accuracy"].(float64)) > 0.003 {
			t.Errorf("%v", last)
		}
		if r := objects[0]; r["round"] != 1.0 || r["clients"] != 10.0 || r["mask"].(float64) >= 1 ||
			r["spent"] != nil {
			t.Errorf("%v", r)
		}
	}
}

func TestTrainingUsage(t *testing.T) {
	empty := t.TempDir()
	t.Setenv("HUSHSUM_DATA", empty)
	if err := os.Mkdir(filepath.Join(empty, "digits"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(empty, "digits", "digits.csv.gz"), []byte("no gzip"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--model tree", 2, `--model: "tree" is outside its range`},
		{"--model lenet", 2, "--model: lenet takes square images of 16 pixels"},
		{"--model mlp:x", 2, `--model: "mlp:x" is outside its range`},
		{"--model mlp:-1", 2, `"mlp:-1" is outside its range`},
		{"--split fair", 2, `--split "fair": want`},
		{"--rule luck", 2, `--rule: there is no "luck"`},
		{"--rule momentum+fedadam", 2, "two rules for one side"},
		{"--rule fedavg+fedprox+fedga", 2, "two rules for one side"},
		{"--mask-threshold 0.5", 2, "there is no mask"},
		{"--concentration 0.5", 2, "it has no effect: it applies to the Dirichlet\nsplits only"},
		{"--model softmax --server-rate -1", 2, "--server-rate: -1 is outside its range"},
		{"--model softmax --fraction-bits 40 --range 1e9", 2, "the sum of 4 parties, updates up to"},
		{"--model softmax --range 0", 2, "--range: 0 is outside its range"},
		{"--model softmax --local-steps -1", 2, "--local-steps: -1 is outside its range"},
		{"--model softmax --rate -1", 2, "--rate: -1 is outside its range"},
		{"--model softmax --rate 1e5", 1, "round 1, party-1: a coordinate of the update is larger than"},
		{"--model mlp:16384,16384", 2, "--model: mlp:16384,16384 is too large: sums take up to\n268,435,456 weights"},
		{"--split writers", 2, "--split: the data does not record who wrote which row"},
		{"--split colour", 2, "--split: colour needs images such as those of mnist"},
		{"--final", 2, "--final: the set has no test rows of its own"},
		{"--split dirichlet-labels --concentration 1e9", 2, "--split: concentration 1e+09, want"},
		{"--model softmax --recovery --colluders 4", 2, "--colluders: "},
		{"--model softmax --noise skellam --delta 0", 2, "--delta: 0 is outside its range"},
		{"--mask full", 2, `--mask "full": want none, soft or hard`},
		{"--mask soft --mask-threshold 2", 2, "--mask-threshold: 2 is outside its range"},
		{"--mu 1", 2, "--mu: "},
		{"--beta 1", 2, "--beta: "},
		{"--rule scaffold --momentum 0.9", 2, "--momentum: "},
		{"--rule scaffold --epsilon 1", 2, "--rule: "},
		{"--rule fedga --noise skellam", 2, "--rule: "},
		{"--model softmax --per-round 9", 2, "--per-round: 9 is outside its range"},
		{"--model softmax --clip -1", 2, "--clip: -1 is outside its range"},
		{"--model softmax --clients 1", 2, "--clients: 1 is outside its range"},
		{"--epochs 2 --local-steps 5", 2, "--local-steps: 5 steps and 2 passes"},
		{"--epochs -2", 2, "--epochs: -2 is outside its range"},
		{"--data digits", 1, "Fetch the files again."},
		{"--data mnist", 1, "Set HUSHSUM_DATA to the folder that holds the data sets"},
		{"--data adult", 1, "Set HUSHSUM_DATA to the folder that holds the data sets"},
	} {
		code, out, errs := call(t.Context(),
			append(strings.Fields(federated), strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.says) || c.code == 2 && out != "" {
			t.Errorf("%s: code %d, %q, %q; want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
		clitest.Message(t, errs)
	}
}
