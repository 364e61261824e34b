package collusion

import (
	"math"

	"github.com/hushsum/hushsum/attacks"
)

// finding holds what colluders estimate in one case, in units of λ.
type finding struct {
	name      string
	figure    pooling   // in whose figure of violins it is; 0: in all of them
	inputs    []float64 // of the honest party
	estimates []float64
	left      cumulants // that the errors of the estimates must have
	defended  bool      // on a target with the defence
	note      string
}

// rows measures what the case leaves of the noise.
func (f finding) rows() []attacks.Row {
	n := len(f.inputs)
	missed := make([]float64, n)
	for i, input := range f.inputs {
		missed[i] = f.estimates[i] - input
	}
	// The mean of squares has the fourth moment less the squared second as variance.
	fourth := f.left.fourth + 2*f.left.second*f.left.second
	variance := attacks.Near(
		attacks.MeanSquare(missed), math.Sqrt(fourth/float64(n)), n, f.left.second)
	want := determination(f.left.second)
	determined := squaredCorrelation(attacks.Correlation(f.inputs, f.estimates),
		want, want*determinationError(f.left, n), n)
	return []attacks.Row{
		f.row("variance left, λ²", variance, f.note),
		f.row("r²", determined, ""),
	}
}

// row has the measurement on the side of the target that it is of.
func (f finding) row(metric string, m attacks.Measure, note string) attacks.Row {
	row := attacks.Row{Case: f.name, Metric: metric, Note: note}
	if f.defended {
		row.Defended = m
	} else {
		row.Undefended = m
	}
	return row
}

// squaredCorrelation returns r² as a measurement that must be near want, with the
// given standard error of r². The range is set on Fisher's transform of r, in which
// estimates that have nothing to do with the inputs are as far out on the low side as
// too good ones on the high side. An r below 0 counts as none.
func squaredCorrelation(r, want, standardError float64, n int) attacks.Measure {
	r = max(r, 0)
	rho := math.Sqrt(want)
	low, high := squaredRange(rho, 1-want, standardError/(2*rho))
	return attacks.Between(r*r, standardError, n, low, high)
}

// squaredRange returns the range of r² within attacks.Sigmas standard errors of a
// correlation rho that leaves a share of the variance unexplained, 1 − ρ², on Fisher's
// transform.
func squaredRange(rho, unexplained, standardError float64) (low, high float64) {
	z, margin := math.Atanh(rho), attacks.Sigmas*standardError/unexplained
	return math.Pow(max(0, math.Tanh(z-margin)), 2), math.Pow(math.Tanh(z+margin), 2)
}
