package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
)

var gradientInversion = attacks.Attack{
	Name:      "GradientInversion",
	Adversary: "curious server",
	About: "divide the change of a linear layer by that of its bias: " +
		"the row that it was trained on",
	Defence:  "masks; clipping and noise",
	DataSets: []string{"adult"},
	Run:      runGradientInversion,
}

// errInversion: the update is none that the attack can invert.
var errInversion = errors.New("model: an update that cannot be inverted")

// invertRow recovers the row, and its label, that a model whose first layer is linear
// was trained on, from the change of one unit's weights: of a logistic regression
// w ← w − rate·(p − y)·x, all of it. It fails with errInversion.
//
// Each step adds a multiple of x to the weights and the same multiple to the bias,
// which is the weight of the constant 1 at the place given; so the quotient is x
// after any number of steps without regularisation. The multiples are −rate·(p − y),
// of the sign of y − p: a bias that grew says label 1.
func invertRow(update []float64, bias int) (row []float64, label int, err error) {
	if bias < 0 || bias >= len(update) {
		return nil, 0, errInversion
	}
	divisor := update[bias]
	if divisor == 0 || math.IsNaN(divisor) || math.IsInf(divisor, 0) {
		return nil, 0, errInversion
	}
	row = make([]float64, len(update))
	for i, v := range update {
		row[i] = v / divisor
	}
	if divisor > 0 {
		label = 1
	}
	return row, label, nil
}

// Every row is trained on for localSteps, by a logistic regression.
const (
	localSteps = 5
	localRate  = 0.5
)

func runGradientInversion(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	rows, err := invertedRows(o)
	if err != nil {
		return nil, err
	}
	server, err := newUpdateObserver(rows.Features, rows.Len(), o.Rand(partInversionMasks))
	if err != nil {
		return nil, err
	}
	model := learning.Logistic{Features: rows.Features}
	exact, labels := 0, 0
	for i := range rows.Len() {
		row, err := rows.Subset([]int{i})
		if err != nil {
			return nil, err
		}
		update := make([]float64, rows.Features)
		if err := model.Train(update, row, localRate, localSteps); err != nil {
			return nil, err
		}
		guess, label, err := invertRow(update, rows.Features-1)
		if err != nil {
			return nil, err
		}
		exact += countRecovered([][]float64{row.Row(0)}, [][]float64{guess}, 1e-9)
		if label == rows.Labels[i] {
			labels++
		}
		if err := server.observe(update); err != nil {
			return nil, err
		}
	}
	share := func(count int) attacks.Measure {
		return attacks.Exactly(float64(count)/float64(rows.Len()), rows.Len(), 1)
	}
	return &attacks.Report{Rows: append([]attacks.Row{{
		Case:       "rows",
		Metric:     "recovered exactly",
		Undefended: share(exact),
		Note:       fmt.Sprintf("%d local steps on one row", localSteps),
	}, {
		Case:       "labels",
		Metric:     "recovered",
		Undefended: share(labels),
	}}, server.rows()...)}, nil
}

// invertedRows are rows of Adult, or without the data of the synthetic census.
func invertedRows(o attacks.Options) (*learning.Dataset, error) {
	const count = 500
	if o.Data == "" {
		rows, _, err := learning.Census(count, o.Seed)
		return rows, err
	}
	adult, err := learning.ReadAdult(filepath.Join(o.Data, "adult"))
	if err != nil {
		return nil, err
	}
	return adult.Subset(o.Rand(partInversionRows).Perm(adult.Len())[:count])
}

// updateObserver is a server that gets to see updates with and without defences. It keeps
// all coordinates of all of them, one after the other.
type updateObserver struct {
	masks   *rand.Rand
	fixed   aggregation.FixedPoint
	layout  masking.Layout
	release *privacy.Mechanism
	noise   []int64 // of a sum, for the coordinates to come

	updates  []float64
	unmasked []float64 // as they are decoded from a ring
	masked   []float64 // the same, under a mask
	clipped  []float64 // in whole steps of the encoder
	noisy    []float64 // the same, with noise
}

func newUpdateObserver(features, updates int, masks *rand.Rand) (*updateObserver, error) {
	const parties, colluders, bits = 10, 2, 20
	release, err := newRelease(parties, colluders, features, bits)
	if err != nil {
		return nil, err
	}
	noise, err := draw.Samples(release.Vector.Shares.Law, updates*features)
	if err != nil {
		return nil, err
	}
	return &updateObserver{
		masks:   masks,
		fixed:   aggregation.FixedPoint{Range: 16, FractionBits: 20},
		layout:  masking.Layout{{Length: features, Bits: 32}},
		release: release,
		noise:   noise,
	}, nil
}

// observe adds an update.
func (s *updateObserver) observe(update []float64) error {
	s.updates = append(s.updates, update...)

	bits := s.layout[0].Bits
	values, err := s.fixed.Encode(update, bits)
	if err != nil {
		return err
	}
	unmasked, err := s.fixed.Decode(values, bits)
	if err != nil {
		return err
	}
	s.unmasked = append(s.unmasked, unmasked...)

	vector, err := masking.FromValues(s.layout, values)
	if err != nil {
		return err
	}
	var seed masking.Seed
	draw.Bytes(seed[:], s.masks)
	vector.AddMask(&seed)
	masked, err := s.fixed.Decode(vector.Values()[0], bits)
	if err != nil {
		return err
	}
	s.masked = append(s.masked, masked...)

	// A sum of this update alone, with the noise that is always left in one.
	encoder := s.release.Encoder
	clipped, _, err := aggregation.Clip(update, encoder.Clip)
	if err != nil {
		return err
	}
	for k, v := range clipped {
		s.clipped = append(s.clipped, v*encoder.Scale)
		s.noisy = append(s.noisy, v*encoder.Scale+float64(s.noise[k]))
	}
	s.noise = s.noise[len(clipped):]
	return nil
}

// rows compares the updates with what was seen of them.
func (s *updateObserver) rows() []attacks.Row {
	n := len(s.updates)
	open := attacks.Correlated(attacks.Correlation(s.updates, s.unmasked), n).
		Within(1-1e-6, 1+1e-6) // but for rounding to 2^-20

	mean, _ := attacks.MeanAndError(s.clipped)
	signal := attacks.MeanSquare(s.clipped) - mean*mean
	want := math.Sqrt(signal / (signal + s.release.Vector.Shares.Law.Variance()))
	// The variance of a correlation is at most about 1/N, more for wide updates; 8/√N
	// leaves room for both.
	margin := 8 / math.Sqrt(float64(n))
	noisy := attacks.Correlated(attacks.Correlation(s.clipped, s.noisy), n).
		Within(want-margin, want+margin)

	const metric = "correlation of update and what is seen"
	return []attacks.Row{{
		Case:       "masked",
		Metric:     metric,
		Undefended: open,
		Defended:   attacks.Uncorrelated(attacks.Correlation(s.updates, s.masked), n),
	}, {
		Case:       "clip and noise",
		Metric:     metric,
		Undefended: open,
		Defended:   noisy,
		Note: fmt.Sprintf("noise of multiplier 1 in a sum of this update alone; theory %.3f",
			want),
	}}
}
