package rounds

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/model"
)

// This file guesses coins.

const (
	coinNoise  = 1.13 // 200 rounds of it spend an epsilon of 8, by coins of coinRate
	coinRate   = 0.1
	coinRounds = 10_000
)

// fromSum is the most that a sum tells of a coin, as an AUC: that of two normal laws which are one
// norm apart, of a deviation of coinNoise times that.
var fromSum = distuv.UnitNormal.CDF(1 / (coinNoise * math.Sqrt2))

func runCoins(r *runner) error {
	coins, err := coined{rate: coinRate, multiplier: coinNoise}.play(r, 0, coinRounds)
	if err != nil {
		return err
	}
	j, err := fromMessages(coins)
	if err != nil {
		return err
	}
	n1, n0 := float64(j.Members), float64(j.Others)
	deviation := math.Sqrt((n1 + n0 + 1) / (12 * n1 * n0)) // where nothing is told; less with ties
	defended := attacks.Near(j.AUC, deviation, j.Members+j.Others, 0.5)
	for i, c := range []struct {
		name      string
		coined    coined
		rounds    uint64
		low, high float64
		note      string
	}{
		{"messages, no instant", coined{open: true}, 400, 0.99, 1, ""},
		{"messages, away without luck", coined{asleep: 0.5}, 400, 0.65, 0.85,
			"Half of those without luck are away, which gives 3/4."},
		{"messages, late with luck", coined{late: true}, 1600, 0.55, 0.7,
			"Training overruns the instant in a fourth of rounds with luck, which gives 5/8."},
	} {
		c.coined.rate, c.coined.multiplier = 0.5, coinNoise
		coins, err := c.coined.play(r, uint64(1+i), c.rounds)
		if err != nil {
			return err
		}
		j, err := fromMessages(coins)
		if err != nil {
			return err
		}
		r.rows = append(r.rows, attacks.Row{
			Case: c.name, Metric: "AUC of guesses of a party's coin", Note: c.note, Defended: defended,
			Undefended: attacks.Between(j.AUC, j.AUCError, j.Members+j.Others, c.low, c.high),
		})
	}
	return r.sums(coins)
}

// sums has coins guessed from sums, of which noise says how well that goes, and from two sums that
// the coordinator calls tries of one round.
func (r *runner) sums(coins []coin) error {
	loud, err := coined{rate: 0.5, multiplier: coinNoise / 100}.play(r, 4, 400)
	if err != nil {
		return err
	}
	tries := coined{rate: 0.5, multiplier: coinNoise, sure: true}
	tossed, err := tries.play(r, 6, 4000)
	if err != nil {
		return err
	}
	tries.kept = true
	kept, err := tries.play(r, 5, 4000)
	if err != nil {
		return err
	}
	const metric = "AUC of guesses whether its vector is in a sum"
	var all []model.Judgement
	for _, of := range [][]coin{loud, coins, pairs(kept), pairs(tossed)} {
		j, err := judged(of, added, func(c coin) float64 { return c.score })
		if err != nil {
			return err
		}
		all = append(all, j)
	}
	measure := func(j model.Judgement, want float64) attacks.Measure {
		return attacks.Near(j.AUC, j.AUCError, j.Members+j.Others, want)
	}
	// Both tries have the same noise, and with one coin the same shift. With two coins the first is
	// as likely to be 1 as 0 in either of two pairs that are compared.
	both, one := distuv.UnitNormal.CDF(1/coinNoise), distuv.UnitNormal.CDF(1/(2*coinNoise))
	again := (0.5 + 2*one + both) / 4
	r.rows = append(r.rows,
		attacks.Row{Case: "the sum", Metric: metric, Limit: true,
			Undefended: measure(all[0], 1).Within(0.99, 1), Defended: measure(all[1], fromSum),
			Note: "Undefended: with a hundredth of the noise. Defended: what ε is paid for, " +
				"at most Φ(1/√2z)."},
		attacks.Row{Case: "a lost round, tried again", Metric: metric,
			Undefended: measure(all[2], both), Defended: measure(all[3], again),
			Note: "Undefended: the coin of the first try is kept."})
	return nil
}

// pairs adds the score of each first round to that of the second.
func pairs(coins []coin) (out []coin) {
	for i := 1; i < len(coins); i += 2 {
		c := coins[i]
		c.score += coins[i-1].score
		out = append(out, c)
	}
	return out
}

// fromMessages finds, on the first half of the rounds, the statistic of messages that predicts
// coins best, and tests it on the other half. Where messages tell nothing, the result is further
// than attacks.Sigmas deviations from a half with a probability of 2e-9.
func fromMessages(coins []coin) (model.Judgement, error) {
	half := len(coins) / 2
	best, most, sign := 0, -1.0, 1.0
	for k := range coins[0].shown {
		j, err := judged(coins[:half], luck, func(c coin) float64 { return c.shown[k] })
		if err != nil {
			return j, err
		}
		if tells := math.Abs(j.AUC - 0.5); tells > most {
			best, most, sign = k, tells, math.Copysign(1, j.AUC-0.5)
		}
	}
	return judged(coins[half:], luck, func(c coin) float64 { return sign * c.shown[best] })
}

func luck(c coin) bool  { return c.luck }
func added(c coin) bool { return c.added }

// judged judges guesses by scores.
func judged(
	coins []coin, truth func(c coin) bool, score func(c coin) float64,
) (model.Judgement, error) {
	scores := make([]model.Scored, len(coins))
	for i, c := range coins {
		scores[i] = model.Scored{Score: score(c), Member: truth(c)}
	}
	return model.Judge(scores, 0)
}
