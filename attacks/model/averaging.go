package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/simulation"
)

// membershipStudy is what models are trained on: a pool of rows that belong to
// parties for good, of which each model gets a random half, so that a row more or
// less changes the update of one party and nothing else.
type membershipStudy struct {
	name       string
	pool, test *learning.Dataset
	model      learning.Model
	parties    int
	training   simulation.Training // without data and seed
}

// newMembershipStudy takes the optical digits, or without the data the synthetic
// census. The training fits half the pool far better than other rows.
func newMembershipStudy(o attacks.Options) (*membershipStudy, error) {
	pool := 300
	s := &membershipStudy{name: "digits", parties: 10}
	local := learning.SGD{Rate: .5, Steps: 10}
	var data *learning.Dataset
	var err error
	if o.Data == "" {
		// Two classes and few features take fewer rows and more steps to fit too well.
		pool, local = 200, learning.SGD{Rate: 8, Steps: 60}
		s.name, s.parties = "the synthetic census", 5
		data, _, err = learning.Census(3*pool, o.Seed)
	} else {
		data, err = learning.ReadDigits(filepath.Join(o.Data, "digits"))
	}
	if err != nil {
		return nil, err
	}
	order := o.Rand(75).Perm(data.Len())
	if s.pool, err = data.Subset(order[:pool]); err != nil {
		return nil, err
	}
	if s.test, err = data.Subset(order[pool:]); err != nil {
		return nil, err
	}
	classes := 2
	for _, y := range data.Labels {
		classes = max(classes, y+1)
	}
	s.model = learning.Softmax{Features: data.Features, Outputs: classes}
	s.training = simulation.Training{
		Model: s.model, Test: s.test, Rounds: 10, EvaluateEvery: 10,
		Local: local,
	}
	return s, nil
}

// federated is a target of the study: models of one kind of averaging.
type federated struct {
	*Shadows
	accuracy float64 // on test rows, a mean
	epsilon  float64 // ε(server) of the accountant at simulation.DefaultDelta, 0 without noise
}

// train trains models by simulation.Train. The same part gives the same rows and
// seeds to every target.
func (s *membershipStudy) train(ctx context.Context, o attacks.Options, part uint64, models int, masked bool, n *simulation.Noise) (*federated, error) {
	t := s.training
	if masked {
		t.Mask = aggregation.GradientMask{Kind: aggregation.SoftMask, Threshold: aggregation.DefaultThreshold}
	}
	if n != nil {
		t.Noise, t.Sum = n, simulation.Ring
	}
	f := &federated{}
	accuracies, spent := make(chan float64, models), make(chan float64, models)
	var err error
	f.Shadows, err = trainShadows(ctx, o, part, models, s.pool.Len(), func(member []bool, r *rand.Rand) ([]float64, error) {
		own := t
		own.Seed = r.Uint64()
		rows := make([][]int, s.parties)
		for i, in := range member {
			if in {
				rows[i%s.parties] = append(rows[i%s.parties], i)
			}
		}
		for _, mine := range rows {
			party, err := s.pool.Subset(mine)
			if err != nil {
				return nil, err
			}
			own.Parties = append(own.Parties, party)
		}
		trained, err := simulation.Train(ctx, own, nil)
		if err != nil {
			return nil, err
		}
		accuracies <- trained.Final().Accuracy()
		spent <- trained.Rounds[len(trained.Rounds)-1].Server.Upper
		return s.logits(trained.Model)
	})
	if err != nil {
		return nil, err
	}
	for range models {
		f.accuracy += <-accuracies / float64(models)
		f.epsilon = max(f.epsilon, <-spent)
	}
	return f, nil
}

// logits returns how sure the model is of each row's label: z_y − ln Σ e^z over the
// other classes.
func (s *membershipStudy) logits(w []float64) ([]float64, error) {
	classes := s.model.Classes()
	scores := make([]float64, s.pool.Len()*classes)
	if err := s.model.Scores(scores, w, s.pool); err != nil {
		return nil, err
	}
	logits := make([]float64, s.pool.Len())
	for i, y := range s.pool.Labels {
		row := scores[i*classes : (i+1)*classes]
		top, sum := math.Inf(-1), 0.0
		for k, z := range row {
			if k != y {
				top = max(top, z)
			}
		}
		for k, z := range row {
			if k != y {
				sum += math.Exp(z - top)
			}
		}
		logits[i] = row[y] - top - math.Log(sum)
	}
	return logits, nil
}

// rowBound is what a client-level (ε, δ) under zero-out adjacency allows for a row in
// or out of a client that takes part either way. Both are neighbours of the client
// that submits zero: TPR ≤ e^ε·(e^ε·FPR + δ) + δ.
func rowBound(epsilon, delta float64) (rowEpsilon, rowDelta float64) {
	return 2 * epsilon, (1 + math.Exp(epsilon)) * delta
}

// modelAccuracies is the share of right guesses about each model in turn: a row is
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

// roc returns a curve of the true-positive rate against the false-positive rate, from
// 0.1 % on, both as powers of ten.
func roc(label string, scores []Scored) (attacks.Series, error) {
	s := attacks.Series{Label: label, Kind: attacks.Line}
	for i := -30; i <= 0; i++ {
		e := float64(i) / 10
		m, err := Judge(scores, math.Pow(10, e))
		if err != nil {
			return s, err
		}
		if m.TruePositives > 0 {
			s.X, s.Y = append(s.X, e), append(s.Y, math.Log10(m.TPR))
		}
	}
	return s, nil
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
	clientNoise := &simulation.Noise{Law: noise.FamilyDiscreteGaussian, Multiplier: 128, Clip: 2, Bits: 22}
	kinds := []string{"plain", "masked"}
	var open, private [2]*federated
	for i := range kinds {
		o.Advance(i, len(kinds))
		if open[i], err = study.train(ctx, o, 72, models, i == 1, nil); err != nil {
			return nil, err
		}
		if private[i], err = study.train(ctx, o, 73, models, i == 1, clientNoise); err != nil {
			return nil, err
		}
	}
	report := &attacks.Report{}
	for _, attack := range []membershipAttack{
		// At a rate of 0.1 % regression is blind (Carlini 2022).
		{"regression on logits", (*Shadows).Regress, 0.51, 0},
		{"LiRA", (*Shadows).LiRA, 0.55, 1.5 * membershipFPR},
	} {
		curves := attacks.Figure{
			Name:  "membership-" + strings.ToLower(strings.ReplaceAll(attack.name, " ", "-")),
			Title: fmt.Sprintf("Membership by %s, models on %s", attack.name, study.name), X: "log₁₀ FPR", Y: "log₁₀ TPR",
		}
		var accuracies [2][]float64
		for i, kind := range kinds {
			scores, err := attack.score(open[i].Shadows)
			if err != nil {
				return nil, err
			}
			noisy, err := attack.score(private[i].Shadows)
			if err != nil {
				return nil, err
			}
			for _, c := range []struct {
				label  string
				scores []Scored
			}{{kind, scores}, {kind + ", noise", noisy}} {
				curve, err := roc(c.label, c.scores)
				if err != nil {
					return nil, err
				}
				curves.Series = append(curves.Series, curve)
			}
			rows, err := attack.rows(kind, scores, noisy, private[i].epsilon)
			if err != nil {
				return nil, err
			}
			rows[0].Note = fmt.Sprintf("softmax on %s, %d parties, test accuracy %.2f, with noise %.2f; %s",
				study.name, study.parties, open[i].accuracy, private[i].accuracy, rows[0].Note)
			report.Rows = append(report.Rows, rows...)
			accuracies[i] = modelAccuracies(scores)
		}
		row := averagingRow(attack.name, accuracies[0], accuracies[1], study.pool.Len())
		row.Note += fmt.Sprintf("; test accuracy %.2f and %.2f", open[0].accuracy, open[1].accuracy)
		report.Rows = append(report.Rows, row)
		report.Figures = append(report.Figures, curves)
	}
	return report, nil
}

// membershipFPR is the false-positive rate at which true positives are counted.
const membershipFPR = 1e-3

// membershipAttack is a way to score rows, with the least AUC, and true-positive rate
// at membershipFPR, that make it one without noise; 0: the rate is not judged.
type membershipAttack struct {
	name     string
	score    func(*Shadows) ([]Scored, error)
	auc, tpr float64
}

// rows judges scores on models without noise, and with client-level noise of the
// given ε(server) at simulation.DefaultDelta.
func (a membershipAttack) rows(kind string, open, noisy []Scored, serverEpsilon float64) ([]attacks.Row, error) {
	u, err := Judge(open, membershipFPR)
	if err != nil {
		return nil, err
	}
	d, err := Judge(noisy, membershipFPR)
	if err != nil {
		return nil, err
	}
	epsilon, delta := rowBound(serverEpsilon, simulation.DefaultDelta)
	auc := PrivateAUC(epsilon, delta)
	allowed := math.Exp(epsilon)*max(membershipFPR, d.FPR) + delta
	// Errors are doubled for scores of one model and one row depending on each other.
	rows := []attacks.Row{{
		Case: a.name + ", " + kind, Metric: "AUC",
		Undefended: attacks.Between(u.AUC, 2*u.AUCError, u.Members+u.Others, a.auc, 1),
		Defended:   attacks.Between(d.AUC, 2*d.AUCError, d.Members+d.Others, 0, auc+attacks.Sigmas*2*d.AUCError),
		Note: fmt.Sprintf("ε(server) = %.3f of a client at δ = %g allows a row an AUC of %.3f",
			serverEpsilon, simulation.DefaultDelta, auc),
	}, {
		Case: a.name + ", " + kind, Metric: "TPR at 0.1 % FPR",
		Defended: attacks.Proportion(d.TruePositives, d.Members, 0, allowed+2*attacks.Sigmas*math.Sqrt(allowed/float64(d.Members))),
		Note:     fmt.Sprintf("defended: at most e^2ε·FPR + (1+e^ε)·δ = %.4f for a row, up to its interval", allowed),
	}}
	if a.tpr > 0 {
		rows[1].Undefended = attacks.Proportion(u.TruePositives, u.Members, a.tpr, 1)
	}
	return rows, nil
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
	p, pError := attacks.MeanAndError(plain)
	m, mError := attacks.MeanAndError(masked)
	d, dError := attacks.MeanAndError(differences)
	supported := "not supported"
	difference := attacks.Between(d, dError, n, -1, 1)
	if difference.Lower > 0 || difference.Upper < 0 {
		supported = "supported"
	}
	return attacks.Row{
		Case: attack, Metric: "attack accuracy",
		Undefended: attacks.Between(p, pError, n, 0.505, 1),
		Defended:   attacks.Between(m, mError, n, 0.5, 1), // a masked mean is no defence
		Limit:      true,
		Note: fmt.Sprintf("plain and masked averaging (soft mask, τ = %g), without noise; published .57 and .55; ours differ by %+.4f [%+.4f, %+.4f]: a difference is %s",
			aggregation.DefaultThreshold, d, difference.Lower, difference.Upper, supported),
	}
}
