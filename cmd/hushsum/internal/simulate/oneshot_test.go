package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
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
