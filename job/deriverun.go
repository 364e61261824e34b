package job

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/privacy/spending"
)

// DeriveRun derives what a run spends that is not of a job: sums that nobody runs, with noise and
// norms that are declared. It fails with accounting.ErrUnsupported for runs under replace-one
// adjacency and for continuous Laplace noise, and with errors of the accountant.
func DeriveRun(run spending.Run, delta float64) (*Derivation, error) {
	if run.ReplaceOne || run.Mechanism == "laplace" {
		return nil, fault.New(accounting.ErrUnsupported, "ask for the epsilon alone",
			"no derivation is written under replace-one adjacency or for continuous Laplace noise")
	}
	spent, err := run.Epsilon(delta)
	if err != nil {
		return nil, err
	}
	x := &deriving{charges: run.Charges(), scan: spent.Bare().Upper <= 200}
	x.Version = 1
	x.add("sum", "assumed", values{"shares": run.Shares}, values{"honest": run.Shares},
		"nobody checks that sums have %s of noise", count(run.Shares, "share", "shares"))
	if run.Mechanism == "gaussian" {
		z := run.Noise()
		x.mu = 1 / z * (1 + 0x1p-50)
		x.add("law", "gaussian", values{"lane": "vector", "multiplier": z}, values{"mu": x.mu},
			"continuous noise of %v times the norm: μ = %.6g a round", z, x.mu)
	} else {
		x.round = run.Round()
		s := x.round.Update.Sensitivity
		square, l1 := squareOf(s.L2, s.Dimension)
		given := values{"lane": "vector", "l2": s.L2, "dimension": s.Dimension}
		if run.Mechanism == "discrete-laplace" {
			given = values{"lane": "vector", "l1": s.L1, "dimension": s.Dimension}
		}
		x.add("bound", "declared", given, values{"l2_squared": square, "l1": l1,
			"dimension": s.Dimension}, "%s: Δ₂² = %v", count(s.Dimension, "coordinate", "coordinates"),
			square)
		x.law("vector", x.round.Update)
	}
	x.drawn(&run)
	x.often(&run)
	x.claim(spent)
	return &x.Derivation, nil
}

// drawn says with which probability a unit is in a round, if that counts.
func (x *deriving) drawn(run *spending.Run) {
	theorem := "public"
	switch {
	case run.Rate == 1, run.Unit == accounting.PartyUnit && run.View == accounting.ServerView:
		return
	case run.Unit == accounting.RecordUnit:
		theorem = "theorem-6"
	}
	x.rate = run.Rate
	x.add("coin", theorem, values{"rate": run.Rate},
		values{"advantage": run.Rate * math.Erf(x.mu/math.Sqrt(8)) * (1 + 0x1p-40)},
		"a %v is in a round with probability %v", run.Unit, run.Rate)
}

func (x *deriving) often(run *spending.Run) {
	switch {
	case run.Factorise > 0:
		x.composed("theorem-7", values{"rounds": run.Rounds, "band": run.Factorise},
			values{"charges": x.charges}, fmt.Sprintf("%s of %d rounds in %d",
				count(x.charges, "band", "bands"), run.Factorise, run.Rounds))
	case run.Of > 0:
		x.composed("seldom", values{"rounds": run.Of, "submissions": x.charges}, values{},
			fmt.Sprintf("%s of %d", count(x.charges, "round", "rounds"), run.Of))
	default:
		x.composed("equal", values{"submissions": x.charges}, values{},
			count(x.charges, "round", "rounds"))
	}
}

// composed says how often, and of Gaussians what all are together.
func (x *deriving) composed(theorem string, given, gives values, words string) {
	if x.rate == 0 && !math.IsInf(x.mu, 1) {
		total := x.mu * math.Sqrt(float64(x.charges)) * (1 + 0x1p-50)
		gives["mu"] = total
		words += fmt.Sprintf(": μ = %.6f", total)
	}
	x.add("rounds", theorem, given, gives, "%s", words)
}
