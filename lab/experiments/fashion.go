package experiments

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// maskRule is a rule of server or parties in the tables of masked averaging.
type maskRule struct {
	name     string
	client   job.Training // its rule
	server   job.Server
	rate     float64 // of the papers
	local    float64 // the papers' local rate over FedAvg's
	adaptive bool
}

func maskRules(all bool) []maskRule {
	adam := job.Server{Rule: "fedadam", Beta1: 0.9}
	yogi := job.Server{Rule: "fedyogi", Beta1: 0.9}
	inside := adam
	inside.TauInside = true
	rules := []maskRule{
		{name: "FedAvg", rate: 1, local: 1},
		{name: "FedProx", client: job.Training{Rule: "fedprox", Mu: 1}, rate: 1, local: 1},
		{name: "SCAFFOLD", client: job.Training{Rule: "scaffold", Variates: "gradient"}, rate: 1,
			local: 1},
		{name: "FedAdam", server: adam, rate: 0.05, local: 0.1, adaptive: true},
		{name: "FedAdam, constant inside", server: inside, rate: 0.05, local: 0.1, adaptive: true},
		{name: "FedYogi", server: yogi, rate: 0.05, local: 0.1, adaptive: true},
	}
	if !all {
		return rules[:1]
	}
	return rules
}

// fashionPublished is the journal's Table 2 for Fashion-MNIST, by split, clients and rule.
var fashionPublished = map[string][2]float64{
	"label-skew 500 FedAvg": {78.02, 78.82}, "label-skew 100 FedAvg": {85.58, 86.27},
	"label-skew 10 FedAvg":   {87.43, 88.37},
	"label-skew 500 FedProx": {76.21, 77.77}, "label-skew 100 FedProx": {85.14, 85.78},
	"label-skew 10 FedProx":  {88.25, 88.55},
	"label-skew 500 FedAdam": {78.80, 81.28}, "label-skew 100 FedAdam": {85.91, 87.18},
	"label-skew 10 FedAdam":  {87.26, 87.50},
	"label-skew 500 FedYogi": {78.66, 80.58}, "label-skew 100 FedYogi": {85.32, 86.40},
	"label-skew 10 FedYogi": {87.39, 88.60},
	"iid 500 FedAvg":        {83.07, 83.94}, "iid 100 FedAvg": {88.03, 88.43},
	"iid 10 FedAvg":   {89.35, 89.65},
	"iid 500 FedProx": {83.47, 82.77}, "iid 100 FedProx": {87.05, 87.46},
	"iid 10 FedProx":  {89.92, 90.12},
	"iid 500 FedAdam": {85.44, 86.73}, "iid 100 FedAdam": {88.66, 89.16},
	"iid 10 FedAdam":  {88.66, 88.86},
	"iid 500 FedYogi": {85.55, 86.42}, "iid 100 FedYogi": {88.63, 89.70},
	"iid 10 FedYogi": {88.85, 89.85},
	// The thesis's Table 3.1.
	"label-skew 10 SCAFFOLD": {87.67, 88.31},
	// As the papers print FedAdam.
	"label-skew 10 FedAdam, constant inside": {87.26, 87.50},
}

// texts holds accuracies in percent that texts print, plain and masked.
type texts map[string][2]float64

// fashionElsewhere has those of the workshop form's Table 1 and of the thesis: its Table 3.1, and
// for iid its ablation of momentum.
var fashionElsewhere = map[string]texts{
	"label-skew 10 FedAvg":  {"workshop form": {70.45, 76.34}, "thesis": {88.1, 88.38}},
	"label-skew 10 FedProx": {"thesis": {87.61, 87.7}},
	"label-skew 10 FedAdam": {"workshop form": {75.62, 81.03}, "thesis": {86.8, 87.28}},
	"label-skew 10 FedYogi": {"thesis": {86.61, 87.5}},
	"iid 10 FedAvg":         {"thesis": {89.14, 90.52}},
}

// of returns those of plain averaging, 0, or of masked, 1.
func (t texts) of(k int) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for text, accuracies := range t {
		out[text] = percent(accuracies[k])
	}
	return out
}

// fashion is the journal's Table 2 on Fashion-MNIST: 10 parties a round.
func fashion(ctx context.Context, o Options) (*Table, error) {
	return fashionForm{split: "label-skew", rules: maskRules(o.Long)}.run(ctx, o)
}

// fashionIID is the same with rows dealt at random.
func fashionIID(ctx context.Context, o Options) (*Table, error) {
	return fashionForm{split: "iid", rules: maskRules(o.Long)}.run(ctx, o)
}

// otherRules has the rules of that table that the quick form of fashion leaves out, with fewer rows
// and all parties in each round.
func otherRules(ctx context.Context, o Options) (*Table, error) {
	return fashionForm{
		split: "label-skew", rules: maskRules(true)[1:], rows: pick(o, 1000, 0, 0),
		sizes: pick(o, map[int]int{10: 60}, map[int]int{10: 120}, map[int]int{10: 2}),
	}.run(ctx, o)
}

// fashionForm has all in which the experiments of that table differ.
type fashionForm struct {
	split string
	rules []maskRule
	rows  int         // 0: those of fashion
	sizes map[int]int // rounds by parties; nil: those of fashion
}

func (f fashionForm) run(ctx context.Context, o Options) (*Table, error) {
	rows := cmp.Or(f.rows, pick(o, 2000, 55000, 600))
	d, err := newImages(o, "fashion-mnist", rows, pick(o, 1000, 10000, 200), pick(o, 1000, 5000, 200))
	if err != nil {
		return nil, err
	}
	// A thirtieth of the rows makes a thirtieth of the local steps; the larger rate, which
	// is of the papers' grid too, makes up for some of that.
	rate := pick(o, 0.05, 0.01, 0.05)
	sizes := f.sizes
	if sizes == nil {
		sizes = pick(o, map[int]int{10: 90, 100: 180}, map[int]int{10: 120, 100: 500, 500: 2000},
			map[int]int{10: 2, 20: 2})
	}
	dealt := map[string]string{"label-skew": "two main classes with 90 % of a party's rows",
		"iid": "dealt at random"}[f.split]
	t := maskedTable("LeNet on Fashion-MNIST, 10 parties a round", "split", "parties", "rule")
	grid := pick(o, serverRates, serverRates, []float64{0.5, 1})
	t.Settings = []string{
		fmt.Sprintf("%d training rows of %s, %d test rows; %s", rows, imagesAre(d.train), d.test.Len(),
			dealt),
		fmt.Sprintf("rounds by parties: %v; 10 parties in each", sizes),
		fmt.Sprintf("of the papers: server rate 1, momentum 0.9, 1 local epoch, batches of 32, "+
			"weight decay 1e-5, soft mask with threshold 0.4, means weighted by rows; local "+
			"rate %v", rate),
		"own server rates from " + gridText(grid),
	}
	if len(f.rules) > 1 {
		t.Settings = append(t.Settings, "FedProx with mu 1, SCAFFOLD with option I; FedAdam and "+
			"FedYogi with server rate 0.05, betas 0.9 and 0.99, tau 1e-3 next to the root or "+
			"inside, local rate a tenth, own server rates from "+gridText(adaptiveRates))
	}
	var all []*study
	for _, clients := range []int{10, 20, 100, 500} {
		if sizes[clients] == 0 {
			continue
		}
		for _, rule := range f.rules {
			local := localTraining(rate*rule.local, 1)
			local.Rule, local.Mu, local.Variates = rule.client.Rule, rule.client.Mu, rule.client.Variates
			own := grid
			if rule.adaptive {
				own = adaptiveRates
			}
			all = append(all, &study{
				labels: []string{f.split, fmt.Sprintf("10 of %d", clients), rule.name}, rounds: sizes[clients],
				rate: rule.rate, grid: own,
				published: fashionPublished[fmt.Sprintf("%s %d %s", f.split, clients, rule.name)],
				elsewhere: fashionElsewhere[fmt.Sprintf("%s %d %s", f.split, clients, rule.name)],
				training: func(seed uint64, tune bool) (setting, error) {
					with, err := d.dealWith(f.split, seed, tune, learning.PartitionOptions{Clients: clients})
					return setting{rows: with, Job: job.Job{Model: lenet, Sum: job.Sum{MaxWeight: rows},
						Parties: job.Parties{PerRound: 10}, Training: local, Server: rule.server}}, err
				},
			})
		}
	}
	return t, t.studies(ctx, o, all)
}

// thresholds varies the mask's in the setting of fashion, with fewer rows: the papers tried 0.1 to
// 0.9 and took 0.4.
func thresholds(ctx context.Context, o Options) (*Table, error) {
	rows, rounds := pick(o, 1000, 55000, 600), pick(o, 60, 120, 2)
	rate := pick(o, 0.05, 0.01, 0.05)
	d, err := newImages(o, "fashion-mnist", rows, pick(o, 1000, 10000, 200), 0)
	if err != nil {
		return nil, err
	}
	t := maskedTable("LeNet on Fashion-MNIST, the mask's threshold", "threshold")
	t.Notes = t.Notes[:1]
	t.Figures = []Figure{learningFigure("thresholds", t.Title)}
	t.Settings = []string{
		fmt.Sprintf("%d training rows of %s, %d test rows; %d rounds of 10 parties, two main classes "+
			"with 90 %% of a party's rows", rows, imagesAre(d.train), d.test.Len(), rounds),
		fmt.Sprintf("of the papers: server rate 1, momentum 0.9, 1 local epoch, batches of 32, weight "+
			"decay 1e-5, soft mask; local rate %v", rate),
	}
	var arms []arm
	add := func(name, average string, tau float64, kind aggregation.MaskKind) {
		s := &study{rounds: rounds, threshold: tau,
			training: func(seed uint64, tune bool) (setting, error) {
				with, err := d.dealWith("label-skew", seed, tune, learning.PartitionOptions{Clients: 10})
				return setting{rows: with, Job: job.Job{Model: lenet, Sum: job.Sum{MaxWeight: rows},
					Training: localTraining(rate, 1)}}, err
			}}
		a := arm{labels: []string{name, average}, steps: rounds,
			run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
				out, l, err := s.run(ctx, seed, false, kind, 1, step)
				out.lines = []line{l}
				return out, err
			}}
		const cell = "label-skew 10 FedAvg" // the papers say that 0.4 is best there
		for k, of := range []float64{0, threshold} {
			if tau == of {
				a.published, a.elsewhere = percent(fashionPublished[cell][k]), fashionElsewhere[cell].of(k)
			}
		}
		arms = append(arms, a)
	}
	add("none", "plain", 0, aggregation.NoMask)
	all := pick(o, []float64{0.2, 0.4, 0.6, 0.8},
		[]float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, []float64{0.2, 0.4})
	for _, tau := range all {
		add(fmt.Sprint(tau), "masked", tau, aggregation.SoftMask)
	}
	err = t.fill(ctx, o, arms)
	for _, tau := range all {
		row := []string{fmt.Sprint(tau), "masked"}
		t.compare(fmt.Sprintf("threshold %v less plain", tau), row, []string{"none", "plain"}, 0, 1)
		if tau != threshold {
			t.compare(fmt.Sprintf("threshold %v less that of %v", threshold, tau),
				[]string{fmt.Sprint(threshold), "masked"}, row, 0, 1)
		}
	}
	return t, err
}
