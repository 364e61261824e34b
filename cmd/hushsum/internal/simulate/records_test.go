package simulate

import (
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
)

// Records have a preset: the batch follows from the rows, the noise from epsilon, and what is
// printed names the unit.
func TestSimulateRecords(t *testing.T) {
	const run = "simulate --unit record --clients 4 --rows-per-client 150 --rounds 4 --epsilon 3 " +
		"--colluders 1"
	code, out, errs := call(t.Context(), strings.Fields(run+" --set world.evaluate_every=1 --json")...)
	if code != 0 || !warnedOrQuiet(errs) {
		t.Fatalf("code %d, %q", code, errs)
	}
	objects := decode(t, out)
	last := objects[len(objects)-1]
	accuracy, _ := last["accuracy"].(float64)
	inClear, _ := last["clear_accuracy"].(float64)
	spent, _ := last["spent"].(map[string]any)
	if e, _ := spent["epsilon"].(float64); spent["unit"] != "record" || e > 3 || e < 2.97 ||
		!(accuracy > 0.2) || !(inClear > 0.5) || last["noise_shares"] != 3. {
		t.Errorf("%v", last)
	}
	if last["epsilon"] != spent["epsilon"] || last["delta"] != 1e-5 {
		t.Errorf("epsilon %v at delta %v, and spent %v", last["epsilon"], last["delta"], spent)
	}
	if alone, _ := last["alone_accuracy"].(float64); !(alone > 0.5) {
		t.Errorf("alone a party has %v", alone)
	}
	code, out, errs = call(t.Context(), strings.Fields(run+" --set world.evaluate_every=3")...)
	text := strings.Join(strings.Fields(out), " ")
	if code != 0 || !warnedOrQuiet(errs) || math.IsNaN(accuracy) {
		t.Errorf("code %d, %q", code, errs)
	}
	for _, want := range []string{"sums of records' gradients", "180 expected, of 600",
		"each alone, mean of 4 0.", "without noise, a party has an accuracy of 0.",
		"gradients of each record of a party clipped to 0.35",
		"at most epsilon 3 at delta 1e-05 for each record of a party, against a server that cheats " +
			"with any 1 party; assumes coins",
		"It assumes coins: nothing but a party's submissions shows how its secret coins fell."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	clitest.Width(t, out)
	// More noise than signal is said before the run, with what to do.
	_, _, errs = call(t.Context(), strings.Fields(strings.Replace(run, "--epsilon 3", "--epsilon 0.01",
		1))...)
	if !strings.Contains(strings.Join(strings.Fields(errs), " "), "Raise --epsilon or --batch") {
		t.Errorf("%q", errs)
	}
	// What goes with the other unit only is refused.
	code, _, errs = call(t.Context(), strings.Fields(run+" --steps 3")...)
	if code != 2 || !strings.Contains(errs, "--steps") {
		t.Errorf("code %d, %q", code, errs)
	}
	code, _, errs = call(t.Context(), strings.Fields(run+" --group patient")...)
	if code != 2 || !strings.Contains(errs, "whose they are") {
		t.Errorf("code %d, %q", code, errs)
	}
}
