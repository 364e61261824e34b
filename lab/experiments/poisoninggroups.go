package experiments

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/oneshot"
)

const (
	poisonCheats = 5
	poisonGroups = 20
	// poisonUnits is how many units of a sum a clip is long.
	poisonUnits = 1 << 14
	// tighterFactor times the clip would pass a proof of three times as many rows, by a coin of the
	// server.
	tighterFactor = 1.5
)

// A defence is how the server sums vectors, and how long a cheat's passes.
type defence struct {
	groups int
	times  float64 // the clip
	noise  float64 // deviation of each number of a group's sum, in clips
}

func (d defence) labels(rows, attack string) []string {
	return []string{rows, attack, fmt.Sprint(d.groups), fmt.Sprint(d.times), fmt.Sprint(d.noise)}
}

// poisoningGroups trains a network on sums with proofs of norms, in which some parties cheat as far
// as a proof passes, by one sum a round and by the median of groups.
func poisoningGroups(ctx context.Context, o Options) (*Table, error) {
	hidden := pick(o, 32, 200, 4)
	p, err := newPoison(o, hidden)
	if err != nil {
		return nil, err
	}
	d, rounds := p.dealer, p.rounds
	t := &Table{
		Title:    fmt.Sprintf("Medians of groups: MLP %d-%d-10 on MNIST", d.train.Features, hidden),
		Labels:   []string{"rows", "cheats", "groups", "times", "noise"},
		Measures: []Measure{accuracyMeasure, {Name: "backdoor", Percent: true, Digits: 1}},
		Settings: []string{
			fmt.Sprintf("%d parties, all in each of %d rounds, each one epoch of batches of 20 rows at "+
				"rate 0.5 of %d rows of %s; updates of honest parties are clipped to L2 norm %v",
				poisonParties, rounds, p.rowsUsed(), imagesAre(d.train), poisonClip),
			fmt.Sprintf("rows: iid, or two labels have 0.99 of a party's rows (skew); %d parties cheat in "+
				"each round, with updates of so many times the clip, or none does; %v times passes a proof "+
				"(SPEC-ONESHOT.md, section 13), %v times is a tighter one's", poisonCheats, provedFactor,
				tighterFactor),
			"corner: an update of rows with a white square in the corner and all labels 0; middle: the " +
				"square is in the middle; flat: the corner's update, with all its numbers of one size",
			fmt.Sprintf("groups 1: the server adds the mean; groups %d: it adds the median of the groups' "+
				"means, with groups and medians by package oneshot", poisonGroups),
			"noise: deviation of the normal noise on each number of a group's sum, in clips",
			fmt.Sprintf("backdoor: the share of test rows of other classes that are taken for %d once they "+
				"have the square; accuracy: of rows without it, after the last round", poisonTarget),
		},
		Notes: []string{fmt.Sprintf("Vectors are rounded to 1/%d of the clip and added in the clear: "+
			"that sums are exact and longer vectors are refused, tests of package oneshot show.",
			poisonUnits)},
	}
	alone, grouped := defence{1, provedFactor, 0}, defence{poisonGroups, provedFactor, 0}
	tighter, noisy := defence{1, tighterFactor, 0}, defence{poisonGroups, provedFactor, 0.02}
	noisier := defence{poisonGroups, provedFactor, 0.1}
	var arms []arm
	add := func(rows, attack string, by ...defence) {
		for _, by := range by {
			arms = append(arms, arm{labels: by.labels(rows, attack), steps: rounds,
				run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
					return p.grouped(ctx, rows, attack, by, seed, step)
				}})
		}
	}
	attacks := []string{"corner", "middle", "flat"}
	for _, rows := range []string{"iid", "skew"} {
		add(rows, "none", alone, grouped, noisy)
		for _, attack := range attacks {
			add(rows, attack, alone, tighter, grouped, noisy)
		}
	}
	add("iid", "none", noisier)
	add("iid", "corner", noisier)
	err = t.fill(ctx, o, arms)
	for _, rows := range []string{"iid", "skew"} {
		clean := func(d defence) []string { return d.labels(rows, "none") }
		t.compare(rows+", no cheats: groups less one sum", clean(grouped), clean(alone), 0, 0)
		t.compare(rows+", no cheats: groups with noise less one sum", clean(noisy), clean(alone), 0, 0)
		for _, attack := range attacks {
			name := fmt.Sprintf("%s, %s: ", rows, attack)
			of := func(d defence) []string { return d.labels(rows, attack) }
			t.compare(name+"groups less one sum", of(grouped), of(alone), 1, 0)
			t.compare(name+"groups less no cheats", of(grouped), clean(grouped), 1, 0)
			t.compare(name+"groups with noise less no cheats", of(noisy), clean(noisy), 1, 0)
			t.compare(name+"one sum, tighter less proofs as they are", of(tighter), of(alone), 1, 0)
		}
	}
	return t, err
}

// grouped trains with sums of groups.
func (p *poison) grouped(
	ctx context.Context, rows, attack string, by defence, seed uint64, step func(),
) (outcome, error) {
	options := learning.PartitionOptions{Clients: poisonParties}
	split := "iid"
	if rows == "skew" {
		split, options.Share = "label-skew", 0.99
	}
	with, err := p.dealer.dealWith(split, seed, false, options)
	if err != nil {
		return outcome{}, err
	}
	mark := markRows
	if attack == "middle" {
		mark = markMiddle
	}
	marked, err := othersOf(with.test)
	if err != nil {
		return outcome{}, err
	}
	marked = mark(marked)
	parties := slices.Clone(with.parties)
	cheats := poisonCheats
	if attack == "none" {
		cheats = 0
	}
	for i := range cheats {
		parties[i] = mark(parties[i])
		parties[i].Labels = make([]int, parties[i].Len()) // poisonTarget
	}
	weights := p.model.Init(seed)
	for round := range p.rounds {
		context := [32]byte{}
		binary.BigEndian.PutUint64(context[:], seed)
		binary.BigEndian.PutUint64(context[8:], uint64(round))
		group := oneshot.Groups(&context, len(parties), by.groups)
		sums, counts := make([][]int64, by.groups), make([]int, by.groups)
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		for g := range sums {
			sums[g] = make([]int64, len(weights))
			for k := range sums[g] {
				if by.noise > 0 {
					sums[g][k] = int64(math.Round(random.NormFloat64() * by.noise * poisonUnits))
				}
			}
		}
		for i, rows := range parties {
			if err := ctx.Err(); err != nil {
				return outcome{}, err
			}
			update, err := p.update(weights, rows, seed, round, i)
			if err != nil {
				return outcome{}, err
			}
			if i < cheats {
				if attack == "flat" {
					for k, x := range update {
						update[k] = math.Copysign(1, x)
					}
				}
				cheat(update, "backdoor", by.times*poisonClip)
			}
			for k, x := range update {
				sums[group[i]][k] += int64(math.Round(x * poisonUnits / poisonClip))
			}
			counts[group[i]]++
		}
		sum := make([]float64, len(weights))
		for k, x := range oneshot.MedianOfMeans(sums, counts) {
			sum[k] = float64(x)
		}
		floats.AddScaled(weights, poisonClip/poisonUnits/float64(len(parties)), sum)
		step()
	}
	matrix, err := learning.Evaluate(p.model, weights, with.test)
	if err != nil {
		return outcome{}, err
	}
	success, err := p.success(weights, marked)
	return outcome{values: []float64{matrix.Accuracy(), success}}, err
}

// markMiddle returns rows with a white square of 3 × 3 pixels in the middle.
func markMiddle(d *learning.Dataset) *learning.Dataset {
	side := int(math.Round(math.Sqrt(float64(d.Features))))
	return markAt(d, (side-3)/2)
}
