package experiments

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// Settings of the papers on masked averaging in all of their experiments.
const (
	threshold   = aggregation.DefaultThreshold
	lastRounds  = 10 // the number of last rounds that accuracies are means over
	momentum    = 0.9
	weightDecay = 1e-5
	localBatch  = 32
)

// serverRates is the papers' grid of server rates from 0.1 on with the rates between 0.1
// and 1 that it lacks, and adaptiveRates one around their 0.05.
var (
	serverRates   = []float64{0.25, 0.4, 0.55, 0.7, 0.8, 1, 1.5}
	adaptiveRates = []float64{0.005, 0.01, 0.02, 0.05, 0.1}
)

// study compares plain and masked averaging in one setting.
type study struct {
	labels    []string
	published [2]float64 // accuracy in percent, plain and masked; 0: none
	elsewhere texts
	rounds    int
	rate      float64   // the papers' server rate
	grid      []float64 // that each of both chooses its own from
	figure    int       // of the table: accuracy by round, and by server rate one further
	// training is the setting without mask and server rate. To tune, it is judged on
	// validation rows.
	training func(seed uint64, tune bool) (setting, error)
	// threshold is the mask's; 0: the papers'.
	threshold float64

	best [2]float64 // what was chosen
}

var plainAndMasked = [2]string{"plain", "masked"}

// mask sets a gradient mask, of which jobs declare some kinds alone.
func (x *setting) mask(kind aggregation.MaskKind, threshold float64) {
	if kind == aggregation.NoMask {
		return
	}
	x.world = func(w *simulation.World) {
		w.Training.Mask = aggregation.GradientMask{Kind: kind, Threshold: threshold}
	}
}

// localTraining is the parties' training of the papers on masked averaging.
func localTraining(rate float64, epochs int) job.Training {
	return job.Training{Rate: rate, Momentum: momentum, WeightDecay: weightDecay, Batch: localBatch,
		Epochs: epochs}
}

// arms are those of the study: tuning, both at the papers' rate and at the best of each,
// and the two controls.
func (s *study) arms() []arm {
	var arms []arm
	label := func(name string) []string { return append(append([]string(nil), s.labels...), name) }
	for k, kind := range []aggregation.MaskKind{aggregation.NoMask, aggregation.SoftMask} {
		arms = append(arms, arm{
			labels: label(plainAndMasked[k]), hidden: true, seeds: 1, steps: s.rounds * len(s.grid),
			run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
				var out outcome
				best := math.Inf(-1)
				l := line{x: s.grid}
				for _, rate := range s.grid {
					a, _, err := s.run(ctx, tuningSeed+seed, true, kind, rate, step)
					if err != nil {
						return out, err
					}
					l.y = append(l.y, a.values[0])
					if a.values[0] > best {
						best, out.values = a.values[0], []float64{rate}
					}
				}
				if out.values == nil {
					return out, fmt.Errorf("%s: no rate of %v learns anything", strings.Join(s.labels, ", "),
						s.grid)
				}
				out.lines = inFigure(s.figure+1, l)
				return out, nil
			},
			done: func(_ uint64, o outcome) { s.best[k] = o.values[0] },
		})
	}
	for _, c := range []struct {
		name  string
		kind  aggregation.MaskKind
		tuned int // which of both has chosen the rate; −1: the papers'
	}{
		{"plain", aggregation.NoMask, -1}, {"masked", aggregation.SoftMask, -1},
		{"masked, mean 1", aggregation.RescaledMask, -1}, {"plain, rate × m̄", aggregation.FlatMask, -1},
		{"plain, own rate", aggregation.NoMask, 0}, {"masked, own rate", aggregation.SoftMask, 1},
	} {
		a := arm{labels: label(c.name), steps: s.rounds}
		for k, name := range plainAndMasked {
			if c.name == name && s.published[k] != 0 {
				a.published, a.elsewhere = percent(s.published[k]), s.elsewhere.of(k)
			}
		}
		a.run = func(ctx context.Context, seed uint64, step func()) (outcome, error) {
			rate := s.rate
			if c.tuned >= 0 {
				rate = s.best[c.tuned]
			}
			out, l, err := s.run(ctx, seed, false, c.kind, rate, step)
			out.lines = inFigure(s.figure, l)
			return out, err
		}
		arms = append(arms, a)
	}
	return arms
}

// tuningSeed is added to seeds when rates are chosen: other parties, batches and
// first models than those of the table.
const tuningSeed = 1000

// run is one training: its accuracy over the last rounds, how much that rose over as many
// before, the mean factor of the mask, the share of coordinates below the threshold, and
// the server rate.
func (s *study) run(
	ctx context.Context, seed uint64, tune bool, kind aggregation.MaskKind, rate float64, step func(),
) (outcome, line, error) {
	x, err := s.training(seed, tune)
	if err != nil {
		return outcome{}, line{}, err
	}
	x.Rounds, x.Seed, x.Server.Rate = s.rounds, seed, rate
	x.mask(kind, cmp.Or(s.threshold, threshold))
	t, err := train(ctx, &x, step)
	if diverged(err) {
		return outcome{values: []float64{0, math.NaN(), math.NaN(), math.NaN(), rate}}, line{}, nil
	}
	if err != nil {
		return outcome{}, line{}, err
	}
	l := learned(t)
	last, before := l.meanOver(s.rounds, min(lastRounds, s.rounds))
	mask, below := 0.0, 0.0
	for _, r := range t.Rounds {
		mask += r.Masked / float64(len(t.Rounds))
		below += r.Disagreed / float64(len(t.Rounds))
	}
	if kind == aggregation.NoMask || kind == aggregation.FlatMask {
		below = math.NaN()
	}
	return outcome{values: []float64{last, last - before, mask, below, rate}}, l, nil
}

// table is a table for studies with these labels, without rows.
func maskedTable(title string, labels ...string) *Table {
	return &Table{
		Title:  title,
		Labels: append(labels, "average"),
		Measures: []Measure{
			accuracyMeasure, riseMeasure, {Name: "mask", Digits: 3},
			{Name: "below", Percent: true, Digits: 0}, {Name: "rate", Digits: 2},
		},
		Notes: []string{
			"accuracy: the mean of the last ten rounds; rise: how much that is above the mean " +
				"of the ten rounds before, which says whether training has come to an end; " +
				"mask: the mean factor over coordinates and rounds; below: the share of " +
				"coordinates whose agreement is under the threshold; rate: of the server. A " +
				"training that diverges counts as accuracy 0.",
			"own rate: the one of the grid with the best accuracy on rows that no party has, " +
				"from one training with another seed. mean 1: the mask over its mean. rate × " +
				"m̄: no mask, and a step shorter by the mask's mean.",
		},
	}
}

// add adds the studies' figures and arms, runs them, and compares.
func (t *Table) studies(ctx context.Context, o Options, all []*study) error {
	var arms []arm
	for _, s := range all {
		name := strings.NewReplacer(" ", "-", ",", "").Replace(
			strings.ToLower(strings.Join(s.labels, "-")))
		title := t.Title + ", " + strings.Join(s.labels, ", ")
		s.figure = len(t.Figures)
		t.Figures = append(t.Figures,
			learningFigure(name, title),
			Figure{Name: name + "-rates", Title: title, X: "server rate", Y: "validation accuracy, %",
				Percent: true, LogX: true})
		arms = append(arms, s.arms()...)
	}
	err := t.fill(ctx, o, arms)
	for _, s := range all {
		row := func(name string) []string { return append(append([]string(nil), s.labels...), name) }
		claim := strings.Join(s.labels, ", ") + ": "
		for _, c := range []struct {
			a, b     string
			says     string
			expected int
		}{
			{"masked", "plain", "masked less plain at the papers' rate", 1},
			{"masked, own rate", "plain, own rate", "masked less plain, each at its own rate", 1},
			{"masked", "plain, rate × m̄", "masked less plain with a step as short", 1},
			{"masked, mean 1", "plain", "the mask of mean 1 less plain", 0},
			{"plain, rate × m̄", "plain", "plain with a step as short less plain", 0},
		} {
			t.compare(claim+c.says, row(c.a), row(c.b), 0, c.expected)
		}
	}
	return err
}

// gridText says what rates are chosen from.
func gridText(grid []float64) string { return strings.Trim(fmt.Sprint(grid), "[]") }

// convex is thesis §3.5.4: multinomial logistic regression, 10 parties.
func convex(ctx context.Context, o Options) (*Table, error) {
	rows := pick(o, 6000, 54000, 600)
	rounds := pick(o, 60, 200, 6)
	d, err := newDealer(o, "mnist", rows, pick(o, 5000, 10000, 200))
	if err == nil {
		err = d.holdOut(pick(o, 5000, 5000, 200))
	}
	if err != nil {
		return nil, err
	}
	t := maskedTable("Multinomial logistic regression on MNIST, 10 parties", "split")
	grid := pick(o, serverRates, serverRates, []float64{0.5, 1})
	t.Settings = []string{
		fmt.Sprintf("%d training rows, %d test rows; %d rounds of all parties", rows, d.test.Len(),
			rounds),
		"of the thesis: server rate 1, local rate 0.01, momentum 0.9, batches of 32, weight " +
			"decay 1e-5, soft mask with threshold 0.4; two main classes with 90 % of a party's " +
			"rows; one local epoch where it prints one step, with which splits could not matter",
		"own server rates from " + gridText(grid),
	}
	var all []*study
	for _, split := range []string{"iid", "label-skew"} {
		all = append(all, &study{
			labels: []string{split}, rounds: rounds, rate: 1, grid: grid,
			published: map[string][2]float64{"iid": {92.4, 92.5}, "label-skew": {87.0, 88.5}}[split],
			training: func(seed uint64, tune bool) (setting, error) {
				with, err := d.dealWith(split, seed, tune, learning.PartitionOptions{Clients: 10})
				return setting{rows: with, Job: job.Job{Model: job.Model{Name: "softmax"},
					Sum: job.Sum{MaxWeight: rows}, Training: localTraining(0.01, 1)}}, err
			},
		})
	}
	return t, t.studies(ctx, o, all)
}

// writers is the papers' evaluation on real parties: MNIST by the writer of each
// digit, tested on writers that no party is.
func writers(ctx context.Context, o Options) (*Table, error) {
	rounds := pick(o, 40, 500, 2)
	perRound := pick(o, 10, 30, 4)
	d, err := newImages(o, "writers", 1<<30, pick(o, 2000, 10000, 200), pick(o, 3000, 5000, 200))
	if err != nil {
		return nil, err
	}
	t := maskedTable("LeNet on MNIST by writer, tested on unseen writers", "rule")
	clients, unseen := writersOf(d.train), writersOf(d.test)
	grid := pick(o, serverRates, serverRates, []float64{0.5, 1})
	t.Settings = []string{
		fmt.Sprintf("%d writers with %d rows of %s, %d in a round; %d test rows of %d other "+
			"writers", clients, d.train.Len(), imagesAre(d.train), perRound, d.test.Len(), unseen),
		fmt.Sprintf("%d rounds; of the papers, which have 3,000 writers and 30 in a round: "+
			"server rate 1, local rate 0.01, momentum 0.9, 5 local epochs, batches of 32, "+
			"weight decay 1e-5, soft mask with threshold 0.4, means weighted by rows", rounds),
		"own server rates from " + gridText(grid) + ", by writers who are neither in training " +
			"nor in the test set",
	}
	s := &study{
		labels: []string{"FedAvg"}, published: [2]float64{94.28, 95.57}, rounds: rounds, rate: 1,
		elsewhere: texts{"workshop form": {89.29, 95}, "thesis": {99.34, 99.4}}, grid: grid,
		training: func(seed uint64, tune bool) (setting, error) {
			with, err := d.dealWith("writers", seed, tune, learning.PartitionOptions{})
			return setting{rows: with, Job: job.Job{Model: lenet, Sum: job.Sum{MaxWeight: 1000},
				Parties: job.Parties{PerRound: perRound}, Training: localTraining(0.01, 5)}}, err
		},
	}
	return t, t.studies(ctx, o, []*study{s})
}

func writersOf(d *learning.Dataset) int {
	all := map[int]bool{}
	for _, w := range d.Writers {
		all[w] = true
	}
	return len(all)
}

// features is FedCMNIST and FedRotMNIST: colour or angle tell the label in training and
// not in the test.
func features(ctx context.Context, o Options) (*Table, error) {
	return featuresForm{splits: pick(o, []string{"label-colour-skew", "label-rotation-skew"},
		[]string{"label-colour", "label-colour-skew", "label-rotation", "label-rotation-skew"},
		[]string{"label-colour", "label-rotation-skew"})}.run(ctx, o)
}

// looseFeatures is FedCMNIST with colours that tell the label in a part of the images only, so that
// shapes are learned too.
func looseFeatures(ctx context.Context, o Options) (*Table, error) {
	return featuresForm{splits: pick(o, []string{"label-colour-skew"},
		[]string{"label-colour", "label-colour-skew"}, []string{"label-colour"}),
		loose: looseColours}.run(ctx, o)
}

// looseColours is the share of images that have the colour of a label drawn at random.
const looseColours = 0.5

// featuresForm has all in which the experiments of features differ.
type featuresForm struct {
	splits []string
	loose  float64
}

func (f featuresForm) run(ctx context.Context, o Options) (*Table, error) {
	rows := pick(o, 1500, 55000, 600)
	d, err := newImages(o, "mnist", rows, pick(o, 1000, 10000, 200), pick(o, 1000, 5000, 200))
	if err != nil {
		return nil, err
	}
	rate := pick(o, 0.05, 0.01, 0.05)
	sizes := pick(o, map[int]int{10: 55}, map[int]int{10: 120, 100: 500, 500: 2000},
		map[int]int{10: 2})
	t := maskedTable("LeNet on MNIST with features that go with the label", "split", "parties")
	grid := pick(o, serverRates, serverRates, []float64{0.5, 1})
	t.Settings = []string{
		fmt.Sprintf("%d training rows of %s, %d test rows; rounds by parties: %v, 10 parties in "+
			"each", rows, imagesAre(d.train), d.test.Len(), sizes),
		"label-colour: each label has a band of hues of its own, and each party a place in it; " +
			"test hues are new. label-rotation: labels 0 to 9 are turned by 10, −10, 20, … −50 " +
			"degrees, test images are not turned. skew: two main classes with 90 % of a party's " +
			"rows besides",
		fmt.Sprintf("of the papers: server rate 1, momentum 0.9, 1 local epoch, batches of 32, "+
			"weight decay 1e-5, soft mask with threshold 0.4; local rate %v", rate),
		"own server rates from " + gridText(grid) + ", by rows that are recast as those of the " +
			"test",
	}
	if f.loose > 0 {
		t.Title += " in part of the images"
		t.Settings[1] += fmt.Sprintf("; %v of the images have the colour of a label drawn at random",
			f.loose)
	}
	published := map[string][2]float64{
		"label-colour-skew 500": {84.48, 86.22}, "label-colour-skew 100": {85.62, 88.32},
		"label-colour-skew 10": {86.77, 89.17},
		"label-colour 500":     {89.03, 90.12}, "label-colour 100": {89.88, 91.37},
		"label-colour 10":   {89.37, 90.36},
		"label-rotation 10": {98.69, 98.87}, "label-rotation-skew 10": {96.18, 96.78},
	}
	// The workshop form has a colour or an angle for each client.
	elsewhere := map[string]texts{
		"label-colour-skew 10": {"workshop form": {55.2, 60.77}, "thesis": {85.92, 88.59}},
		"label-colour 10":      {"thesis": {89.73, 90.07}},

		"label-rotation-skew 10": {"workshop form": {71.17, 73.68}},
	}
	var all []*study
	for _, split := range f.splits {
		for _, clients := range []int{10, 100, 500} {
			if sizes[clients] == 0 {
				continue
			}
			all = append(all, &study{
				labels: []string{split, fmt.Sprintf("10 of %d", clients)}, rounds: sizes[clients], rate: 1,
				grid:      grid,
				published: published[fmt.Sprintf("%s %d", split, clients)],
				elsewhere: elsewhere[fmt.Sprintf("%s %d", split, clients)],
				training: func(seed uint64, tune bool) (setting, error) {
					with, err := d.dealWith(split, seed, tune,
						learning.PartitionOptions{Clients: clients, Loose: f.loose})
					return setting{rows: with, Job: job.Job{Model: lenet, Sum: job.Sum{MaxWeight: rows},
						Parties: job.Parties{PerRound: 10}, Training: localTraining(rate, 1)}}, err
				},
			})
		}
	}
	return t, t.studies(ctx, o, all)
}
