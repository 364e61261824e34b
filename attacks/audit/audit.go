package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/protocol"
)

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{
		{
			Name:      "AuditMechanisms",
			Adversary: "tester",
			About:     "tell runs with a canary from runs without, for every mechanism of the accountant, and with too little noise",
			Defence:   "the printed ε is an upper bound",
			Run:       runMechanisms,
		},
		{
			Name:      "AuditPower",
			Adversary: "tester",
			About:     "catch noise that is half of what is claimed, many times over",
			Defence:   "the printed ε is an upper bound",
			Run:       runPower,
		},
		{
			Name:      "AuditOneRun",
			Adversary: "tester",
			About:     "guess which of many canaries were in a single run",
			Defence:   "the printed ε is an upper bound",
			Run:       runOneRun,
		},
		{
			Name:      "AuditRound",
			Adversary: "curious server, tester",
			About:     "tell from the sum of a whole private round whether the target submitted",
			Defence:   "the printed ε is an upper bound",
			Run:       runRound,
		},
	}
}

func runMechanisms(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	runs := 20000
	if o.Long {
		runs *= 25
	}
	report := &attacks.Report{}
	curve := attacks.Figure{Name: "audit-mechanisms", Title: "ε shown and ε claimed", X: "claimed", Y: "shown"}
	var sound, weak attacks.Series
	mechanisms := allMechanisms()
	for i, a := range mechanisms {
		o.Advance(i, len(mechanisms))
		upper, err := a.upper()
		if err != nil {
			return nil, err
		}
		row := attacks.Row{Case: a.name, Metric: fmt.Sprintf("ε shown, claim %.3f", upper), Note: "undefended: a quarter of the noise"}
		for _, quarter := range []bool{false, true} {
			audit, err := a.audit(quarter, runs, o.Rand(uint64(10+i)))
			if err != nil {
				return nil, err
			}
			if quarter {
				row.Undefended = Shown(audit, math.Inf(1))
				row.Undefended.Min = upper
				weak.X, weak.Y = append(weak.X, upper), append(weak.Y, audit.Lower)
			} else {
				row.Defended = Shown(audit, upper)
				sound.X, sound.Y = append(sound.X, upper), append(sound.Y, audit.Lower)
			}
		}
		report.Rows = append(report.Rows, row)
	}
	sound.Label, sound.Kind = "as claimed", attacks.Points
	weak.Label, weak.Kind = "a quarter of the noise", attacks.Points
	curve.Series = []attacks.Series{sound, weak}
	report.Figures = []attacks.Figure{curve}
	return report, nil
}

// runAuditPower repeats an audit of discrete Laplace noise that claims ε = 1 and has
// half the scale. The test is whether the output is at least Δ, fixed in advance, so
// that both its rates are known and the power can be computed.
func runPower(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	const (
		sensitivity = 16
		claim       = 1
		runs        = 600
	)
	audits := 500
	if o.Long {
		audits *= 20
	}
	report := &attacks.Report{}
	row := attacks.Row{
		Case: "noise halved", Metric: fmt.Sprintf("audits that refute ε = %d", claim),
		Note: fmt.Sprintf("%d runs with and without; undefended: the computed power", runs),
	}
	for _, halved := range []bool{true, false} {
		scale := int64(sensitivity / claim)
		if halved {
			scale /= 2
		}
		law, err := noise.DiscreteLaplace(big.NewRat(scale, 1))
		if err != nil {
			return nil, err
		}
		samples, err := draw.Samples(law, 2*runs*audits)
		if err != nil {
			return nil, err
		}
		refuted := 0
		for i := range audits {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			tp, fp := 0, 0
			for j := range runs {
				if samples[2*(i*runs+j)] >= 0 { // x + Δ ≥ Δ
					tp++
				}
				if samples[2*(i*runs+j)+1] >= sensitivity {
					fp++
				}
			}
			audit, err := ClopperPearson(tp, runs, fp, runs, 0, Alpha)
			if err != nil {
				return nil, err
			}
			if audit.Lower > claim {
				refuted++
			}
		}
		if !halved {
			row.Defended = attacks.Proportion(refuted, audits, 0, 0)
			continue
		}
		// P(X ≥ k) = p^k/(1+p) for discrete Laplace and k ≥ 0.
		p := math.Exp(-1 / float64(scale))
		power, err := powerOf(runs, 1/(1+p), math.Pow(p, sensitivity)/(1+p), claim, 0, Alpha)
		if err != nil {
			return nil, err
		}
		se := math.Sqrt(power * (1 - power) / float64(audits))
		row.Undefended = attacks.Proportion(refuted, audits, power-attacks.Sigmas*se-1/float64(audits), power+attacks.Sigmas*se+1/float64(audits))
		row.Note = fmt.Sprintf("%d runs with and without: computed power %.4f", runs, power)
	}
	report.Rows = []attacks.Row{row}
	return report, nil
}

// oneRun includes each of canaries by a fair coin, adds noise to each one's sum,
// guesses the coins of the guesses most extreme sums, half from each end, and counts
// the right ones. sensitivity is what a canary adds to its own sum, in whole units.
func oneRun(law noise.Law, sensitivity int64, canaries, guesses int, coins *rand.Rand) (right int, err error) {
	sums, err := draw.Samples(law, canaries)
	if err != nil {
		return 0, err
	}
	type canary struct {
		sum      int64
		included bool
	}
	all := make([]canary, canaries)
	for i := range all {
		all[i] = canary{sums[i], coins.Uint64()&1 == 1}
		if all[i].included {
			all[i].sum += sensitivity
		}
	}
	// Ties are in random order, as the coins are.
	slices.SortStableFunc(all, func(a, b canary) int { return cmp.Compare(a.sum, b.sum) })
	for i := range guesses / 2 {
		if !all[i].included {
			right++
		}
		if all[canaries-1-i].included {
			right++
		}
	}
	return right, nil
}

func runOneRun(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	const (
		sensitivity, claim = 16, 1.0
		canaries, guesses  = 10000, 2000
		confidence         = 1 - 1e-6
	)
	row := attacks.Row{
		Metric: fmt.Sprintf("ε shown, claim %g", claim),
		Note:   fmt.Sprintf("%d canaries, %d guesses, confidence 1 − 1e-6; undefended: half the noise", canaries, guesses),
	}
	for _, scale := range []int64{sensitivity, sensitivity / 2} {
		law, err := noise.DiscreteLaplace(big.NewRat(scale, 1))
		if err != nil {
			return nil, err
		}
		right, err := oneRun(law, sensitivity, canaries, guesses, o.Rand(uint64(30+scale)))
		if err != nil {
			return nil, err
		}
		lower, err := OneRun(canaries, guesses, right, 0, confidence)
		if err != nil {
			return nil, err
		}
		m := attacks.Measure{Value: lower, Lower: lower, Upper: lower, Confidence: confidence, Samples: canaries}
		if scale == sensitivity {
			m.Max = claim
			row.Defended = m
		} else {
			m.Min, m.Max = claim, 2*claim
			row.Undefended = m
		}
	}
	return &attacks.Report{Rows: []attacks.Row{row}}, nil
}

func runRound(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	times := 1
	if o.Long {
		times = 10
	}
	report := &attacks.Report{}
	for _, r := range []struct {
		name     string
		parties  int
		recovery *protocol.Recovery
		runs     int
	}{
		{"sum of 4 parties", 4, nil, 4000},
		{"5 of 6 survive, 1 colludes", 6, &protocol.Recovery{Adversary: protocol.CuriousServer, Colluders: 1, MinSurvivors: 5}, 400},
	} {
		row := attacks.Row{Case: r.name, Note: "clip, rotate, encode, noise shares, masks, recovery if any drop out, unmask, decode; undefended: a sixteenth of the noise"}
		for _, weakened := range []int64{1, 16} {
			round, err := newPrivateRound(r.parties, 4, 3, weakened, r.recovery)
			if err != nil {
				return nil, err
			}
			claim, err := round.claim(claimDelta)
			if err != nil {
				return nil, err
			}
			row.Metric = fmt.Sprintf("ε shown, claim %.3f at δ = %g", claim, claimDelta)
			audit, err := playRuns(ctx, r.runs*times, claimDelta, Alpha, round.run)
			if err != nil {
				return nil, err
			}
			if weakened == 1 {
				row.Defended = Shown(audit, claim)
			} else {
				row.Undefended = Shown(audit, math.Inf(1))
				row.Undefended.Min = claim
			}
		}
		report.Rows = append(report.Rows, row)
	}
	return report, nil
}
