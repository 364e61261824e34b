package model

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

var membership = attacks.Attack{
	Name:      "Membership",
	Adversary: "outsider",
	About: "tell from a model whether a row was in its training, " +
		"by regression on logits and by LiRA",
	Defence:  "client-level noise: TPR ≤ e^2ε·FPR + (1+e^ε)·δ of a row",
	DataSets: []string{"digits"},
	Run:      runMembership,
}

// membershipFPR is the false-positive rate at which true positives are counted.
const membershipFPR = 1e-3

// membershipAttack is a way to score rows, with the least AUC, and true-positive rate
// at membershipFPR, that make it one without noise; 0: the rate is not judged.
type membershipAttack struct {
	name     string
	score    func(*Shadows) ([]Scored, error)
	leastAUC float64
	leastTPR float64
}

func runMembership(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	models := 80
	if o.Long {
		models *= 8
	}
	study, err := newMembershipStudy(o)
	if err != nil {
		return nil, err
	}
	targets := []*membershipTarget{{name: "plain"}, {name: "masked", masked: true}}
	for i, target := range targets {
		o.Advance(i, len(targets))
		if err := target.train(ctx, o, study, models); err != nil {
			return nil, err
		}
	}
	report := &attacks.Report{}
	for _, attack := range []membershipAttack{
		// At a rate of 0.1 % regression is blind (Carlini 2022).
		{name: "regression on logits", score: (*Shadows).Regress, leastAUC: 0.51},
		{name: "LiRA", score: (*Shadows).LiRA, leastAUC: 0.55, leastTPR: 1.5 * membershipFPR},
	} {
		if err := attack.run(study, targets, report); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// membershipTarget holds the models of one kind of averaging.
type membershipTarget struct {
	name   string
	masked bool       // by the soft gradient mask
	open   *federated // without noise
	noisy  *federated // with noise of clients
}

func (t *membershipTarget) train(
	ctx context.Context, o attacks.Options, study *membershipStudy, models int,
) (err error) {
	clientNoise := job.Privacy{
		Noise:      "discrete-gaussian",
		Multiplier: 128,
		Clip:       2,
		Bits:       22,
	}
	open := averaging{masked: t.masked}
	if t.open, err = study.train(ctx, o, partMembershipOpen, models, open); err != nil {
		return err
	}
	noisy := averaging{masked: t.masked, noise: clientNoise}
	t.noisy, err = study.train(ctx, o, partMembershipNoisy, models, noisy)
	return err
}

// run scores the models of all targets, and adds rows and a figure to the report.
func (a membershipAttack) run(
	study *membershipStudy, targets []*membershipTarget, report *attacks.Report,
) error {
	curves := attacks.Figure{
		Name:  "membership-" + strings.ToLower(strings.ReplaceAll(a.name, " ", "-")),
		Title: fmt.Sprintf("Membership by %s, models on %s", a.name, study.name),
		X:     "false positive rate",
		Y:     "true positive rate",
		LogX:  true,
		LogY:  true,
	}
	var accuracies [][]float64
	for _, target := range targets {
		open, err := a.score(target.open.Shadows)
		if err != nil {
			return err
		}
		noisy, err := a.score(target.noisy.Shadows)
		if err != nil {
			return err
		}
		openCurve, err := rocCurve(target.name, open)
		if err != nil {
			return err
		}
		noisyCurve, err := rocCurve(target.name+", noise", noisy)
		if err != nil {
			return err
		}
		curves.Series = append(curves.Series, openCurve, noisyCurve)
		rows, err := a.rows(target.name, open, noisy, target.noisy.spent)
		if err != nil {
			return err
		}
		rows[0].Note = fmt.Sprintf(
			"softmax on %s, %d parties, test accuracy %.2f, with noise %.2f; %s", study.name,
			study.parties, target.open.accuracy, target.noisy.accuracy, rows[0].Note)
		report.Rows = append(report.Rows, rows...)
		accuracies = append(accuracies, modelAccuracies(open))
	}
	row := averagingRow(a.name, accuracies[0], accuracies[1], study.pool.Len())
	row.Note += fmt.Sprintf("; test accuracy %.2f and %.2f",
		targets[0].open.accuracy, targets[1].open.accuracy)
	report.Rows = append(report.Rows, row)
	report.Figures = append(report.Figures, curves)
	return nil
}

// rows judges scores on models without noise, and with client-level noise of the
// given ε(server) at privacy.DefaultDelta.
func (a membershipAttack) rows(
	target string, open, noisy []Scored, spent *accounting.Claim,
) ([]attacks.Row, error) {
	undefended, err := Judge(open, membershipFPR)
	if err != nil {
		return nil, err
	}
	defended, err := Judge(noisy, membershipFPR)
	if err != nil {
		return nil, err
	}
	epsilon, delta := rowBound(spent.Bare().Upper, privacy.DefaultDelta)
	auc := PrivateAUC(epsilon, delta)
	openError, err := aucErrorOfModels(open)
	if err != nil {
		return nil, err
	}
	noisyError, err := aucErrorOfModels(noisy)
	if err != nil {
		return nil, err
	}
	rows := []attacks.Row{{
		Case:       a.name + ", " + target,
		Metric:     "AUC",
		Undefended: undefended.measureAUC(openError, a.leastAUC, 1),
		Defended:   defended.measureAUC(noisyError, 0, auc+attacks.Sigmas*noisyError),
		Note:       fmt.Sprintf("%v, allows a row an AUC of %.3f", spent, auc),
	}}
	if most := rows[0].Defended.Max; undefended.AUC <= most {
		// Nor would it be noticed that the noise is gone.
		rows[0].Defended = attacks.Measure{}
		rows[0].Note += fmt.Sprintf(", up to %.3f here, which the attack does not reach without noise",
			most)
	}
	if a.leastTPR > 0 {
		tpr := math.Exp(epsilon)*max(membershipFPR, defended.FPR) + delta
		margin := 2 * attacks.Sigmas * math.Sqrt(tpr/float64(defended.Members))
		rows = append(rows, attacks.Row{
			Case:       a.name + ", " + target,
			Metric:     "TPR at 0.1 % FPR",
			Undefended: undefended.measureTPR(a.leastTPR, 1),
			Defended:   defended.measureTPR(0, tpr+margin),
			Note: fmt.Sprintf("defended: at most e^2ε·FPR + (1+e^ε)·δ = %.4f for a row, "+
				"up to its interval", tpr),
		})
	}
	return rows, nil
}

// aucErrorOfModels returns the standard error of an AUC by how much it differs between models,
// which had their members by coins of their own. With the 40 models that regression leaves, more
// than attacks.Sigmas of it above the truth has a probability of 3e-7 (Student's law).
func aucErrorOfModels(scores []Scored) (float64, error) {
	of := make(map[int][]Scored)
	for _, s := range scores {
		of[s.Model] = append(of[s.Model], s)
	}
	var values []float64
	for _, model := range slices.Sorted(maps.Keys(of)) {
		j, err := Judge(of[model], membershipFPR)
		if err != nil {
			return 0, err
		}
		values = append(values, j.AUC)
	}
	_, standardError := attacks.MeanAndError(values)
	return standardError, nil
}

// measureAUC returns the AUC, of the given standard error, as a measurement that must be from low
// to high.
func (j Judgement) measureAUC(standardError, low, high float64) attacks.Measure {
	return attacks.Between(j.AUC, standardError, j.Members+j.Others, low, high)
}

// measureTPR returns TPR as a measurement that must be from low to high.
func (j Judgement) measureTPR(low, high float64) attacks.Measure {
	return attacks.Proportion(j.TruePositives, j.Members, low, high)
}

// averagingRow compares the attack's accuracy on plain and on masked averaging, model
// by model: both had the same rows and seeds. Intervals are over models, for the
// given pool.
func averagingRow(attack string, plain, masked []float64, rows int) attacks.Row {
	differences := make([]float64, len(plain))
	for i := range plain {
		differences[i] = masked[i] - plain[i]
	}
	n := len(plain) * rows
	between := func(values []float64, low, high float64) attacks.Measure {
		mean, standardError := attacks.MeanAndError(values)
		return attacks.Between(mean, standardError, n, low, high)
	}
	difference := between(differences, -1, 1)
	supported := "not supported"
	if difference.Lower > 0 || difference.Upper < 0 {
		supported = "supported"
	}
	return attacks.Row{
		Case:       attack,
		Metric:     "attack accuracy",
		Undefended: between(plain, 0.505, 1),
		Defended:   between(masked, 0.5, 1), // a masked mean is no defence
		Limit:      true,
		Note: fmt.Sprintf("plain and masked averaging (soft mask, τ = %g), without noise; "+
			"published .57 and .55; ours differ by %+.4f [%+.4f, %+.4f]: a difference is %s",
			aggregation.DefaultThreshold,
			difference.Value, difference.Lower, difference.Upper, supported),
	}
}

// modelAccuracies returns the share of right guesses about each model in turn: a row is
// taken for a member if its score is above 0.
func modelAccuracies(scores []Scored) []float64 {
	var right, all []float64
	first := scores[0].Model // the regression leaves out those it was trained on
	for _, s := range scores {
		first = min(first, s.Model)
	}
	for _, s := range scores {
		for s.Model-first >= len(all) {
			right, all = append(right, 0), append(all, 0)
		}
		all[s.Model-first]++
		if (s.Score > 0) == s.Member {
			right[s.Model-first]++
		}
	}
	for i := range right {
		right[i] /= all[i]
	}
	return right
}

// rocCurve returns the true-positive rate over the false-positive rate, from 0.1 % on
// in steps of a tenth of a power of ten.
func rocCurve(label string, scores []Scored) (attacks.Series, error) {
	curve := attacks.Series{Label: label, Kind: attacks.Line}
	for tenths := -30; tenths <= 0; tenths++ {
		rate := math.Pow(10, float64(tenths)/10)
		judged, err := Judge(scores, rate)
		if err != nil {
			return curve, err
		}
		if judged.TruePositives > 0 {
			curve.X = append(curve.X, rate)
			curve.Y = append(curve.Y, judged.TPR)
		}
	}
	return curve, nil
}
