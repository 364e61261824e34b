package simulation

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
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
func brief() Options {
	parties, test := blobs(6, 30)
	return Options{
		Model: learning.Softmax{Features: 2, Outputs: 3}, Parties: parties, Test: test, Rounds: 3,
		Local: learning.SGD{Rate: 0.3, Batch: 10, Epochs: 1}, Seed: 3,
	}
}

// rules are the parties' rules with parameters that matter.
var rules = map[string]training.ClientRule{
	"fedavg":      {},
	"fedprox":     {Kind: training.FedProx, Mu: 0.5},
	"scaffold I":  {Kind: training.SCAFFOLD, OptionI: true},
	"scaffold II": {Kind: training.SCAFFOLD},
	"fedga":       {Kind: training.FedGA, Beta: 0.1},
	"fresh":       {Kind: training.SCAFFOLD, Fresh: true},
}

var masks = map[string]aggregation.GradientMask{
	"plain": {},
	"soft":  {Kind: aggregation.SoftMask, Threshold: 0.6},
	"hard":  {Kind: aggregation.HardMask, Threshold: 0.6},
}

func train(t *testing.T, x Options) *Result {
	t.Helper()
	out, err := Run(t.Context(), x, nil)
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
		for mask, kind := range masks {
			x := brief()
			x.Client, x.Mask = client, kind
			x.Server = aggregation.Optimizer{Rule: aggregation.RuleMomentum, Beta1: 0.5}
			plain := train(t, x)
			x.Sum = Ring
			ring := train(t, x)
			x.Sum = Private
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
			if m := private.Rounds[0].Masked; (mask == "plain") != (m == 1) || !(m > 0) {
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
		x.Client = client
		if d := furthest(train(t, x).Model, plain); (rule == "fedavg") != (d == 0) {
			t.Errorf("%s: %v away from federated averaging", rule, d)
		}
	}
	for _, kind := range []training.ClientKind{training.FedProx, training.FedGA} {
		x.Client = training.ClientRule{Kind: kind}
		if d := furthest(train(t, x).Model, plain); d != 0 {
			t.Errorf("%v with its parameter at 0: %v away from federated averaging", kind, d)
		}
	}
	x.Client = training.ClientRule{}
	for mask, kind := range masks {
		kind.Threshold = 0
		x.Mask = kind
		if d := furthest(train(t, x).Model, plain); d != 0 {
			t.Errorf("%s mask with threshold 0: %v away from plain averaging", mask, d)
		}
	}
}

// The same seed gives the same model, whatever runs at once; another seed another.
func TestTrainingSeed(t *testing.T) {
	x := brief()
	x.PerRound = 3
	a, b := train(t, x), train(t, x)
	x.Seed++
	if c := train(t, x); !slices.Equal(a.Model, b.Model) || slices.Equal(a.Model, c.Model) {
		t.Error("seeds do not decide")
	}
}

// Drop-outs leave the sum to the others; a round that has too few is lost.
func TestTrainingDropOuts(t *testing.T) {
	x := brief()
	x.Parties, x.Test = blobs(10, 20)
	x.Sum, x.Recovery, x.Drop = Private, &protocol.Recovery{Adversary: protocol.CuriousServer}, 0.2
	x.Client = training.ClientRule{Kind: training.SCAFFOLD}
	for _, r := range train(t, x).Rounds {
		if len(r.Included) != r.Parties || r.Dropped != 2 || r.Lost != nil || r.Parties < 8 ||
			r.Parties > 10 || r.Cost.BytesUp == 0 {
			t.Errorf("%+v", r)
		}
	}
	x.Drop = 1
	for _, r := range train(t, x).Rounds {
		if r.Lost == nil || r.Parties != 0 {
			t.Errorf("all drop out: %+v", r)
		}
	}
}

// A session with a schedule has as many parties in a round as it says.
func TestTrainingSchedule(t *testing.T) {
	x := brief()
	x.PerRound = 4
	for _, sum := range []Sum{Clear, Ring, Private} {
		x.Sum = sum
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
	x.Parties, x.Test = blobs(10, 20)
	x.Sum, x.Recovery, x.Drop, x.PerRound, x.Rounds = Private,
		&protocol.Recovery{Adversary: protocol.CuriousServer}, 0.1, 8, 4
	private := train(t, x)
	x.Sum, x.Recovery, x.Drop, x.PerRound = Ring, nil, 0, 0
	for _, r := range private.Rounds {
		x.Replay = append(x.Replay, r.Included)
	}
	if again := train(t, x); !slices.Equal(again.Model, private.Model) {
		t.Errorf("%v away", furthest(again.Model, private.Model))
	}
	x.Replay[1] = nil
	if r := train(t, x).Rounds[1]; r.Lost == nil || r.Parties != 0 {
		t.Errorf("a round of nobody: %+v", r)
	}
}

// Difference clipping bounds the step, adaptive clipping finds the median, model
// clipping bounds the model.
func TestTrainingClips(t *testing.T) {
	x := brief()
	x.Clip = training.Clipping{Kind: training.DifferenceClip, Norm: 0.01}
	r := train(t, x).Rounds
	if r[0].Clipped != 1 || r[0].ClipNorm != 0.01 || r[0].MeanNorm < 0.01 ||
		r[0].MaxNorm < r[0].MeanNorm || r[0].Cosine != 0 || r[2].Cosine < 0.3 {
		t.Errorf("difference clipping: %+v", r)
	}
	x.Clip.Factor = 0.5
	if r = train(t, x).Rounds; math.Abs(r[1].ClipNorm-r[0].MeanNorm/2) > 1e-12 {
		t.Errorf("factor: %+v", r)
	}
	x.Clip = training.Clipping{Kind: training.DifferenceClip, Norm: 0.01,
		Adaptive: &aggregation.AdaptiveClip{Rate: 0.5}}
	x.Rounds = 40
	for _, sum := range []Sum{Clear, Ring} {
		x.Sum = sum
		out := train(t, x)
		if last := out.Rounds[39]; last.Clipped < 0.1 || last.Clipped > 0.9 ||
			math.Abs(math.Log(last.ClipNorm/last.MeanNorm)) > 1 {
			t.Errorf("%v: adaptive clipping ends at %+v", sum, last)
		}
	}
	x = brief()
	x.Rounds, x.Clip = 10, training.Clipping{Kind: training.ModelClip, Norm: 0.2}
	if _, norm, _ := aggregation.Clip(train(t, x).Model, 1); norm > 0.2 {
		t.Errorf("model clipping: norm %v", norm)
	}
}

// With noise the budget is kept and the model trains, in rings as under masks; with
// a mask or an adaptive norm both lanes are accounted for.
func TestTrainingWithNoise(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"updates": func(*Options) {},
		"private": func(x *Options) { x.Sum = Private },
		"signs":   func(x *Options) { x.Mask, x.Noise.Family = masks["soft"], accounting.FamilySkellam },
		"adaptive": func(x *Options) {
			x.Clip.Adaptive, x.Noise.Family = &aggregation.AdaptiveClip{}, accounting.FamilySkellam
		},
		"skellam": func(x *Options) { x.Noise.Family = accounting.FamilySkellam },
		"recovery": func(x *Options) {
			x.Sum, x.Recovery, x.Colluders, x.Drop = Private,
				&protocol.Recovery{}, 1, 0.1
		},
	} {
		x := brief()
		x.Parties, x.Test = blobs(20, 20)
		n := DefaultNoise()
		n.Bits = 20
		x.Sum, x.Noise, x.Budget.Epsilon = Ring, &n, 50
		change(&x)
		var err error
		if n.Multiplier, err = x.Calibrate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out := train(t, x)
		last := out.Rounds[len(out.Rounds)-1]
		if len(out.Rounds) != 3 || last.Server.Bare().Upper > 50 || last.Server.Bare().Upper < 48 ||
			last.Server.Bare().Accountant != "PLD" {
			t.Errorf("%s: %d rounds, spent %+v", name, len(out.Rounds), last.Server)
		}
		if a := out.Final().Test.Accuracy(); a < 0.6 {
			t.Errorf("%s: accuracy %v with multiplier %v", name, a, n.Multiplier)
		}
		if name == "adaptive" && last.ClipNorm == n.Clip {
			t.Error("the clipping norm did not move")
		}
		// Half the noise spends more than there is.
		n.Multiplier /= 2
		if out := train(t, x); out.Stopped == nil || len(out.Rounds) == 3 {
			t.Errorf("%s: half the noise, %d rounds", name, len(out.Rounds))
		}
	}
}

// Secret coins count against the server too. All parties submit, so that the noise in a sum does
// not tell how many had luck, and neither does the divisor: a model moves by multiples of one unit,
// whatever the number.
func TestTrainingHidden(t *testing.T) {
	x := brief()
	x.Parties, x.Test = blobs(200, 5)
	n := DefaultNoise()
	n.Multiplier, n.Bits = 1, 20
	x.Sum, x.Noise, x.Hidden, x.Rounds = Ring, &n, 0.2, 5
	x.Random = rand.NewChaCha8([32]byte{1})
	out := train(t, x)
	sizes := map[int]bool{}
	for _, r := range out.Rounds {
		sizes[r.Parties] = true
	}
	last := out.Rounds[4]
	whole := x
	whole.Hidden, whole.Random = 0, nil
	all, _, err := mechanism(t, whole).Round().Views(5, privacy.DefaultDelta)
	if err != nil || len(sizes) < 2 || last.Server.Bare().Upper > 0.7*all.Bare().Upper ||
		last.Public.Bare().Upper != last.Server.Bare().Upper {
		t.Errorf("rounds of %v parties, spent %v and %v, %v without coins (%v)", sizes, last.Server,
			last.Public, all, err)
	}
	x.Budget = privacy.Budget{Epsilon: 3}
	z, err := x.Calibrate()
	if err != nil {
		t.Fatal(err)
	}
	n.Multiplier = z
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
		x.Parties, x.Test = blobs(40, 5)
		x.Model = learning.MLP{Features: 2, Hidden: []int{682}, Outputs: 3}
		if x.Model.NumParams() > d {
			t.Fatal(x.Model.NumParams())
		}
		n := DefaultNoise()
		n.Multiplier, n.Bits = 4, 20
		x.Sum, x.Noise, x.Hidden = Ring, &n, q
		m := mechanism(t, x)
		y, _, err := newRun(x.settled())
		if err != nil {
			t.Fatal(err)
		}
		var sum [][]uint64
		for range x.Parties {
			blank, err := y.updates.blank()
			if err != nil {
				t.Fatal(err)
			}
			sum = addRing(sum, blank)
		}
		cut(sum[0], n.Bits)
		whole, err := aggregation.Integers(sum[0], n.Bits)
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

// In the clear a round of nobody is lost.
func TestTrainingHiddenNobody(t *testing.T) {
	x := brief()
	x.Hidden, x.Rounds = 1./3, 60
	lost := 0
	for _, r := range train(t, x).Rounds {
		if r.Lost != nil {
			lost++
		}
	}
	if lost == 0 || lost > 30 { // each with probability 0.088
		t.Errorf("%d of 60 rounds lost", lost)
	}
}

// FedGA under private sums keeps its two sessions in step when rounds are lost, and
// counts the bytes of both.
func TestTrainingAlignedSessions(t *testing.T) {
	x := brief()
	x.Parties, x.Test = blobs(10, 20)
	x.Sum, x.Recovery, x.Drop, x.Rounds = Private,
		&protocol.Recovery{Adversary: protocol.CuriousServer, MinSurvivors: 9}, 0.3, 12
	plain := train(t, x)
	x.Client = training.ClientRule{Kind: training.FedGA, Beta: 0.1}
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
	x.Recovery, x.Drop, x.PerRound, x.Seed, x.Rounds = nil, 0, 3, 0, 3
	a, b := train(t, x), train(t, x)
	if !slices.Equal(a.Model, b.Model) {
		t.Error("with seed 0 two runs differ")
	}
}

// A budget that ends the run leaves no model unjudged.
func TestTrainingStopIsJudged(t *testing.T) {
	x := brief()
	n := DefaultNoise()
	n.Multiplier, n.Bits, x.Budget.Epsilon = 4, 20, 1.5
	x.Sum, x.Noise, x.Rounds, x.EvaluateEvery = Ring, &n, 50, 50
	out := train(t, x)
	if out.Stopped == nil || len(out.Rounds) == 0 || out.Rounds[len(out.Rounds)-1].Test == nil {
		t.Errorf("%d rounds, stopped by %v", len(out.Rounds), out.Stopped)
	}
}

func TestBadTrainings(t *testing.T) {
	n := DefaultNoise()
	for _, c := range []struct {
		option string
		change func(x *Options)
	}{
		{"model.name", func(x *Options) { x.Model = nil }},
		{"parties.count", func(x *Options) { x.Parties = x.Parties[:1] }},
		{"Test", func(x *Options) { x.Test = nil }},
		{"rounds", func(x *Options) { x.Rounds = 0 }},
		{"parties.per_round", func(x *Options) { x.PerRound = 7 }},
		{"training.steps", func(x *Options) { x.Local.Epochs, x.Local.Steps = 1, 1 }},
		{"Local.Adjust", func(x *Options) { x.Local.Adjust = func(_, _ []float64) {} }},
		{"training.momentum", func(x *Options) {
			x.Client.Kind, x.Local.Momentum = training.SCAFFOLD, 0.9
		}},
		{"training.rule", func(x *Options) {
			x.Client.Kind = training.SCAFFOLD
			x.Sum, x.Noise = Ring, &n
		}},
		{"world.fidelity", func(x *Options) { x.Noise = &n }},
		{"parties.hidden", func(x *Options) { x.Sum, x.Hidden = Private, 0.5 }},
		{"parties.drop_out", func(x *Options) { x.Recovery = &protocol.Recovery{} }},
		{"world.drop", func(x *Options) { x.Sum, x.Drop = Private, 0.5 }},
		{"training.mask", func(x *Options) { x.Mask.Threshold = 2 }},
		{"privacy.sign_share", func(x *Options) { x.SignShare = 1 }},
		{"sum.range", func(x *Options) { x.Sum, x.Range = Ring, -1 }},
		{"sum.fraction_bits", func(x *Options) { x.Sum, x.FractionBits = Ring, 60 }},
		{"world.evaluate_every", func(x *Options) { x.EvaluateEvery = -3 }},
		{"parties.participations", func(x *Options) { x.Participations = 1 }},
		{"Random", func(x *Options) { x.Hidden, x.Random = 0.5, rand.NewChaCha8([32]byte{}) }},
		{"privacy.clip", func(x *Options) {
			x.Sum, x.Noise, x.Clip = Ring, &n,
				training.Clipping{Kind: training.DifferenceClip, Norm: 1}
		}},
		{"privacy.clip", func(x *Options) { x.Clip.Norm = 1 }},
		{"privacy.clip", func(x *Options) { x.Clip.Kind = training.DifferenceClip }},
		{"privacy.clip", func(x *Options) {
			x.Clip = training.Clipping{Kind: training.DifferenceClip, Norm: 1,
				Factor: -1}
		}},
		{"privacy.clip_quantile", func(x *Options) {
			x.Sum, x.Noise, x.Mask, x.Clip.Adaptive = Ring, &n, masks["soft"], &aggregation.AdaptiveClip{}
		}},
	} {
		x := brief()
		c.change(&x)
		_, err := Run(t.Context(), x, nil)
		var wrong *job.ConfigError
		if !errors.As(err, &wrong) || wrong.Path != c.option {
			t.Errorf("%s: %v", c.option, err)
		}
	}
	var wrong *job.ConfigError
	// Errors of training name the round and the party.
	x := brief()
	x.Local.Rate = 1.7e308
	_, err := Run(t.Context(), x, nil)
	var failed *RoundError
	if !errors.As(err, &failed) || !errors.Is(err, learning.ErrDiverged) || failed.Round == 0 {
		t.Errorf("diverged: %v", err)
	}
	for name, change := range map[string]func(*Options){
		"a bad server rule": func(x *Options) {
			x.Server.Tau, x.Server.Rule = -1,
				aggregation.RuleFedAdam
		},
		"a bad quantile": func(x *Options) {
			x.Clip = training.Clipping{Kind: training.DifferenceClip, Norm: 1,
				Adaptive: &aggregation.AdaptiveClip{Quantile: 7}}
		},
		"a party twice": func(x *Options) { x.Replay = [][]int{{0, 0}, {1, 2}, {1, 2}} },
		"replay with noise": func(x *Options) {
			x.Sum, x.Noise, x.Replay = Ring, &n,
				[][]int{{0}, {1}, {2}}
		},
		"too many colluders": func(x *Options) {
			x.Sum, x.Recovery, x.Colluders = Private,
				&protocol.Recovery{}, 5
		},
		"a norm next to nothing": func(x *Options) {
			x.Clip = training.Clipping{Kind: training.DifferenceClip,
				Norm: 1e-200}
		},
	} {
		x := brief()
		change(&x)
		if err := x.Validate(); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
