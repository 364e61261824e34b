package account

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
)

// call runs a program with these commands.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return clitest.Call(ctx, args, Command(), CalibrateCommand())
}

// accounted runs account or calibrate with --json.
func accounted(t *testing.T, args string) map[string]any {
	t.Helper()
	code, out, errs := call(t.Context(), append(strings.Fields(args), "--json")...)
	if code != 0 || errs != "" {
		t.Fatalf("%s: code %d, %q", args, code, errs)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// claimOf is a claim, or a budget, of what was printed.
func claimOf(object map[string]any, name string) map[string]any {
	claim, _ := object[name].(map[string]any)
	return claim
}

func epsilonOf(object map[string]any) float64 {
	return claimOf(object, "claim")["epsilon"].(float64)
}

// The values are exact ones (closed forms, golden files exact_gaussian and
// exact_discrete) or, with a tolerance, those of dp_accounting 0.6.0
// (pld_sampled_gaussian, laplace, pld_discrete_gaussian).
func TestAccountValues(t *testing.T) {
	for _, c := range []struct {
		args       string
		want       float64
		tolerance  float64 // of the upper bound, relative
		accountant string
	}{
		{"gaussian --noise-multiplier 0.5", 9.997256146434301, 1e-6, "PLD"},
		{"gaussian --noise-multiplier 1 --rate 0.01 --rounds 10000", 6.187745, 1e-3, "PLD"},
		{"laplace --noise-multiplier 0.5 --delta 0", 2, 1e-6, "PLD"},
		{"laplace --rate 0.01 --rounds 1000 --delta 1e-9", 1.695902212349004, 1e-3, "PLD"},
		{"discrete-gaussian", 4.430238055279414, 1e-3, "PLD"},
		{"discrete-gaussian --noise-multiplier 2 --sensitivity 5 --rounds 100 --delta 1e-6",
			35.56647104866165, 1e-3, "PLD"},
		{"discrete-laplace --noise-multiplier 2 --sensitivity 3 --delta 0", 0.5, 1e-6, "PLD"},
	} {
		got := accounted(t, "account "+c.args)
		claim := claimOf(got, "claim")
		upper, lower := claim["epsilon"].(float64), claim["at_least"].(float64)
		if lower > c.want*(1+1e-9) || upper > c.want*(1+c.tolerance) ||
			upper < c.want*(1-c.tolerance) || lower > upper || claim["accountant"] != c.accountant {
			t.Errorf("%s: %v, want about %v", c.args, claim, c.want)
		}
	}
}

func TestAccountKeys(t *testing.T) {
	const sampled = "account gaussian --noise-multiplier 2 --rate 0.5 --rounds 3 --delta 1e-6"
	got := accounted(t, sampled+" --adversary server")
	for key, want := range map[string]any{
		"mechanism": "gaussian", "noise_multiplier": 2.0, "rounds": 3.0, "rate": 0.5,
		"sensitivity": 1.0, "dimension": 1.0, "shares": 1.0,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	server := claimOf(got, "claim")
	for key, want := range map[string]any{
		"server": "curious", "adjacency": "zero-out", "accountant": "PLD", "unit": "party",
		"delta": 1e-6, "colluders": 0.0,
	} {
		if server[key] != want {
			t.Errorf("%s is %v, want %v", key, server[key], want)
		}
	}
	public := accounted(t, sampled)
	if other := claimOf(got, "other"); !reflect.DeepEqual(other, claimOf(public, "claim")) ||
		other["server"] != "public" || other["adjacency"] != "add-remove" {
		t.Errorf("other is %v, want that of %v", other, public)
	}
	// Against the server sampling does not count.
	all := accounted(t, "account gaussian --noise-multiplier 2 --rounds 3 --delta 1e-6")
	if c := claimOf(all, "claim"); c["epsilon"] != server["epsilon"] || c["server"] != "public" ||
		all["other"] != nil {
		t.Errorf("with every client %v, against the server %v", all, got)
	}
	// A vector is as one coordinate, and names the one that attains the lower bound.
	vector := claimOf(accounted(t, "account skellam --sensitivity 1000 --dimension 4096"), "claim")
	if vector["accountant"] != "PLD" || vector["neighbour"] != "1 coordinate by 1000" ||
		vector["at_least"].(float64) < 0.99*vector["epsilon"].(float64) {
		t.Error(vector)
	}
	// No finite bound is null, with a reason.
	none := claimOf(accounted(t, "account gaussian --delta 0"), "claim")
	if none["epsilon"] != nil || none["reason"] == "" {
		t.Error(none)
	}
	one := claimOf(accounted(t, "account gaussian --replace-one"), "claim")
	two := claimOf(accounted(t, "account gaussian --noise-multiplier 0.5"), "claim")
	if one["adjacency"] != "replace-one" ||
		math.Abs(one["epsilon"].(float64)/two["epsilon"].(float64)-1) > 1e-3 {
		t.Errorf("replace-one %v, half the noise %v", one, two)
	}
}

func TestAccountTable(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"account gaussian --rate 0.1 --rounds 10",
			"10 rounds, each party in each with probability 0.1"},
		{"account gaussian", "epsilon 4.3772 (at least 4.3771) at delta 1e-05 for each party, against " +
			"those who see released sums, by add-remove neighbours; assumes sums"},
		{"account gaussian --adversary server", "at delta 1e-05 for each party, against a server that " +
			"is curious; assumes sums PLD proves the upper bound. It assumes sums: sums have as many"},
		{"account gaussian --unit record --rate 0.1",
			"for each record of a party, against a server that is curious; assumes coins, sums"},
		{"account gaussian --delta 0", "There is no finite epsilon: "},
		{"account gaussian --noise-multiplier 1e-300", "No finite epsilon could be proved: epsilon exceeds"},
		{"account laplace", "1 round, with every party"},
		{"account discrete-gaussian --sensitivity 50 --dimension 64 --shares 10",
			"64 coordinates, the sum of 10 shares"},
		{"calibrate gaussian --epsilon 1", "keeps within epsilon 1 at delta 1e-05 for each party, " +
			"against those who see released sums, by add-remove neighbours; assumes sums."},
	} {
		code, out, errs := call(t.Context(), strings.Fields(c.args)...)
		if code != 0 || errs != "" || !strings.Contains(strings.Join(strings.Fields(out), " "),
			c.want) {
			t.Errorf("%s: code %d, %q, no %q in\n%s", c.args, code, errs, c.want, out)
		}
		clitest.Width(t, out)
	}
	for _, help := range []string{"account -h", "account gaussian -h", "help account",
		"calibrate --help", "help calibrate"} {
		code, out, errs := call(t.Context(), strings.Fields(help)...)
		if code != 0 || errs != "" {
			t.Errorf("%s: code %d, %q", help, code, errs)
		}
		for _, want := range []string{"discrete-laplace", "--noise-multiplier Z", "--rate Q",
			"--rounds T", "--delta D", "--sensitivity S", "Examples:", "Exit codes:"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s does not show %q", help, want)
			}
		}
		clitest.Width(t, out)
	}
}

// What calibrate finds, account confirms; a little less noise, or one round more,
// would be over the budget. The first is of dp_accounting 0.6.0 (calibration).
func TestCalibrate(t *testing.T) {
	got := accounted(t, "calibrate gaussian --epsilon 8 --rate 0.1 --rounds 1000")
	if z := got["noise_multiplier"].(float64); math.Abs(z/2.0507326354779947-1) > 1e-3 ||
		got["found"] != "noise-multiplier" || claimOf(got, "budget")["epsilon"] != 8.0 {
		t.Error(got)
	}
	for _, c := range []struct{ find, less string }{
		{"calibrate laplace --epsilon 2 --rounds 5", ""},
		{"calibrate skellam --epsilon 1 --sensitivity 20", ""},
		{"calibrate discrete-gaussian --epsilon 1 --sensitivity 100 --dimension 32 --shares 4", ""},
		{"calibrate discrete-laplace --epsilon 0.5 --delta 0", ""},
	} {
		got := accounted(t, c.find)
		of := claimOf(got, "budget")["epsilon"].(float64)
		if e := epsilonOf(got); e > of || e < 0.999*of {
			t.Errorf("%s: epsilon %v", c.find, e)
		}
	}
	got = accounted(t,
		"calibrate gaussian --epsilon 4 --find rounds --noise-multiplier 5 --adversary server")
	if n := got["rounds"].(float64); epsilonOf(got) > 4 || n < 2 {
		t.Error(got)
	}
	longer := jsonNumber(got["rounds"].(float64) + 1)
	more := accounted(t, "account gaussian --noise-multiplier 5 --rounds "+longer)
	if epsilonOf(more) <= 4 {
		t.Errorf("a round more than %v still fits", got["rounds"])
	}
	got = accounted(t,
		"calibrate gaussian --epsilon 4 --find rate --noise-multiplier 2 --rounds 1000")
	if e := epsilonOf(got); e > 4 || e < 3.99 {
		t.Error(got)
	}
}

func jsonNumber(x float64) string {
	b, _ := json.Marshal(x)
	return string(b)
}

func TestAccountUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"account", 2, "the first argument must be the mechanism\nUse one of gaussian, laplace,"},
		{"account --delta 1", 2, "the mechanism must come first, before all flags\nUse one of"},
		{"account cauchy", 2, `"cauchy" is not a mechanism`},
		{"account gaussian laplace", 2,
			"unexpected argument \"laplace\"\nThe mechanism comes first, then flags"},
		{"account skellam --noise-multiplier 1e-300", 2,
			"--noise-multiplier: 1e-300 times the sensitivity"},
		{"account skellam --noise-multiplier 1e300 --dimension 3", 2,
			"--noise-multiplier: 1e+300 times"},
		{"account discrete-gaussian --noise-multiplier 1e80", 1,
			"account: the noise is too large to tabulate: about 3.4e+81 points"},
		{"account gaussian --noise-multiplier 0", 2, "--noise-multiplier: 0 is not a noise multiplier"},
		{"account gaussian --noise-multiplier NaN", 2, "--noise-multiplier: NaN is not a noise multiplier"},
		{"account gaussian --rate 0", 2, "--rate: 0 is not a probability of taking part"},
		{"account gaussian --rate 1.5", 2, "--rate: 1.5 is"},
		{"account gaussian --rounds 0", 2, "--rounds: 0 is too few"},
		{"account discrete-laplace --sensitivity 1073741824", 1, "Count in larger units, so that"},
		{"account gaussian --rounds 99999999999999", 2, "--rounds: 99999999999999 is too many"},
		{"account gaussian --delta 1", 2, "--delta: 1 is not a probability below 1"},
		{"account gaussian --dimension 3", 2,
			"--dimension: under gaussian noise all vectors are as one"},
		{"account skellam --shares 3", 2, "--shares: shares of skellam noise add up exactly"},
		{"account skellam --sensitivity 1.5", 2, "--sensitivity: 1.5 is not whole"},
		{"account laplace --replace-one --rate .5", 2,
			"--replace-one: there is no bound for laplace noise"},
		{"account skellam --dimension 4 --replace-one", 2,
			"--replace-one: there is no bound for vectors"},
		{"account gaussian --adversary me", 2, "want public or server"},
		{"calibrate gaussian", 2, "--epsilon is required: it is the budget"},
		{"calibrate gaussian --epsilon 0", 2, "--epsilon: 0 is not a budget"},
		{"calibrate gaussian --epsilon 1 --noise-multiplier 3", 2,
			"--noise-multiplier: calibrate is looking for it"},
		{"calibrate gaussian --epsilon 1 --find luck", 2, "want noise-multiplier, rounds or rate"},
		{"calibrate gaussian --epsilon 1 --delta 0", 1,
			"target cannot be reached: at delta 0 no amount of gaussian"},
		{"calibrate laplace --epsilon 1e-300 --delta 0", 1,
			"target cannot be reached\nAsk for a larger"},
		{"calibrate gaussian --epsilon 0.01 --find rounds", 1,
			"target cannot be reached: one round spends epsilon 4.3772 (at"},
		{"calibrate gaussian --epsilon 1 --find rounds --delta 0", 1,
			"one round spends epsilon infinite\nat delta 0"},
		{"calibrate skellam --epsilon 0.01 --find rounds --dimension 3", 1,
			"one round spends epsilon "},
		{"calibrate gaussian --epsilon 1 --find rate --adversary server", 2,
			"sampling does not count against the server"},
	} {
		code, out, errs := call(t.Context(), strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, %q; want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
		clitest.Message(t, errs)
	}
}

// Of a client that submits in 20 of 200 rounds 20 are charged, and noise is found for that many.
func TestParticipations(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"account gaussian --noise-multiplier 1.13 --participations 20 --of 200",
			"20 of 200 rounds with a party"},
		{"account gaussian --noise-multiplier 1.13 --participations 20 --of 200", "24.03"},
		{"calibrate gaussian --epsilon 8 --participations 20 --of 200", "noise-multiplier 2.684"},
		{"calibrate gaussian --epsilon 8 --participations 10 --of 200", "noise-multiplier 1.898"},
		{"calibrate gaussian --epsilon 8 --participations 2 --of 200", "noise-multiplier 0.8488"},
		{"account gaussian --participations 3 --of 2", "3 of 2 rounds are not possible"},
		{"account gaussian --participations 3", "Give both"},
		{"account gaussian --participations 3 --of 4 --rounds 3", "--rounds: a client is charged"},
		{"account gaussian --participations 3 --of 4 --rate 0.5", "--rate: the party that picks"},
	} {
		_, out, errors := call(t.Context(), strings.Fields(c.args)...)
		if !strings.Contains(out+errors, c.want) {
			t.Errorf("%s: %s%s, want %q", c.args, out, errors, c.want)
		}
	}
}

// A question about records is answered with what a job by records spends: their coins count
// against the server too.
func TestAccountRecords(t *testing.T) {
	const run = "account discrete-gaussian --noise-multiplier 3 --sensitivity 20000 --dimension 105 " +
		"--rate 0.1 --rounds 100 --adversary server"
	// dp_accounting 0.6.0 has 1.3878 for the Poisson-sampled Gaussian.
	record := accounted(t, run+" --unit record")
	if c := claimOf(record, "claim"); math.Abs(epsilonOf(record)/1.387843009019984-1) > 0.01 ||
		c["unit"] != "record" || c["adjacency"] != "zero-out" {
		t.Errorf("%v", record)
	}
	public := accounted(t, strings.Replace(run, "server", "public", 1)+" --unit record")
	if !reflect.DeepEqual(public["claim"], record["claim"]) {
		t.Errorf("%v, want what holds against a server too", public)
	}
	party := accounted(t, run)
	if epsilonOf(party) < 10 || claimOf(party, "claim")["unit"] != "party" {
		t.Errorf("%v", party)
	}
	found := accounted(t, "calibrate gaussian --epsilon 1 --rate 0.3 --rounds 200 --unit record "+
		"--adversary server")
	if z := found["noise_multiplier"].(float64); z < 15.8 || z > 16.1 {
		t.Errorf("multiplier %v", z)
	}
}

// Where noise is correlated over 20 of 100 rounds, a client is charged for five turns: as one that
// submits whole vectors in five rounds, with z = 8.34 where 100 charges take 37.3.
func TestFactorise(t *testing.T) {
	const job = "gaussian --epsilon 1 --rounds 100 --adversary server"
	found := accounted(t, "calibrate "+job+" --factorise 20")
	if z := found["noise_multiplier"].(float64); math.Abs(z/8.34-1) > 0.001 ||
		found["rounds"] != 100.0 || found["factorise"] != 20.0 ||
		claimOf(found, "claim")["adjacency"] != "zero-out" {
		t.Errorf("%v", found)
	}
	if all := accounted(t, "calibrate "+job); all["noise_multiplier"].(float64) < 37.2 ||
		all["factorise"] != nil {
		t.Errorf("%v", all)
	}
	const z = "account gaussian --noise-multiplier 8.342 "
	bands := accounted(t, z+"--rounds 100 --factorise 20")
	five := accounted(t, z+"--participations 5 --of 100")
	cut := accounted(t, z+"--rounds 81 --factorise 20") // the fifth band is cut short
	if epsilonOf(bands) != epsilonOf(five) || epsilonOf(cut) != epsilonOf(five) {
		t.Errorf("%v, of five rounds %v, cut %v", bands, five, cut)
	}
	// Discrete laws cost as much, of vectors and of one coordinate, and name who attains that.
	for _, law := range []string{"discrete-gaussian", "skellam", "discrete-gaussian --shares 300"} {
		for _, d := range []string{"1", "105"} {
			got := accounted(t, "account "+law+" --noise-multiplier 8.342 --sensitivity 20000 --dimension "+
				d+" --rounds 100 --factorise 20")
			if math.Abs(epsilonOf(got)/epsilonOf(bands)-1) > 1e-3 {
				t.Errorf("%s, %s coordinates: %v", law, d, got)
			}
			who, _ := claimOf(got, "claim")["neighbour"].(string)
			if law == "discrete-gaussian" && d == "105" && !strings.Contains(who, "20 sums of a band") {
				t.Errorf("%s: %q", law, who)
			}
		}
	}
	for _, c := range []struct{ args, want string }{
		{"account gaussian --rounds 100 --factorise 20",
			"100 rounds in bands of 20: a party is charged 5 times"},
		{"account laplace --rounds 9 --factorise 2", "--factorise: a band's budget is an L2 norm"},
		{"account discrete-laplace --rounds 9 --factorise 2", "--factorise: a band's budget"},
		{"account gaussian --rounds 9 --factorise 1", "--factorise: no bands of 1"},
		{"account gaussian --rounds 9 --factorise 10", "Use 2 to 9, the number of rounds."},
		{"account gaussian --rounds 2 --factorise 3", "Use 2, the number of rounds."},
		{"account gaussian --factorise 2", "Leave it out, or give more rounds."},
		{"account gaussian --rounds 9 --factorise -2", "--factorise: no bands of -2"},
		{"account gaussian --rounds 9 --factorise 10", "--factorise: no bands of 10"},
		{"account gaussian --rounds 9 --factorise 3 --rate 0.5", "--rate: one coin for each part"},
		{"account gaussian --rounds 9 --factorise 3 --unit record", "--factorise: a record may be part of"},
		{"account gaussian --rounds 9 --factorise 3 --replace-one", "--replace-one: there is no bound"},
		{"account gaussian --factorise 3 --participations 3 --of 9", "--factorise: with bands"},
		{"calibrate gaussian --epsilon 1 --factorise 3 --find rounds", "--factorise: a client is charged"},
		{"calibrate gaussian --epsilon 1 --rounds 9 --factorise 3 --find rate", "--rate: one coin"},
	} {
		_, out, errs := call(t.Context(), strings.Fields(c.args)...)
		said := strings.Join(strings.Fields(out+errs), " ")
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: %s, want %q", c.args, said, c.want)
		}
	}
}

// A delta above one in the units is told, where their number is given.
func TestLargeDelta(t *testing.T) {
	const args = "account gaussian --delta 1e-3 --rounds 2"
	for more, caution := range map[string]bool{
		"": false, " --units 1000": false, " --units 1001": true,
	} {
		code, out, errs := call(t.Context(), strings.Fields(args+more)...)
		if code != 0 || errs != "" || strings.Contains(out, "Caution: delta = 0.001") != caution {
			t.Errorf("%s: code %d, %q, %s", more, code, errs, out)
		}
		clitest.Width(t, out)
		if said, _ := accounted(t, args+more)["caution"].(string); (said != "") != caution {
			t.Errorf("%s: caution %q", more, said)
		}
	}
	if code, _, errs := call(t.Context(), strings.Fields(args+" --units -1")...); code != 2 ||
		!strings.Contains(errs, "--units") {
		t.Errorf("code %d, %q", code, errs)
	}
}
