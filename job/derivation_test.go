package job_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
)

var ownEpsilon = regexp.MustCompile(`^0 certified: .* at most ([^ ]+) by this program, (.+)$`)

// derivationOf settles a job for as many parties as it counts, and derives its ε: nil for a job
// that is not valid, or has no noise, or too many parties to make up.
func derivationOf(t *testing.T, file string, text []byte) *job.Derivation {
	t.Helper()
	j, err := job.Parse(file, text)
	if err != nil {
		return nil
	}
	n := j.Size()
	if n == 0 {
		n = 20
	}
	if !j.Noisy() || n > 1000 || j.Model.File != "" || j.Privacy.Before != "" {
		return nil
	}
	with := job.Files{Roster: job.RosterOf(t, n)}
	if j.Oneshot() {
		with.Committee = job.CommitteeOf(t, j.WithDefaults().Sum.Members)
	}
	s, err := j.Settle(with)
	if err != nil {
		return nil
	}
	d, err := s.Derive()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if last := d.Steps[len(d.Steps)-1].Claim; math.IsInf(last.Bare().Upper, 1) {
		return nil
	}
	return d
}

// shippedDerivations are those of the job files of the repository, by their names.
func shippedDerivations(t *testing.T) map[string]*job.Derivation {
	t.Helper()
	all := map[string]*job.Derivation{}
	for _, pattern := range []string{"examples/queries", "service/federation/testdata/jobs",
		"service/cmd/hushsumd", "cmd/hushsum/internal/simulate/presets", "simulation/scenarios",
		"job/testdata/rules"} {
		files, err := filepath.Glob(filepath.Join("..", pattern, "*.toml"))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if d := derivationOf(t, name, text); d != nil {
				all[name] = d
			}
		}
	}
	return all
}

// randomJob is the text of a job that is likely to be valid.
func randomJob(r *rand.Rand) string {
	var b strings.Builder
	put := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	of := func(words ...string) string { return words[r.IntN(len(words))] }
	likely := func(p float64) bool { return r.Float64() < p }
	log := func(lo, hi float64) float64 { return lo * math.Exp(r.Float64()*math.Log(hi/lo)) }
	n := 3 + int(log(1, 100))
	rounds := int(log(1, 300))
	records, coin := likely(0.15), likely(0.15)
	put("name = \"random\"\nrounds = %d\nparties.count = %d", rounds, n)
	put("privacy.delta = %.1e", log(1e-9, 1e-3))
	if likely(0.2) { // noise for an ε is searched for, which takes ten times as long
		put("privacy.epsilon = %.3g", log(0.2, 60))
	} else {
		put("privacy.multiplier = %.3g", log(0.4, 20))
	}
	put("privacy.bits = %d", 14+r.IntN(30))
	put("privacy.clip = %.3g", log(0.01, 100))
	put("model.length = %d", int(log(1, 3000)))
	if likely(0.3) {
		put("parties.colluders = %d", 1+r.IntN(3))
	}
	if likely(0.6) {
		put("parties.drop_out = %.2f", 0.05+0.35*r.Float64())
	}
	family := of("discrete-gaussian", "discrete-gaussian", "skellam", "discrete-laplace")
	switch {
	case records:
		most := int(log(20, 5000))
		put("privacy.unit = \"record\"\nprivacy.records = %d\ntraining.batch = %d\n"+
			"privacy.submit_after = \"1s\"", most, 1+r.IntN(most))
	case coin:
		put("parties.hidden = %.2f\nprivacy.submit_after = \"1s\"", 0.05+0.9*r.Float64())
	case likely(0.3):
		family = "discrete-gaussian"
		put("sum.protocol = \"oneshot\"\nsum.faults = %d", 1+r.IntN(4))
		if likely(0.5) {
			put("privacy.noise_by = \"committee\"")
		}
		put("sum.covered = %v", likely(0.3))
	case likely(0.3):
		put("parties.per_round = %d", 2+r.IntN(n-1))
		if likely(0.5) {
			put("parties.participations = %d", 1+r.IntN(rounds))
		}
	}
	put("privacy.noise = %q", family)
	if likely(0.3) {
		put("sum = { adversary = \"curious\", sparse = true }")
	} else if likely(0.4) {
		put("sum.adversary = %q", of("cheating", "semi-malicious", "curious"))
	}
	if likely(0.15) {
		put("sum.max_weight = 100")
	}
	if likely(0.15) {
		put("metrics.share = 0.1")
	}
	return b.String()
}

// Another program, which shares no code with the accountant, certifies the ε of each derivation.
func TestDerivationsAreCertified(t *testing.T) {
	want := 40
	if suite.Long() {
		want = 2000
	}
	check := suite.Checker(t)
	type figures struct {
		count  int
		widest float64 // how far its ε is below the stated one, as a part of it
		took   time.Duration
	}
	by, theorems, done := map[string]*figures{}, map[string]int{}, 0
	certify := func(name string, d *job.Derivation) {
		done++
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		said := check(text)
		took := time.Since(began)
		m := ownEpsilon.FindStringSubmatch(said)
		if m == nil {
			t.Errorf("%s\n%s\n%s", name, strings.Join(d.Lines(), "\n"), said)
			return
		}
		own, err := strconv.ParseFloat(m[1], 64)
		stated := d.Steps[len(d.Steps)-1].Claim.Bare()
		if err != nil || own > stated.Upper || own < stated.Lower {
			t.Errorf("%s\nat least %v: %s, %v", name, stated.Lower, said, err)
		}
		f := by[m[2]]
		if f == nil {
			f = &figures{}
			by[m[2]] = f
		}
		f.count++
		f.took += took
		if wide := (stated.Upper - own) / stated.Upper; wide > f.widest {
			f.widest = wide
		}
		for _, s := range d.Steps {
			theorems[s.Theorem]++
		}
	}
	for name, d := range shippedDerivations(t) {
		certify(name, d)
	}
	shipped := done
	for r := rand.New(rand.NewPCG(51, 7)); done < want; {
		text := randomJob(r)
		if d := derivationOf(t, "job.toml", []byte(text)); d != nil {
			certify(text, d)
		}
	}
	for _, curve := range slices.Sorted(maps.Keys(by)) {
		f := by[curve]
		t.Logf("by %-10s %d, whose ε differs by up to %.2g, in %v", curve, f.count, f.widest,
			f.took.Round(time.Millisecond))
	}
	t.Logf("%d derivations, %d of them of job files; theorems %v", done, shipped, theorems)
}

// mutated are jobs in whose derivations each number is changed.
var mutated = []string{`
parties.colluders = 1
parties.drop_out = 0.2
sum.max_weight = 100
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
`, `
parties.colluders = 1
privacy = { noise = "skellam", multiplier = 2.0, clip = 1.0, bits = 20 }
`, `
privacy = { noise = "discrete-laplace", multiplier = 9.0, clip = 1.0, bits = 20 }
`, `
parties.drop_out = 0.2
sum = { protocol = "oneshot", faults = 2, colluders = 3 }
privacy = { noise = "discrete-gaussian", noise_by = "committee", epsilon = 4.0, clip = 1.0 }
`, `
parties.hidden = 0.3
privacy = { noise = "discrete-gaussian", multiplier = 2.0, clip = 1.0, submit_after = "1s" }
`, `
training.batch = 9
[privacy]
noise = "discrete-gaussian"
multiplier = 2.0
clip = 1.0
submit_after = "1s"
unit = "record"
records = 900
`, `
parties.drop_out = 0.2
parties.per_round = 40
parties.participations = 3
sum.adversary = "curious"
privacy = { noise = "discrete-gaussian", epsilon = 4.0, clip = 1.0 }
`, `
model = { name = "logistic", features = 9, classes = 2 }
privacy = { noise = "discrete-gaussian", epsilon = 4.0, clip = 1.0, factorise = 2 }
`, `
parties.colluders = 2
parties.drop_out = 0.4
sum = { adversary = "curious", sparse = true }
privacy = { noise = "discrete-gaussian", epsilon = 4.0, clip = 1.0 }
`, `
parties.weights = [
1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7,
1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7,
1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4,
]
sum = { protocol = "oneshot", bounded = true }
privacy = { noise = "discrete-gaussian", multiplier = 2.0, clip = 1.0, noise_by = "committee" }
`, `
model = { name = "logistic", features = 9, classes = 2 }
training.mask = "soft"
privacy = { noise = "skellam", epsilon = 4.0, clip = 1.0 }
`}

// flattering says which way a number of a derivation makes its ε look better.
var flattering = map[string]int{
	"survivors": 1, "colluders": -1, "members": 1, "faults": -1, "honest": 1, "failure": -1,
	"clip": -1, "scale": -1, "dimension": -1, "kappa": -1, "units": -1, "share": -1,
	"l2_squared": -1, "l1": -1, "coefficients": -1, "noise": 1, "mu": -1, "shift": -1,
	"records": 1, "batch": -1, "rate": -1, "overrun": -1, "overlong": -1, "advantage": -1,
	"submissions": -1, "heaviest": -1, "league": -1,
	"charges": -1, "parties": -1, "coordinates": -1, "distance": -1, "probability": -1,
	"degree": 1, "epsilon": -1, "delta": -1, "in_league": 1,
}

// A derivation of which any number is changed, to the better, is refused.
func TestChangedDerivationsAreRefused(t *testing.T) {
	check := suite.Checker(t)
	changed := 0
	for _, text := range mutated {
		base := "name = \"mutated\"\nrounds = 4\nparties.count = 60\n"
		if !strings.Contains(text, "model") {
			base += "model.length = 30"
		}
		d := derivationOf(t, "job.toml", []byte(base+text))
		if d == nil {
			t.Fatal(text)
		}
		proof, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if said := check(proof); !strings.HasPrefix(said, "0 ") {
			t.Errorf("%s: %s", text, said)
		}
		for what, change := range changes(t, d) {
			var of struct {
				Derivation int              `json:"derivation"`
				Steps      []map[string]any `json:"steps"`
			}
			if err := json.Unmarshal(proof, &of); err != nil {
				t.Fatal(err)
			}
			change(of.Steps)
			other, err := json.Marshal(of)
			if err != nil {
				t.Fatal(err)
			}
			if said := check(other); !strings.HasPrefix(said, "1 ") {
				t.Errorf("%s%s: %s", text, what, said)
			}
			changed++
		}
	}
	t.Log(changed, "changes")
	if changed < 90 {
		t.Error("these are too few")
	}
}

// What is no derivation has an exit code of its own, and one without one of its steps is refused.
func TestOtherTextsAreNoDerivations(t *testing.T) {
	proof, err := json.Marshal(derivationOf(t, "job.toml", []byte(
		"name = \"x\"\nrounds = 4\nparties.count = 20\nmodel.length = 30\n"+mutated[0])))
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"", "[]", `{"derivation": 1, "steps": []}`, string(proof[:len(proof)/2]),
		strings.Replace(string(proof), `"derivation":1`, `"derivation":2`, 1),
		strings.Replace(string(proof), `"n":2`, `"n":3`, 1),
		strings.Replace(string(proof), `"clip":`, `"clap":`, 1),
		strings.Replace(string(proof), `"clip":`, `"clip":"1","clip":`, 1),
		strings.Replace(string(proof), `"cheating"`, `"likely"`, 1),
		strings.Replace(string(proof), `"kappa":"1"`, `"kappa":"1/0"`, 1),
		strings.Replace(string(proof), `"kappa":"1"`, `"kappa":"NaN"`, 1),
	}
	check := suite.Checker(t)
	for _, text := range texts {
		if said := check([]byte(text)); !strings.HasPrefix(said, "2 unreadable: ") {
			t.Errorf("%.300s\n%s", text, said)
		}
	}
	var of map[string]any
	if err := json.Unmarshal(proof, &of); err != nil {
		t.Fatal(err)
	}
	steps := of["steps"].([]any)
	for without := range len(steps) - 1 {
		if steps[without].(map[string]any)["theorem"] == "weight" {
			continue // the clip is then as it was declared
		}
		var left []any
		for i, s := range steps {
			if i != without {
				s := maps.Clone(s.(map[string]any))
				s["n"] = len(left) + 1
				left = append(left, s)
			}
		}
		text, err := json.Marshal(map[string]any{"derivation": 1, "steps": left})
		if err != nil {
			t.Fatal(err)
		}
		if said := check(text); !strings.HasPrefix(said, "1 refused: ") {
			t.Errorf("%s\n%s", text, said)
		}
	}
}

// changes are those of a derivation that would make it look better.
func changes(t *testing.T, d *job.Derivation) map[string]func(steps []map[string]any) {
	all := map[string]func(steps []map[string]any){}
	last := len(d.Steps) - 1
	for i, s := range d.Steps[:last] {
		for part, values := range map[string]any{"given": s.Given, "gives": s.Gives} {
			for name, value := range values.(map[string]any) {
				if way := flattering[name]; way != 0 && value != "0" {
					all[fmt.Sprint(s.Theorem, " ", part, " ", name)] = func(steps []map[string]any) {
						steps[i][part].(map[string]any)[name] = better(t, value, way)
					}
				}
			}
		}
	}
	c := d.Steps[last].Claim
	for name, value := range map[string]any{
		"epsilon": c.Bare().Upper * 0.999, "delta": c.Bare().Delta * 0.99, "adjacency": "replace-one",
		"colluders": 7, "server": "cheating", "unit": "person",
	} {
		if name == "colluders" && c.Terms().Colluders == accounting.AnyColluders ||
			name == "server" && c.Server() == accounting.CheatingServer ||
			name == "unit" && c.Unit() != accounting.PartyUnit {
			continue
		}
		all[name] = func(steps []map[string]any) {
			steps[last]["claim"].(map[string]any)[name] = value
		}
	}
	if c.Assumes()&^accounting.AssumesInstant != 0 { // of which no step says anything
		all["assumes"] = func(steps []map[string]any) {
			steps[last]["claim"].(map[string]any)["assumes"] = []string{}
		}
	}
	if len(c.Terms().Committees) > 0 {
		all["committees"] = func(steps []map[string]any) {
			steps[last]["claim"].(map[string]any)["committees"] = []string{}
		}
		all["in_league"] = func(steps []map[string]any) {
			list := steps[last]["claim"].(map[string]any)["committees"].([]any)[0].(map[string]any)
			list["in_league"] = list["in_league"].(float64) + 1
		}
	}
	return all
}

// better changes a number by 1, or by a thousandth.
func better(t *testing.T, value any, way int) any {
	t.Helper()
	if all, ok := value.([]string); ok {
		out := slices.Clone(all)
		out[0] = better(t, out[0], way).(string)
		return out
	}
	text := value.(string)
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return n.Add(n, big.NewInt(int64(way))).String()
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatFloat(x*(1+float64(way)/1000), 'g', -1, 64)
}
