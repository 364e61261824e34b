package simulation

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// clusters are rows of classes that a small network can tell apart.
func clusters(rows, classes int, seed uint64) *learning.Dataset {
	rng := rand.New(rand.NewPCG(seed, 5))
	d := &learning.Dataset{Features: 6}
	for i := range rows {
		y := i % classes
		for j := range d.Features {
			d.X = append(d.X, math.Cos(float64(3*y+2*j))+0.4*rng.NormFloat64())
		}
		d.Labels = append(d.Labels, y)
	}
	return d
}

// somePersonal is a quick FedLTN of six parties; the last layer of the network stays
// with its party.
func somePersonal(t testing.TB) Personal {
	t.Helper()
	parties, err := learning.PartitionPersonal(clusters(900, 6, 1), clusters(600, 6, 2),
		learning.PersonalOptions{
			Clients: 6, Train: 30, Validation: 20, Test: 40, Seed: 1,
		})
	if err != nil {
		t.Fatal(err)
	}
	m := learning.MLP{Features: 6, Hidden: []int{12}, Outputs: 6}
	return Personal{
		Job:   &job.Job{Rounds: 4, Seed: 3, Sum: job.Sum{Range: 8}, World: job.World{Fidelity: Clear}},
		Model: m, Parties: parties, Local: learning.SGD{Rate: 0.05, Batch: 8, Epochs: 2},
		Own: []learning.Span{{From: 7 * 12, To: m.NumParams()}}, Pull: 0.01,
		Prune: Pruning{Kind: PostPrune, Target: 0.9}, Mix: 0.5, Lookahead: 0.85,
	}
}

func runPersonal(t testing.TB, p Personal) *PersonalResult {
	t.Helper()
	out, err := p.Train(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Masks only shrink. Where every party is in every round and its accuracy is above the
// threshold, which 0 always is here, a share of 1 − (1 − step)^t is pruned after t
// rounds, or t·step with OfAll; and never more than the target.
func TestPaperTicketsPruning(t *testing.T) {
	for _, c := range []struct {
		kind  PruneKind
		ofAll bool
		want  func(round int) float64
	}{
		{PostPrune, false, func(round int) float64 { return 1 - math.Pow(0.8, float64(round)) }},
		{PostPrune, true, func(round int) float64 { return 0.2 * float64(round) }},
		{PrePrune, false, func(round int) float64 { return 1 - math.Pow(0.8, float64(round)) }},
	} {
		p := somePersonal(t)
		p.Job.Rounds, p.Prune = 6, Pruning{Kind: c.kind, OfAll: c.ofAll, Step: 0.2, Target: 0.7}
		x, err := newPersonal(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.share(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := make([][]bool, len(p.Parties))
		for round := 1; round <= p.Job.Rounds; round++ {
			r, err := x.playRound(t.Context(), round)
			if err != nil {
				t.Fatal(err)
			}
			// Some parties have none of their rows right before they train.
			want := min(0.7, c.want(round))
			if math.Abs(1-r.Kept-want) > 0.02 && (c.kind == PostPrune || 1-r.Kept > want) {
				t.Errorf("%+v, round %d: %.3f pruned, want %.3f", c, round, 1-r.Kept, want)
			}
			for k := range before {
				for j := range x.kept[k] {
					if x.kept[k][j] && before[k] != nil && !before[k][j] {
						t.Fatalf("party %d: weight %d is back", k, j)
					}
					if x.isOwn[j] && !x.kept[k][j] {
						t.Fatalf("party %d: weight %d of its own is pruned", k, j)
					}
				}
				before[k] = slices.Clone(x.kept[k])
				for j, w := range x.own[k] {
					if !x.isOwn[j] && !x.keeps(k, j) && w != 0 {
						t.Fatalf("party %d: a pruned weight is %v", k, w)
					}
				}
			}
		}
	}
	p := somePersonal(t)
	p.Prune.Threshold = 0.5
	for k := range p.Parties { // one row with two labels: no model gets more than half
		twice, err := p.Parties[k].Validation.Subset([]int{0, 0})
		if err != nil {
			t.Fatal(err)
		}
		twice.Labels = []int{0, 1}
		p.Parties[k].Validation = twice
	}
	if out := runPersonal(t, p); out.Rounds[p.Job.Rounds-1].Kept < 1-1e-9 {
		t.Errorf("nobody is above the threshold, and %v is kept", out.Rounds[p.Job.Rounds-1].Kept)
	}
}

// What is a party's own is never changed by aggregation: the server's model keeps the
// first values there, and a party goes on with those that it trained last.
func TestPaperTicketsOwnParameters(t *testing.T) {
	p := somePersonal(t)
	p.Prune = Pruning{}
	p.Job.Rounds = 3
	first := p.Model.Init(p.Job.Seed)
	out := runPersonal(t, p)
	own := p.Own[0]
	if !slices.Equal(out.Model[own.From:own.To], first[own.From:own.To]) {
		t.Error("the server's model has other parameters where parties have their own")
	}
	if slices.Equal(out.Own[0][own.From:own.To], out.Own[1][own.From:own.To]) {
		t.Error("two parties have the same parameters of their own")
	}
	x, err := newPersonal(p)
	if err != nil {
		t.Fatal(err)
	}
	x.own = out.Own
	for k := range p.Parties {
		w := x.received(k, out.Model)
		if !slices.Equal(w[own.From:own.To], out.Own[k][own.From:own.To]) ||
			!slices.Equal(w[:own.From], out.Model[:own.From]) {
			t.Errorf("party %d receives another model", k)
		}
	}
}

// Mix 1 is plain averaging, and Lookahead 0 averaging with the last model: checked
// against trainings made here from the same seeds.
func TestPaperTicketsServer(t *testing.T) {
	for _, mix := range []float64{1, 0.5} {
		p := somePersonal(t)
		p.Own, p.Prune, p.Pull, p.Lookahead, p.Mix, p.Job.Rounds = nil, Pruning{}, 0, 0, mix, 3
		out := runPersonal(t, p)
		x, err := newPersonal(p)
		if err != nil {
			t.Fatal(err)
		}
		w := p.Model.Init(p.Job.Seed)
		for round := 1; round <= p.Job.Rounds; round++ {
			mean := make([]float64, len(w))
			for k, party := range p.Parties {
				own := slices.Clone(w)
				if _, err := p.Local.Train(p.Model, own, party.Train,
					x.derived("batches", round, k)); err != nil {
					t.Fatal(err)
				}
				for j := range mean {
					mean[j] += own[j] / float64(len(p.Parties))
				}
			}
			for j := range w {
				w[j] = mix*mean[j] + (1-mix)*w[j]
			}
		}
		for j := range w {
			if math.Abs(w[j]-out.Model[j]) > 1e-12 {
				t.Fatalf("mix %v: weight %d is %v, want %v", mix, j, out.Model[j], w[j])
			}
		}
	}
}

// Over the ring a round is that in the clear to rounding, and a private sum with all its
// messages that over the ring bit for bit, for every way to average sparse models, also
// where a shared mask shrinks and sessions begin anew.
func TestPaperTicketsPrivate(t *testing.T) {
	for _, mean := range []SparseMean{OverAll, OverOwners, VotedMask, PublicMask} {
		for _, perRound := range []int{0, 4} {
			p := somePersonal(t)
			p.Mean, p.Job.Rounds, p.Job.World.Fidelity = mean, 3, Messages
			p.Job.Parties.PerRound, p.Job.Sum.Recovery = perRound, perRound > 0
			if mean == PublicMask {
				p.Prune.Kind = NoPrune
			}
			private := runPersonal(t, p)
			p.Job.World.Fidelity = Ring
			for _, r := range private.Rounds {
				p.Replay = append(p.Replay, r.Included)
			}
			ring := runPersonal(t, p)
			p.Job.World.Fidelity = Clear
			plain := runPersonal(t, p)
			for j := range ring.Model {
				if ring.Model[j] != private.Model[j] {
					t.Fatalf("%v: weight %d is %v over the ring and %v in private", mean, j, ring.Model[j],
						private.Model[j])
				}
				if math.Abs(ring.Model[j]-plain.Model[j]) > 0.05 {
					t.Errorf("%v: weight %d is %v over the ring and %v in the clear", mean, j, ring.Model[j],
						plain.Model[j])
				}
			}
			first, last := private.Rounds[0], private.Rounds[2]
			shared := mean == VotedMask || mean == PublicMask
			switch {
			case shared && (last.MaskedBytes >= first.MaskedBytes || private.Sessions < 2):
				t.Errorf("%v: %d bytes after %d, %d sessions", mean, last.MaskedBytes, first.MaskedBytes,
					private.Sessions)
			case !shared && (last.MaskedBytes != first.MaskedBytes || private.Sessions != 1):
				t.Errorf("%v: %d bytes after %d: the length tells of masks", mean, last.MaskedBytes,
					first.MaskedBytes)
			case last.SparseBytes >= first.SparseBytes || last.BytesUp <= last.MaskedBytes:
				t.Errorf("%v: sparse %d after %d bytes; %d sent for lanes of %d", mean, last.SparseBytes,
					first.SparseBytes, last.BytesUp, last.MaskedBytes)
			}
		}
	}
}

// Jump-Start takes the model of one party, and prunes no more than its own target.
func TestPaperTicketsJumpStart(t *testing.T) {
	p := somePersonal(t).withDefaults()
	x, err := newPersonal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.jumpStart(t.Context()); err != nil || &x.model[0] != &x.first[0] {
		t.Fatalf("no trainings alone, and another first model: %v", err)
	}
	p.JumpStart = 8
	if x, err = newPersonal(p); err != nil {
		t.Fatal(err)
	}
	if err := x.jumpStart(t.Context()); err != nil {
		t.Fatal(err)
	}
	zeros := 0
	for j, w := range x.model {
		if w == 0 && !x.isOwn[j] {
			zeros++
		}
	}
	if share := float64(zeros) / float64(x.prunable); share < 0.25 || share > 0.32 {
		t.Errorf("%v of the model is pruned, want 0.3", share)
	}
	best := 0.0
	scores := func(w []float64) (mean float64) {
		for _, party := range p.Parties {
			judged, err := learning.Evaluate(p.Model, w, party.Validation)
			if err != nil {
				t.Fatal(err)
			}
			mean += judged.Accuracy() / float64(len(p.Parties))
		}
		return mean
	}
	for k := range p.Parties {
		best = max(best, scores(x.own[k]))
	}
	if got := scores(x.model); got != best {
		t.Errorf("the model chosen has %v, the best %v", got, best)
	}
}

// Noise is charged for every round, and there is none of it where counts of owners would
// go without.
func TestPaperTicketsNoise(t *testing.T) {
	p := somePersonal(t)
	p.Prune, p.Mean, p.Job.Rounds, p.Job.World.Fidelity = Pruning{Target: 0.5}, PublicMask, 3, Ring
	p.Job.Privacy, p.Job.Sum = someNoise, job.Sum{}
	p.Job.Privacy.Clip, p.Job.Privacy.Multiplier = 0.5, 3
	out := runPersonal(t, p)
	last := 0.0
	for _, r := range out.Rounds {
		if !(r.Epsilon > last) || math.IsInf(r.Epsilon, 1) {
			t.Errorf("round %d: epsilon %v after %v", r.Round, r.Epsilon, last)
		}
		last = r.Epsilon
	}
	p.Job.Privacy.Epsilon = last * 0.9
	if out := runPersonal(t, p); out.Stopped == nil || len(out.Rounds) != 2 {
		t.Errorf("a budget below three rounds: %d rounds, %v", len(out.Rounds), out.Stopped)
	}
	for _, mean := range []SparseMean{OverOwners, VotedMask} {
		p.Mean = mean
		if _, err := newPersonal(p); err == nil {
			t.Errorf("%v with noise is let through", mean)
		}
	}
}

// What a party's rows do to its training does not show in a noisy sum: where it diverges
// the party submits no change, and goes on with what it receives.
// A mask that shrinks makes later rounds no dearer, and earlier ones no cheaper: what is
// said to be spent never falls.
func TestPersonalSpends(t *testing.T) {
	p := somePersonal(t)
	p.Mean, p.Job.World.Fidelity = PublicMask, Ring
	p.Prune = Pruning{Step: 0.5, Target: 0.9}
	p.Job.Sum = job.Sum{}
	p.Job.Privacy = job.Privacy{Noise: "discrete-laplace", Multiplier: 60, Clip: 1, Bits: 24}
	before := 0.
	for _, r := range runPersonal(t, p).Rounds {
		t.Logf("round %d: %.0f %% of the weights, ε %v", r.Round, 100*r.Common, r.Epsilon)
		if !(r.Epsilon > before) {
			t.Errorf("round %d: %v in all, %v before it", r.Round, r.Epsilon, before)
		}
		before = r.Epsilon
	}
}

func TestPersonalDiverged(t *testing.T) {
	p := somePersonal(t)
	p.Prune, p.Own, p.Local.Rate = Pruning{}, nil, 1e200
	p.Job.World.Fidelity, p.Job.Rounds = Ring, 2
	if _, err := p.Train(t.Context(), nil); !errors.Is(err, learning.ErrDiverged) {
		t.Errorf("without noise: %v", err)
	}
	p.Job.Privacy, p.Job.Sum = someNoise, job.Sum{}
	out := runPersonal(t, p)
	if j := out.Rounds[1].Judged; !slices.Equal(j.Received, j.Trained) {
		t.Errorf("received %v, trained %v", j.Received, j.Trained)
	}
}

func TestPersonalErrors(t *testing.T) {
	for name, change := range map[string]func(*Personal){
		"Parties":         func(p *Personal) { p.Parties = p.Parties[:1] },
		"Rounds":          func(p *Personal) { p.Job.Rounds = 0 },
		"Pull":            func(p *Personal) { p.Pull = -1 },
		"Prune.Kind":      func(p *Personal) { p.Prune.Kind = 3 },
		"Prune.Step":      func(p *Personal) { p.Prune.Step = 2 },
		"Prune.Target":    func(p *Personal) { p.Prune.Target = 1 },
		"Prune.Threshold": func(p *Personal) { p.Prune.Threshold = math.NaN() },
		"Mix":             func(p *Personal) { p.Mix = 2 },
		"Lookahead":       func(p *Personal) { p.Lookahead = -1 },
		"JumpStart":       func(p *Personal) { p.JumpStart = -1 },
		"JumpTarget":      func(p *Personal) { p.JumpTarget = 1 },
		"Mean":            func(p *Personal) { p.Mean = 9 },
		"Quorum":          func(p *Personal) { p.Quorum = -1 },
		"Own":             func(p *Personal) { p.Own = []learning.Span{{From: 3, To: 2}} },
		"Own, all":        func(p *Personal) { p.Own = []learning.Span{{From: 0, To: 1 << 20}} },
	} {
		p := somePersonal(t)
		change(&p)
		_, err := p.Train(t.Context(), nil)
		var option *job.ConfigError
		if !errors.As(err, &option) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := somePersonal(t)
	p.Mean = PublicMask
	if _, err := newPersonal(p); err == nil {
		t.Error("parties prune under a public mask")
	}
}
