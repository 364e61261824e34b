package model

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// ErrInversion: the update is none that the attack can invert.
var ErrInversion = errors.New("attacks: an update that cannot be inverted")

// InvertRow recovers the row, and its label, that a model whose first layer is linear
// was trained on, from the change of one unit's weights: of a logistic regression
// w ← w − rate·(p − y)·x, all of it.
//
// Each step adds a multiple of x to the weights and the same multiple to the bias,
// which is the weight of the constant 1 at the place given; so the quotient is x
// after any number of steps without regularisation. The multiples are −rate·(p − y),
// of the sign of y − p: a bias that grew says label 1.
func InvertRow(update []float64, bias int) (row []float64, label int, err error) {
	if bias < 0 || bias >= len(update) || update[bias] == 0 || math.IsNaN(update[bias]) || math.IsInf(update[bias], 0) {
		return nil, 0, ErrInversion
	}
	row = make([]float64, len(update))
	for i, v := range update {
		row[i] = v / update[bias]
	}
	if update[bias] > 0 {
		label = 1
	}
	return row, label, nil
}

// Imprint is a layer that a cheating server puts in front of a model, to read rows
// off a sum of gradients (Fowl 2022, "Robbing the Fed"): every unit has the same
// weights h and its own bias −q_k, the k-th quantile of h·x. After a ReLU a row
// passes the units up to its quantile.
type Imprint struct {
	Weights   []float64
	Quantiles []float64 // ascending
}

// NewImprint returns a layer of units for rows whose product with weights is about
// standard normal.
func NewImprint(weights []float64, units int) Imprint {
	p := Imprint{Weights: weights}
	for k := range units {
		p.Quantiles = append(p.Quantiles, distuv.UnitNormal.Quantile((float64(k)+.5)/float64(units)))
	}
	return p
}

// Gradient returns the gradient, by the units' weights and biases, of the sum of the
// layer's outputs: for a unit that a row passes, the row and 1. A unit has one place
// per feature and one for the bias, unit after unit.
func (p Imprint) Gradient(row []float64) []float64 {
	product := 0.0
	for i, h := range p.Weights {
		product += h * row[i]
	}
	gradient := make([]float64, 0, len(p.Quantiles)*(len(row)+1))
	for _, q := range p.Quantiles {
		if product > q {
			gradient = append(append(gradient, row...), 1)
		} else {
			gradient = append(gradient, make([]float64, len(row)+1)...)
		}
	}
	return gradient
}

// Recover returns, for each pair of neighbouring units and for the last one, what a
// row alone between their quantiles would be: the difference of their weights over
// that of their biases. Bins without anything in them are left out.
func (p Imprint) Recover(gradient []float64) ([][]float64, error) {
	width := len(p.Weights) + 1
	if len(gradient) != width*len(p.Quantiles) || len(p.Quantiles) == 0 {
		return nil, ErrInversion
	}
	var rows [][]float64
	for k := range p.Quantiles {
		bin := slices.Clone(gradient[k*width : (k+1)*width])
		if k+1 < len(p.Quantiles) {
			for i, v := range gradient[(k+1)*width : (k+2)*width] {
				bin[i] -= v
			}
		}
		if row, _, err := InvertRow(bin, width-1); err == nil {
			rows = append(rows, row[:width-1])
		}
	}
	return rows, nil
}

// recovered counts the rows that one of the candidates is equal to, up to far in
// every coordinate.
func recovered(rows, candidates [][]float64, far float64) (n int) {
	for _, row := range rows {
		if slices.ContainsFunc(candidates, func(c []float64) bool {
			for i, v := range row {
				if !(math.Abs(c[i]-v) <= far) {
					return false
				}
			}
			return true
		}) {
			n++
		}
	}
	return n
}
