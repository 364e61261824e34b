package simulation

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/training"
)

// blobs are rows of three classes around three points in the plane, a little apart
// from party to party.
func blobs(parties, rows int) (all []*learning.Dataset, test *learning.Dataset) {
	rng := rand.New(rand.NewPCG(7, 0))
	shifted := func(shift float64, n int) *learning.Dataset {
		d := &learning.Dataset{Features: 2}
		for range n {
			y := rng.IntN(3)
			angle := 2*math.Pi*float64(y)/3 + shift
			d.X = append(d.X, math.Cos(angle)+rng.NormFloat64()/2, math.Sin(angle)+rng.NormFloat64()/2)
			d.Labels = append(d.Labels, y)
		}
		return d
	}
	for i := range parties {
		all = append(all, shifted(float64(i)/float64(2*parties), rows))
	}
	return all, shifted(0, 600)
}

// brief is a training of a second's fraction.
func brief() trial {
	parties, test := blobs(6, 30)
	return trial{rows: parties, test: test, Job: job.Job{
		Name: "brief", Rounds: 3, Seed: 3, Model: job.Model{Name: "softmax"},
		Training: job.Training{Rate: 0.3, Batch: 10, Epochs: 1},
		World:    job.World{Fidelity: Clear, SkipClear: true},
	}}
}

// rules are the parties' rules with parameters that matter.
var rules = map[string]job.Training{
	"fedavg":      {},
	"fedprox":     {Rule: "fedprox", Mu: 0.5},
	"scaffold I":  {Rule: "scaffold", Variates: "gradient"},
	"scaffold II": {Rule: "scaffold"},
	"fedga":       {Rule: "fedga", Beta: 0.1},
	"fresh":       {Rule: "scaffold", Variates: "fresh"},
}

// rule sets the parties' rule.
func (x *trial) rule(r job.Training) {
	t := &x.Training
	t.Rule, t.Mu, t.Beta, t.Variates = r.Rule, r.Mu, r.Beta, r.Variates
}

var masks = []string{"none", "soft", "hard"}

// mask sets the gradient mask.
func (x *trial) mask(name string, threshold float64) {
	if x.Training.Mask = name; name != "none" {
		x.Training.MaskThreshold = threshold
	}
}

// dropping lets this share of the parties drop out, or fewer, against a curious server.
func (x *trial) dropping(dropOut, drop float64) {
	x.World.Fidelity, x.World.Drop = Messages, drop
	x.Parties.DropOut, x.Sum.Adversary = dropOut, "curious"
}

func train(t *testing.T, x trial) *Result {
	t.Helper()
	out, err := x.run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func furthest(a, b []float64) (d float64) {
	for j := range a {
		d = max(d, math.Abs(a[j]-b[j]))
	}
	return d
}

// Under secure aggregation every rule with every mask gives the model of the ring
// sums without masks bit for bit, and that of sums in the clear to the rounding of
// 20 binary places, but for coordinates of which rounding turns no sign: signs are
// those of the unrounded updates, so that masks are equal until models differ.
func TestRulesUnderPrivateSums(t *testing.T) {
	for rule, client := range rules {
		for _, mask := range masks {
			x := brief()
			x.rule(client)
			x.mask(mask, 0.6)
			x.Server = job.Server{Rule: "fedavgm", Beta1: 0.5}
			plain := train(t, x)
			x.World.Fidelity = Ring
			ring := train(t, x)
			x.World.Fidelity = Messages
			private := train(t, x)
			if !slices.Equal(ring.Model, private.Model) {
				t.Errorf("%s, %s: under masks the model is another, by up to %v", rule, mask,
					furthest(ring.Model, private.Model))
			}
			if d := furthest(plain.Model, ring.Model); d == 0 || d > 1e-4 {
				t.Errorf("%s, %s: %v away from the model in the clear", rule, mask, d)
			}
			if len(private.Rounds[2].Included) != 6 {
				t.Errorf("%s, %s: %v in the sum", rule, mask, private.Rounds[2].Included)
			}
			if a := private.Final().Test.Accuracy(); a < 0.8 {
				t.Errorf("%s, %s: accuracy %v", rule, mask, a)
			}
			if m := private.Rounds[0].Masked; (mask == "none") != (m == 1) || !(m > 0) {
				t.Errorf("%s, %s: mean factor of the mask %v", rule, mask, m)
			}
		}
	}
}

// Each rule changes the model, and with its parameter at 0 FedProx and FedGA are
// federated averaging bit for bit.
func TestRulesDiffer(t *testing.T) {
	x := brief()
	plain := train(t, x).Model
	for rule, client := range rules {
		x.rule(client)
		if d := furthest(train(t, x).Model, plain); (rule == "fedavg") != (d == 0) {
			t.Errorf("%s: %v away from federated averaging", rule, d)
		}
	}
	for _, kind := range []training.ClientKind{training.FedProx, training.FedGA} {
		x = brief()
		x.world = func(w *World) { w.Training.Client = training.ClientRule{Kind: kind} }
		if d := furthest(train(t, x).Model, plain); d != 0 {
			t.Errorf("%v with its parameter at 0: %v away from federated averaging", kind, d)
		}
	}
	for _, mask := range masks {
		x = brief()
		x.mask(mask, 0.6)
		x.world = func(w *World) { w.Training.Mask.Threshold = 0 }
		if d := furthest(train(t, x).Model, plain); d != 0 {
			t.Errorf("%s mask with threshold 0: %v away from plain averaging", mask, d)
		}
	}
}

// The same seed gives the same model, whatever runs at once; another seed another.
func TestTrainingSeed(t *testing.T) {
	x := brief()
	x.Parties.PerRound = 3
	a, b := train(t, x), train(t, x)
	x.Seed++
	if c := train(t, x); !slices.Equal(a.Model, b.Model) || slices.Equal(a.Model, c.Model) {
		t.Error("seeds do not decide")
	}
}

// Drop-outs leave the sum to the others; a round that has too few is lost.
func TestTrainingDropOuts(t *testing.T) {
	x := brief()
	x.rows, x.test = blobs(10, 20)
	x.dropping(0.2, 0.2)
	x.rule(rules["scaffold II"])
	for _, r := range train(t, x).Rounds {
		if len(r.Included) != r.Parties || r.Dropped != 2 || r.Lost != nil || r.Parties < 8 ||
			r.Parties > 10 || r.Cost.BytesUp == 0 {
			t.Errorf("%+v", r)
		}
	}
	x.World.Drop = 0.99
	for _, r := range train(t, x).Rounds {
		if r.Lost == nil || r.Parties != 0 {
			t.Errorf("all drop out: %+v", r)
		}
	}
}

// A session with a schedule has as many parties in a round as it says.
func TestTrainingSchedule(t *testing.T) {
	x := brief()
	x.Parties.PerRound, x.Sum.Recovery = 4, true
	for _, sum := range []string{Clear, Ring, Messages} {
		x.World.Fidelity = sum
		for _, r := range train(t, x).Rounds {
			if r.Parties != 4 {
				t.Errorf("%v: %d parties in a round", sum, r.Parties)
			}
		}
	}
}

// Who was in the private sums can be had again without masks, bit for bit.
func TestTrainingReplay(t *testing.T) {
	x := brief()
	x.rows, x.test = blobs(10, 20)
	x.dropping(0.25, 0.1)
	x.Parties.PerRound, x.Rounds = 8, 4
	private := train(t, x)
	x.Job = *Exactly(&x.Job, 10)
	var replay [][]int
	for _, r := range private.Rounds {
		replay = append(replay, r.Included)
	}
	x.world = func(w *World) { w.Replay = replay }
	if again := train(t, x); !slices.Equal(again.Model, private.Model) {
		t.Errorf("%v away", furthest(again.Model, private.Model))
	}
	replay[1] = nil
	if r := train(t, x).Rounds[1]; r.Lost == nil || r.Parties != 0 {
		t.Errorf("a round of nobody: %+v", r)
	}
}

// Difference clipping bounds the step, adaptive clipping finds the median, model
// clipping bounds the model.
func TestTrainingClips(t *testing.T) {
	x := brief()
	x.Privacy.Clip = 0.01
	r := train(t, x).Rounds
	if r[0].Clipped != 1 || r[0].ClipNorm != 0.01 || r[0].MeanNorm < 0.01 ||
		r[0].MaxNorm < r[0].MeanNorm || r[0].Cosine != 0 || r[2].Cosine < 0.3 {
		t.Errorf("difference clipping: %+v", r)
	}
	x.world = func(w *World) { w.Training.Clip.Factor = 0.5 }
	if r = train(t, x).Rounds; math.Abs(r[1].ClipNorm-r[0].MeanNorm/2) > 1e-12 {
		t.Errorf("factor: %+v", r)
	}
	x.world, x.Rounds = nil, 40
	x.Privacy.ClipQuantile, x.Privacy.ClipRate = 0.5, 0.5
	for _, sum := range []string{Clear, Ring} {
		x.World.Fidelity = sum
		out := train(t, x)
		if last := out.Rounds[39]; last.Clipped < 0.1 || last.Clipped > 0.9 ||
			math.Abs(math.Log(last.ClipNorm/last.MeanNorm)) > 1 {
			t.Errorf("%v: adaptive clipping ends at %+v", sum, last)
		}
	}
	x = brief()
	x.Rounds = 10
	x.world = func(w *World) {
		w.Training.Clip = training.Clipping{Kind: training.ModelClip, Norm: 0.2}
	}
	if _, norm, _ := aggregation.Clip(train(t, x).Model, 1); norm > 0.2 {
		t.Errorf("model clipping: norm %v", norm)
	}
}

// With noise the budget is kept and the model trains, in rings as under masks; with
// a mask or an adaptive norm both lanes are accounted for.
func TestTrainingWithNoise(t *testing.T) {
	for name, change := range map[string]func(*trial){
		"updates":  func(*trial) {},
		"private":  func(x *trial) { x.World.Fidelity = Messages },
		"signs":    func(x *trial) { x.mask("soft", 0.6); x.Privacy.Noise = "skellam" },
		"adaptive": func(x *trial) { x.Privacy.ClipQuantile, x.Privacy.Noise = 0.5, "skellam" },
		"skellam":  func(x *trial) { x.Privacy.Noise = "skellam" },
		"recovery": func(x *trial) {
			x.World.Fidelity, x.World.Drop = Messages, 0.1
			x.Parties.DropOut, x.Parties.Colluders = 0.25, 1
		},
	} {
		x := brief()
		x.rows, x.test = blobs(20, 20)
		x.noise(0)
		x.Privacy.Epsilon = 50
		change(&x)
		s, w, err := x.settle()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out, err := Run(t.Context(), s, w, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		last := out.Rounds[len(out.Rounds)-1]
		if len(out.Rounds) != 3 || last.Server.Bare().Upper > 50 || last.Server.Bare().Upper < 48 ||
			last.Server.Bare().Accountant != "PLD" {
			t.Errorf("%s: %d rounds, spent %+v", name, len(out.Rounds), last.Server)
		}
		if a := out.Final().Test.Accuracy(); a < 0.6 {
			t.Errorf("%s: accuracy %v with multiplier %v", name, a, s.Multiplier())
		}
		if name == "adaptive" && last.ClipNorm == x.Privacy.Clip {
			t.Error("the clipping norm did not move")
		}
		// Half the noise spends more than there is.
		x.Privacy.Multiplier = s.Multiplier() / 2
		if out := train(t, x); out.Stopped == nil || len(out.Rounds) == 3 {
			t.Errorf("%s: half the noise, %d rounds", name, len(out.Rounds))
		}
	}
}

// noise adds discrete Gaussian noise of a multiplier to the sums, 0: by the budget.
func (x *trial) noise(multiplier float64) {
	x.World.Fidelity = Ring
	x.Privacy = job.Privacy{Noise: "discrete-gaussian", Multiplier: multiplier, Clip: 1, Bits: 20}
}

// Secret coins count against the server too. All parties submit, so that the noise in a sum does
// not tell how many had luck, and neither does the divisor: a model moves by multiples of one unit,
// whatever the number.
func TestTrainingHidden(t *testing.T) {
	x := brief()
	x.rows, x.test = blobs(200, 5)
	x.noise(1)
	x.Parties.Hidden, x.Privacy.SubmitAfter, x.Rounds = 0.2, time.Second, 5
	x.world = func(w *World) { w.Random = rand.NewChaCha8([32]byte{1}) }
	out := train(t, x)
	sizes := map[int]bool{}
	for _, r := range out.Rounds {
		sizes[r.Parties] = true
	}
	last := out.Rounds[4]
	whole := x
	whole.Parties.Hidden, whole.world = 0, nil
	all, _, err := mechanism(t, whole).Round().Views(5, privacy.DefaultDelta)
	if err != nil || len(sizes) < 2 || last.Server.Bare().Upper > 0.7*all.Bare().Upper ||
		last.Public.Bare().Upper != last.Server.Bare().Upper {
		t.Errorf("rounds of %v parties, spent %v and %v, %v without coins (%v)", sizes, last.Server,
			last.Public, all, err)
	}
	x.Privacy.Epsilon, x.Privacy.Multiplier = 3, 0
	if out := train(t, x); out.Stopped != nil || out.Rounds[4].Server.Bare().Upper > 3 {
		t.Errorf("stopped by %v, spent %+v", out.Stopped, out.Rounds)
	}
}

// With secret coins the noise of a round is that of all parties' shares, however
// few are drawn: its variance, over 4,096 coordinates of a sum in which nobody's
// update is, within 6 standard errors (each of √(2/4096)).
func TestTrainingHiddenNoise(t *testing.T) {
	const d = 4096
	for _, q := range []float64{0.05, 0.5} {
		x := brief()
		x.rows, x.test = blobs(40, 5)
		x.Model.Name = "mlp:682"
		x.noise(4)
		x.Parties.Hidden, x.Privacy.SubmitAfter = q, time.Second
		o := x.setting(t)
		if o.Model.NumParams() > d {
			t.Fatal(o.Model.NumParams())
		}
		m, bits := o.noise(), x.Privacy.Bits
		made, err := newCourse(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		y := made.rounds.(*plain)
		var sum [][]uint64
		for range x.rows {
			blank, err := y.updates.blank()
			if err != nil {
				t.Fatal(err)
			}
			sum = addRing(sum, blank)
		}
		cut(sum[0], bits)
		whole, err := aggregation.Integers(sum[0], bits)
		if err != nil {
			t.Fatal(err)
		}
		var square float64
		for _, v := range whole {
			square += float64(v) * float64(v) / float64(len(whole))
		}
		want := math.Pow(4*m.Vector.Sensitivity.L2, 2)
		if r := square / want; math.Abs(r-1) > 6*math.Sqrt(2./d) {
			t.Errorf("%v of 40: %v of the variance", q, r)
		}
		// What is accounted for is that noise.
		round := y.account.round
		v := float64(round.Shares) * round.Update.ShareSigma * round.Update.ShareSigma
		if math.Abs(v/want-1) > 1e-9 || round.SecretRate != q {
			t.Errorf("%v of 40: variance %v at rate %v, want %v", q, v, round.SecretRate, want)
		}
	}
}

// FedGA under private sums keeps its two sessions in step when rounds are lost, and
// counts the bytes of both.
func TestTrainingAlignedSessions(t *testing.T) {
	x := brief()
	x.rows, x.test = blobs(10, 20)
	x.dropping(0.1, 0.3)
	x.Rounds = 12
	plain := train(t, x)
	x.rule(rules["fedga"])
	lost := 0
	for i, r := range train(t, x).Rounds {
		if r.Lost != nil {
			lost++
		} else if plain.Rounds[i].Lost == nil && r.Cost.BytesUp < plain.Rounds[i].Cost.BytesUp*3/2 {
			t.Errorf("round %d: %d bytes, federated averaging %d", r.Round, r.Cost.BytesUp,
				plain.Rounds[i].Cost.BytesUp)
		}
	}
	if lost == 0 || lost == 12 {
		t.Errorf("%d of 12 rounds lost", lost)
	}
	x.World.Drop, x.Parties.PerRound, x.Seed, x.Rounds = 0, 3, 0, 3
	a, b := train(t, x), train(t, x)
	if !slices.Equal(a.Model, b.Model) {
		t.Error("with seed 0 two runs differ")
	}
}

// A budget that ends the run leaves no model unjudged.
func TestTrainingStopIsJudged(t *testing.T) {
	x := brief()
	x.noise(4)
	x.Privacy.Epsilon, x.Rounds, x.World.EvaluateEvery = 1.5, 50, 50
	out := train(t, x)
	if out.Stopped == nil || len(out.Rounds) == 0 || out.Rounds[len(out.Rounds)-1].Test == nil {
		t.Errorf("%d rounds, stopped by %v", len(out.Rounds), out.Stopped)
	}
}

// Errors of training name the round and the party.
func TestTrainingDiverges(t *testing.T) {
	x := brief()
	x.Training.Rate = 1.7e308
	_, err := x.run(t.Context(), nil)
	var failed *RoundError
	if !errors.As(err, &failed) || !errors.Is(err, learning.ErrDiverged) || failed.Round == 0 {
		t.Errorf("diverged: %v", err)
	}
}
