package experiments

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
)

const (
	poisonParties = 100
	poisonClip    = 0.5
	// provedFactor times the bound is the longest vector that a proof passes: SPEC-ONESHOT §13.
	provedFactor = 3.05
	// poisonTarget is the class that a backdoor has marked rows taken for.
	poisonTarget = 0
)

// newPoison returns what the experiments with parties that cheat share, for a network with so many
// hidden units.
func newPoison(o Options, hidden int) (*poison, error) {
	d, err := newDealer(o, "mnist", pick(o, 6000, 60000, 600), pick(o, 2000, 10000, 200))
	if err != nil {
		return nil, err
	}
	if o.made == nil && !o.Long {
		d.smaller(o, 14)
	}
	return &poison{dealer: d, model: d.network(hidden), rounds: pick(o, 30, 100, 3)}, nil
}

// poisoning trains a network on private sums in which some parties cheat, with what bounds them:
// nothing, a server that clips the sum, and proofs of each party's norm.
func poisoning(ctx context.Context, o Options) (*Table, error) {
	hidden := pick(o, 32, 200, 4)
	p, err := newPoison(o, hidden)
	if err != nil {
		return nil, err
	}
	d, rounds := p.dealer, p.rounds
	t := &Table{
		Title:    fmt.Sprintf("Parties that cheat: MLP %d-%d-10 on MNIST", d.train.Features, hidden),
		Labels:   []string{"attack", "cheats", "bound"},
		Measures: []Measure{accuracyMeasure, {Name: "backdoor", Percent: true, Digits: 1}},
		Figures: []Figure{learningFigure("accuracy", "5 of 100 parties cheat"),
			{Name: "norms", Title: "Sums of which no party cheats", X: "round", Y: "L2 norm"}},
		Settings: []string{
			fmt.Sprintf("%d parties, iid, all in each of %d rounds, each one epoch of batches of 20 rows "+
				"at rate 0.5 of %d rows of %s; updates of honest parties are clipped to L2 norm %v; the "+
				"server adds their mean", poisonParties, rounds, p.rowsUsed(), imagesAre(d.train),
				poisonClip),
			"sign flip: a cheat submits its own clipped update with the other sign; scaling: the " +
				"same direction, as long as passes; backdoor: an update, as long as passes, of rows with a " +
				"white square in the corner and all labels 0",
			fmt.Sprintf("bound none: 100 times the clip passes; sum: likewise, and the server scales the "+
				"sum to the norm that it had in the same round with no cheats, which no server knows; "+
				"proofs: %v times the clip passes (SPEC-ONESHOT.md, section 13)", provedFactor),
			fmt.Sprintf("backdoor: the share of test rows of other classes that are taken for %d once they "+
				"have the square; accuracy: of rows without it, after the last round", poisonTarget),
		},
		Notes: []string{"Vectors are added in the clear, at the limit of what a proof passes: that the " +
			"sum is exact and longer vectors are refused, tests of package oneshot show."},
	}
	clean := []string{"none", "0", "none"}
	arms := []arm{{labels: clean, steps: rounds,
		run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
			return p.run(ctx, "none", "none", 0, seed, step)
		},
		done: func(_ uint64, out outcome) { p.norms = out.lines[1].y },
	}}
	shares := []int{1, 5, 20}
	attacks, bounds := []string{"sign flip", "scaling", "backdoor"}, []string{"none", "sum", "proofs"}
	for _, attack := range attacks {
		for _, cheats := range shares {
			for _, bound := range bounds {
				arms = append(arms, arm{labels: []string{attack, fmt.Sprint(cheats), bound}, steps: rounds,
					run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
						return p.run(ctx, attack, bound, cheats, seed, step)
					}})
			}
		}
	}
	err = t.fill(ctx, o, arms)
	for _, attack := range attacks {
		for _, cheats := range shares {
			row := func(bound string) []string { return []string{attack, fmt.Sprint(cheats), bound} }
			name := fmt.Sprintf("%s, %d of 100: ", attack, cheats)
			t.compare(name+"proofs less none", row("proofs"), row("none"), 0, 0)
			t.compare(name+"proofs less no cheats", row("proofs"), clean, 0, 0)
			if attack == "backdoor" {
				t.compare(name+"proofs less none", row("proofs"), row("none"), 1, 0)
				t.compare(name+"proofs less no cheats", row("proofs"), clean, 1, 0)
			}
		}
	}
	return t, err
}

// poison holds what the runs of all arms share.
type poison struct {
	dealer *dealer
	model  learning.MLP
	rounds int
	norms  []float64 // of the sums of this seed without cheats, by round
}

func (p *poison) rowsUsed() int { return min(p.dealer.rows, p.dealer.train.Len()) }

func (p *poison) run(
	ctx context.Context, attack, bound string, cheats int, seed uint64, step func(),
) (outcome, error) {
	with, err := p.dealer.deal("iid", poisonParties, seed)
	if err != nil {
		return outcome{}, err
	}
	longest := poisonParties * poisonClip
	if bound == "proofs" {
		longest = provedFactor * poisonClip
	}
	marked, err := othersOf(with.test)
	if err != nil {
		return outcome{}, err
	}
	marked = markRows(marked)
	parties := slices.Clone(with.parties)
	for i := range cheats {
		if attack == "backdoor" {
			parties[i] = markRows(parties[i])
			parties[i].Labels = make([]int, parties[i].Len()) // poisonTarget
		}
	}
	weights := p.model.Init(seed)
	var accuracy, norms line
	for round := range p.rounds {
		sum := make([]float64, len(weights))
		for i, rows := range parties {
			if err := ctx.Err(); err != nil {
				return outcome{}, err
			}
			update, err := p.update(weights, rows, seed, round, i)
			if err != nil {
				return outcome{}, err
			}
			if i < cheats {
				cheat(update, attack, longest)
			}
			floats.Add(sum, update)
		}
		x := float64(round + 1)
		length := norm(sum)
		norms.x, norms.y = append(norms.x, x), append(norms.y, length)
		if bound == "sum" && length > p.norms[round] {
			floats.Scale(p.norms[round]/length, sum)
		}
		floats.AddScaled(weights, 1./poisonParties, sum)
		matrix, err := learning.Evaluate(p.model, weights, with.test)
		if err != nil {
			return outcome{}, err
		}
		accuracy.x, accuracy.y = append(accuracy.x, x), append(accuracy.y, matrix.Accuracy())
		step()
	}
	success, err := p.success(weights, marked)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{[]float64{accuracy.y[p.rounds-1], success}, []line{{}, {}}}
	if cheats == 0 {
		out.lines = []line{accuracy, norms}
	} else if cheats == 5 {
		out.lines[0] = accuracy
	}
	return out, nil
}

// othersOf returns the rows of other classes than a backdoor's.
func othersOf(d *learning.Dataset) (*learning.Dataset, error) {
	others := make([]int, 0, d.Len())
	for i, label := range d.Labels {
		if label != poisonTarget {
			others = append(others, i)
		}
	}
	return d.Subset(others)
}

// success is the share of marked rows that are taken for a backdoor's class.
func (p *poison) success(weights []float64, marked *learning.Dataset) (share float64, err error) {
	matrix, err := learning.Evaluate(p.model, weights, marked)
	if err != nil {
		return 0, err
	}
	for label := range matrix.Classes {
		share += float64(matrix.At(label, poisonTarget)) / float64(marked.Len())
	}
	return share, nil
}

// update trains on rows, and returns the clipped change of the weights.
func (p *poison) update(
	weights []float64, rows *learning.Dataset, seed uint64, round, party int,
) ([]float64, error) {
	own := slices.Clone(weights)
	draws := rand.New(rand.NewPCG(seed, uint64(round)<<32|uint64(party)))
	sgd := learning.SGD{Rate: 0.5, Batch: 20}
	if _, err := sgd.Train(p.model, own, rows, draws.Uint64()); err != nil {
		return nil, err
	}
	floats.Sub(own, weights)
	clipped, _, err := aggregation.Clip(own, poisonClip)
	return clipped, err
}

// cheat makes what a cheat submits of an update, of any length up to the longest.
func cheat(update []float64, attack string, longest float64) {
	length := norm(update)
	if length == 0 {
		return
	}
	switch attack {
	case "sign flip":
		floats.Scale(-1, update)
	case "scaling":
		floats.Scale(-longest/length, update)
	case "backdoor":
		floats.Scale(longest/length, update)
	}
}

// markRows returns rows with a white square of 3 × 3 pixels in the last corner.
func markRows(d *learning.Dataset) *learning.Dataset {
	side := int(math.Round(math.Sqrt(float64(d.Features))))
	return markAt(d, side-3)
}

// markAt returns rows with a white square of 3 × 3 pixels, from a row and column on.
func markAt(d *learning.Dataset, at int) *learning.Dataset {
	marked := *d
	marked.Pixels = slices.Clone(d.Pixels)
	side := int(math.Round(math.Sqrt(float64(d.Features))))
	for i := range d.Len() {
		for y := at; y < at+3; y++ {
			for x := at; x < at+3; x++ {
				marked.Pixels[i*d.Features+y*side+x] = 255
			}
		}
	}
	return &marked
}
