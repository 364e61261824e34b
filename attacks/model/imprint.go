package model

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/privacy"
)

var imprint = attacks.Attack{
	Name:      "Imprint",
	Adversary: "cheating server",
	About: "put a layer of equal rows with quantile biases in front of the model, " +
		"and read rows off a secure sum",
	Defence: "clipping and noise; a pinned architecture; documented limit",
	Run:     runImprint,
}

// imprintLayer is a layer that a cheating server puts in front of a model, to read rows
// off a sum of gradients (Fowl 2022, "Robbing the Fed"): every unit has the same weights h
// and its own bias −q_k, the k-th quantile of h·x. After a ReLU a row passes the units up
// to its quantile.
type imprintLayer struct {
	weights   []float64
	quantiles []float64 // ascending
}

// newImprintLayer returns a layer of units for rows whose product with weights is about
// standard normal.
func newImprintLayer(weights []float64, units int) imprintLayer {
	layer := imprintLayer{weights: weights}
	for k := range units {
		quantile := distuv.UnitNormal.Quantile((float64(k) + 0.5) / float64(units))
		layer.quantiles = append(layer.quantiles, quantile)
	}
	return layer
}

// gradient returns the gradient, by the units' weights and biases, of the sum of the
// layer's outputs: for a unit that a row passes, the row and 1. A unit has one place
// per feature and one for the bias, unit after unit.
func (l imprintLayer) gradient(row []float64) []float64 {
	product := 0.0
	for i, weight := range l.weights {
		product += weight * row[i]
	}
	gradient := make([]float64, 0, len(l.quantiles)*(len(row)+1))
	for _, quantile := range l.quantiles {
		if product > quantile {
			gradient = append(append(gradient, row...), 1)
		} else {
			gradient = append(gradient, make([]float64, len(row)+1)...)
		}
	}
	return gradient
}

// recoverRows returns, for each pair of neighbouring units and for the last one, what a
// row alone between their quantiles would be: the difference of their weights over
// that of their biases. Bins without anything in them are left out. It fails with
// errInversion.
func (l imprintLayer) recoverRows(gradient []float64) ([][]float64, error) {
	width := len(l.weights) + 1
	if len(gradient) != width*len(l.quantiles) || len(l.quantiles) == 0 {
		return nil, errInversion
	}
	var rows [][]float64
	for k := range l.quantiles {
		bin := slices.Clone(gradient[k*width : (k+1)*width])
		if k+1 < len(l.quantiles) {
			for i, v := range gradient[(k+1)*width : (k+2)*width] {
				bin[i] -= v
			}
		}
		if row, _, err := invertRow(bin, width-1); err == nil {
			rows = append(rows, row[:width-1])
		}
	}
	return rows, nil
}

// countRecovered counts the rows that one of the candidates is equal to, up to far in
// every coordinate.
func countRecovered(rows, candidates [][]float64, far float64) (count int) {
	for _, row := range rows {
		if slices.ContainsFunc(candidates, func(candidate []float64) bool {
			for i, v := range row {
				if !(math.Abs(candidate[i]-v) <= far) {
					return false
				}
			}
			return true
		}) {
			count++
		}
	}
	return count
}

// Each party has one row of normal features, on which the gradient of the layer is taken.
const (
	imprintParties  = 32
	imprintFeatures = 24
	imprintUnits    = 64
)

// imprintTarget sums gradients of an imprinted layer, as they are and as a private
// release.
type imprintTarget struct {
	layer   imprintLayer
	fixed   aggregation.FixedPoint
	bits    int // of a sum without noise
	release *privacy.Mechanism
}

func newImprintTarget() (*imprintTarget, error) {
	weights := make([]float64, imprintFeatures)
	for i := range weights {
		weights[i] = 1 / math.Sqrt(imprintFeatures)
	}
	t := &imprintTarget{
		layer: newImprintLayer(weights, imprintUnits),
		fixed: aggregation.FixedPoint{Range: 8, FractionBits: 30},
	}
	var err error
	if t.bits, err = t.fixed.Bits(imprintParties); err != nil {
		return nil, err
	}
	t.release, err = newRelease(imprintParties, 0, imprintUnits*(imprintFeatures+1), 24)
	return t, err
}

// trial draws a row for each party and returns the shares of them that are recovered from
// a sum without noise and from a private one.
func (t *imprintTarget) trial(r *rand.Rand) (open, private float64, err error) {
	rows := make([][]float64, imprintParties)
	gradients := make([][]float64, imprintParties)
	for party := range rows {
		row := make([]float64, imprintFeatures)
		for i := range row {
			row[i] = r.NormFloat64()
		}
		rows[party], gradients[party] = row, t.layer.gradient(row)
	}
	sum, err := t.plainSum(gradients)
	if err != nil {
		return 0, 0, err
	}
	noisySum, err := t.privateSum(gradients, r)
	if err != nil {
		return 0, 0, err
	}
	if open, err = t.recovered(rows, sum, 1e-6); err != nil {
		return 0, 0, err
	}
	private, err = t.recovered(rows, noisySum, 0.1)
	return open, private, err
}

// recovered returns the share of rows that can be read off a sum, up to far in every
// coordinate.
func (t *imprintTarget) recovered(rows [][]float64, sum []float64, far float64) (float64, error) {
	candidates, err := t.layer.recoverRows(sum)
	return float64(countRecovered(rows, candidates, far)) / imprintParties, err
}

// plainSum is the sum that a server gets once masks have cancelled.
func (t *imprintTarget) plainSum(gradients [][]float64) ([]float64, error) {
	var sum []uint64
	for _, gradient := range gradients {
		values, err := t.fixed.Encode(gradient, t.bits)
		if err != nil {
			return nil, err
		}
		sum = addRing(sum, values, t.bits)
	}
	return t.fixed.Decode(sum, t.bits)
}

// privateSum is the same of updates that are clipped and have noise.
func (t *imprintTarget) privateSum(gradients [][]float64, r *rand.Rand) ([]float64, error) {
	var rotation [32]byte
	draw.Bytes(rotation[:], r)
	var sum []uint64
	for _, gradient := range gradients {
		values, err := t.release.Encode(rotation, gradient, nil, nil)
		if err != nil {
			return nil, err
		}
		sum = addRing(sum, values[0], t.release.Encoder.Bits)
	}
	decoded, _, err := t.release.Decode(rotation, [][]uint64{sum}, 1)
	return decoded, err
}

// addRing adds values to a sum in the ring of a given width in bits; nil is a sum of zeros.
func addRing(sum, values []uint64, bits int) []uint64 {
	if sum == nil {
		return slices.Clone(values)
	}
	for i, v := range values {
		sum[i] = (sum[i] + v) & (1<<bits - 1)
	}
	return sum
}

func runImprint(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	trials := 40
	if o.Long {
		trials *= 10
	}
	target, err := newImprintTarget()
	if err != nil {
		return nil, err
	}
	open, private := make([]float64, trials), make([]float64, trials)
	err = o.Parallel(ctx, partImprint, trials, func(i int, r *rand.Rand) error {
		var err error
		open[i], private[i], err = target.trial(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	// A row is recovered if it is alone in its bin. There are units−1 bins of equal
	// probability, the last one with half of that and the first quantile with half
	// below it, where no unit sees a row.
	alone := func(p float64) float64 { return p * math.Pow(1-p, imprintParties-1) }
	want := (imprintUnits-1)*alone(1.0/imprintUnits) + alone(0.5/imprintUnits)
	mean, standardError := attacks.MeanAndError(open)
	noisyMean, _ := attacks.MeanAndError(private)
	rows := trials * imprintParties
	return &attacks.Report{Rows: []attacks.Row{{
		Metric:     "rows recovered from a secure sum",
		Undefended: attacks.Near(mean, standardError, rows, want),
		Defended:   attacks.Exactly(noisyMean, rows, 0),
		Limit:      true,
		Note: "a secure sum alone does not stop it: " +
			"pin the architecture, clip and add noise",
	}}}, nil
}
