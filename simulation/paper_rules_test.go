package simulation

import (
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// unequal is brief with parties of 10, 20, … 60 rows.
func unequal(t testing.TB) trial {
	t.Helper()
	x := brief()
	parties, test := blobs(6, 60)
	for i, p := range parties {
		rows := make([]int, 10*(i+1))
		for k := range rows {
			rows[k] = k
		}
		var err error
		if parties[i], err = p.Subset(rows); err != nil {
			t.Fatal(err)
		}
	}
	x.rows, x.test = parties, test
	return x
}

// TestPaperRulesWeightedMean: with MaxSamples a round is w + Σ s_n(w_n − w)/Σs_n, with s_n
// capped, in the clear, over the ring to rounding, and with all messages of private sums
// as over the ring bit for bit; parties who drop out take their weight with them.
func TestPaperRulesWeightedMean(t *testing.T) {
	for _, most := range []int{60, 25} {
		x := unequal(t)
		x.Sum.MaxWeight, x.Rounds = most, 1
		state := x.setting(t)
		start := state.Model.Init(x.Seed)
		want, total := make([]float64, len(start)), 0.0
		for i, p := range x.rows {
			w := slices.Clone(start)
			if _, err := state.Local.Train(state.Model, w, p, state.derived("batches", 1, i)); err != nil {
				t.Fatal(err)
			}
			s := float64(min(p.Len(), most))
			total += s
			for j := range w {
				want[j] += s * (w[j] - start[j])
			}
		}
		for j := range want {
			want[j] = start[j] + want[j]/total
		}
		if d := furthest(train(t, x).Model, want); d > 1e-12 {
			t.Errorf("at most %d: %v away from the weighted mean", most, d)
		}
		x.Rounds = 3
		plain := train(t, x)
		x.World.Fidelity = Ring
		ring := train(t, x)
		x.World.Fidelity = Messages
		private := train(t, x)
		if !slices.Equal(ring.Model, private.Model) {
			t.Errorf("at most %d: under masks the model is another", most)
		}
		if d := furthest(plain.Model, ring.Model); d == 0 || d > 1e-4 {
			t.Errorf("at most %d: %v away from the model in the clear", most, d)
		}
		x.Sum.MaxWeight, x.World.Fidelity = 0, Clear
		if d := furthest(train(t, x).Model, plain.Model); d < 1e-3 {
			t.Errorf("at most %d: weights change the model by %v only", most, d)
		}
	}
}

// With noise the weights cost 3 % more of it and no more ε: one party changes the joint
// sum by no more than what the accountant is told, however many rows it has.
func TestPaperRulesWeightedNoise(t *testing.T) {
	x := unequal(t)
	x.noise(0.5)
	plain := mechanism(t, x).Round()
	x.Sum.MaxWeight = 30
	m := mechanism(t, x)
	weighted := m.Round()
	a := plain.Update.ShareSigma / plain.Update.Sensitivity.L2
	b := weighted.Update.ShareSigma / weighted.Update.Sensitivity.L2
	if math.Abs(b/a-1) > 1e-6 {
		t.Errorf("noise over sensitivity is %v, without weights %v", b, a)
	}
	out := train(t, x)
	if d := furthest(out.Model, make([]float64, len(out.Model))); d == 0 || math.IsNaN(d) {
		t.Errorf("the model is %v away from zeros", d)
	}
	most := m.Encoder.Clip
	want := x.Privacy.Clip * aggregation.WeightedClip(aggregation.DefaultCountShare)
	if math.Abs(most-want) > 1e-15 {
		t.Errorf("a party's vector is bounded by %v, want %v", most, want)
	}
}

// TestPaperRulesFreshVariates: SCAFFOLD as the alignment paper compares it corrects by
// the mean gradient of the round's parties less one's own, at the round's model, and
// takes two exchanges a round; stored variates and FedAvg take one.
func TestPaperRulesFreshVariates(t *testing.T) {
	x := brief()
	x.rule(rules["fresh"])
	x.Rounds, x.Training.Momentum = 1, 0.9
	state := x.setting(t)
	start := state.Model.Init(x.Seed)
	gradients := make([][]float64, len(x.rows))
	for i, p := range x.rows {
		gradients[i] = make([]float64, len(start))
		if err := state.Model.Gradient(gradients[i], start, p); err != nil {
			t.Fatal(err)
		}
	}
	all := meanOf([]int{0, 1, 2, 3, 4, 5}, nil, func(i int) []float64 { return gradients[i] })
	want := meanOf([]int{0, 1, 2, 3, 4, 5}, nil, func(i int) []float64 {
		local := state.Local
		local.Adjust = func(g, _ []float64) {
			for j := range g {
				g[j] += all[j] - gradients[i][j]
			}
		}
		w := slices.Clone(start)
		if _, err := local.Train(state.Model, w, x.rows[i], state.derived("batches", 1, i)); err != nil {
			t.Fatal(err)
		}
		return w
	})
	got := train(t, x)
	if d := furthest(got.Model, want); d > 1e-12 {
		t.Errorf("%v away from fresh variates", d)
	}
	x.Training.Momentum = 0
	for name, exchanges := range map[string]int{
		"fresh": 2, "fedga": 2, "scaffold II": 1, "fedavg": 1,
	} {
		x.rule(rules[name])
		if r := train(t, x).Rounds[0]; r.Exchanges != exchanges {
			t.Errorf("%s: %d exchanges, want %d", name, r.Exchanges, exchanges)
		}
	}
}

// TestPaperRulesLeNet: a round of the label-skew table with LeNet under private sums is
// that over the ring bit for bit, and that in the clear to rounding.
func TestPaperRulesLeNet(t *testing.T) {
	rows, test, err := learning.ReadMNIST(realdata.Dir(t, "fashion-mnist"))
	if err != nil {
		t.Fatal(err)
	}
	first := make([]int, 600)
	for k := range first {
		first[k] = k
	}
	if rows, err = rows.Subset(first); err != nil {
		t.Fatal(err)
	}
	if test, err = test.Subset(first[:100]); err != nil {
		t.Fatal(err)
	}
	parties, _, err := learning.Partition("label-skew", rows, test,
		learning.PartitionOptions{Clients: 10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	x := trial{rows: parties, test: test, Job: job.Job{
		Name: "lenet", Rounds: 2, Seed: 1, Model: job.Model{Name: "lenet"}, Sum: job.Sum{MaxWeight: 60},
		Training: job.Training{Rate: 0.01, Momentum: 0.9, WeightDecay: 1e-5, Batch: 32, Epochs: 1,
			Mask: "soft"},
		World: job.World{Fidelity: Clear, SkipClear: true},
	}}
	plain := train(t, x)
	x.World.Fidelity = Ring
	ring := train(t, x)
	x.World.Fidelity = Messages
	private := train(t, x)
	if !slices.Equal(ring.Model, private.Model) {
		t.Errorf("under masks the model is another, by up to %v", furthest(ring.Model, private.Model))
	}
	if d := furthest(plain.Model, ring.Model); d == 0 || d > 1e-3 {
		t.Errorf("%v away from the model in the clear", d)
	}
	r := private.Rounds[0]
	if !(r.Masked > 0 && r.Masked < 1) || !(r.Disagreed > 0 && r.Disagreed < 1) {
		t.Errorf("mean mask %v, %v below 1", r.Masked, r.Disagreed)
	}
}

// What clipping leaves, and its spread, are told for each round.
func TestPaperRulesClipSpread(t *testing.T) {
	x := brief()
	for _, r := range train(t, x).Rounds {
		if r.Left != 1 || r.Spread != 0 {
			t.Errorf("without clipping: ᾱ %v, spread %v", r.Left, r.Spread)
		}
	}
	x.Privacy.Clip = 0.3
	for _, r := range train(t, x).Rounds {
		if !(r.Left > 0.05 && r.Left <= 1) || !(r.Spread >= 0 && r.Spread < r.Left) ||
			r.Clipped > 0 && r.Left == 1 {
			t.Errorf("clipped to 0.3: ᾱ %v, spread %v, %v clipped", r.Left, r.Spread, r.Clipped)
		}
	}
}

// With SCAFFOLD the mask is on the step alone: control variates are averaged as without.
func TestPaperRulesMaskedScaffold(t *testing.T) {
	states := make(map[string]*learner)
	for _, kind := range []string{"none", "hard"} {
		x := brief()
		x.rule(rules["scaffold I"])
		x.mask(kind, 1)
		state, err := newCourse(t.Context(), x.setting(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := state.rounds.play(t.Context(), &RoundResult{Round: 1}); err != nil {
			t.Fatal(err)
		}
		states[kind] = state.learned
	}
	plain, masked := states["none"], states["hard"]
	if !slices.Equal(plain.Variate, masked.Variate) ||
		furthest(plain.Variate, make([]float64, len(plain.Variate))) == 0 {
		t.Error("the mask changes the control variate, or there is none")
	}
	if slices.Equal(plain.Weights, masked.Weights) {
		t.Error("the mask changes nothing")
	}
}
