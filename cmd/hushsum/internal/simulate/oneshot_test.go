package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
)

// The ε that simulate prints for sums of one message a party is that of account for the
// same law: of as many shares, as wide relative to the sensitivity, in as many rounds.
func TestOneshotEpsilon(t *testing.T) {
	code, out, errs := call(t.Context(), strings.Fields("simulate --protocol oneshot --clients 12 "+
		"--rows-per-client 20 --rounds 3 --local-steps 5 --noise discrete-gaussian "+
		"--noise-multiplier 1.5 --clip 0.5 --drop 0.1 --colluders 2 --json")...)
	if code != 0 || !warnedOrQuiet(errs) {
		t.Fatalf("code %d, %q", code, errs)
	}
	objects := decode(t, out)
	last := objects[len(objects)-1]
	shares, parameters := last["noise_shares"].(float64), last["parameters"].(float64)
	if shares != last["min_survivors"].(float64)-2 || last["protocol"] != "oneshot" {
		t.Fatalf("%v shares of %v", shares, last)
	}
	code, out, errs = call(t.Context(), strings.Fields(fmt.Sprintf("account discrete-gaussian "+
		"--sensitivity 1000 --noise-multiplier %v --dimension %v --shares %v --rounds 3 --delta %v --json",
		last["noise_multiplier"], parameters, shares, last["spent"].(map[string]any)["delta"]))...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	var want struct{ Claim accounting.Claim }
	if err := json.Unmarshal([]byte(out), &want); err != nil {
		t.Fatal(err)
	}
	printed, of := last["spent"].(map[string]any)["epsilon"].(float64), want.Claim.Bare().Upper
	if math.Abs(printed-of) > 1e-6*of || want.Claim.Terms().Adjacency != accounting.ZeroOut {
		t.Errorf("simulate prints %v, account %v", printed, want.Claim)
	}
}

// A job with declared weights and key noise says both, and no other encoding; the warning of more
// noise than signal is of a mean over the weights.
func TestWeightsAndKeyNoise(t *testing.T) {
	file := clitest.Written(t, `name = "weights"
rounds = 1
parties = { count = 8, drop_out = 0.25, colluders = 4, weights = [40, 120, 300, 80, 80, 40, 200, 60] }
sum = { protocol = "oneshot", members = 8, bounded = true, faults = 1, colluders = 4 }
privacy = { noise = "key", clip = 1.0 }
model = { name = "logistic" }
`)
	code, out, errs := call(t.Context(), "simulate", file)
	if code != 0 || !warnedOrQuiet(errs) {
		t.Fatalf("code %d, %q", code, errs)
	}
	text := clitest.Flat(out)
	for _, want := range []string{"weights 40 to 300, as declared",
		"20 bits for each coordinate of a turned update",
		"noise no more than hides keys: it protects no party and no record; updates clipped to 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	code, out, errs = call(t.Context(), "simulate", file, "--set", "privacy.noise=discrete-gaussian",
		"--set", "privacy.multiplier=1", "--set", "privacy.noise_by=committee", "--set",
		"sum.members=13", "--set", "sum.faults=2", "--set", "sum.max_weight=100")
	// The heaviest counts 100 times of 600, so that the noise of the 7 members that must suffice
	// deviates by 1/6 in each of 40 numbers, and that of all 13 by √(13/7) times as much.
	warned := strings.Contains(clitest.Flat(errs), "its L2 norm is 1.44")
	if !warned || strings.Contains(out, "by rows") {
		t.Errorf("code %d, %q\n%s", code, errs, out)
	}
}
