package learning

import "fmt"

// Dataset is a table of feature rows with one class label each.
//
// X is row-major and dense: row i is X[i*Features : (i+1)*Features], so that
// blas64.General and mat.NewDense wrap it without a copy. A constant column for
// the intercept, if there is one, is an ordinary feature; ReadAdult and Census
// put it last. Labels count from 0.
type Dataset struct {
	X        []float64
	Features int
	Labels   []int
}

// Len is the number of rows.
func (d *Dataset) Len() int { return len(d.Labels) }

// Row returns row i as a slice of X, not a copy. Like an index expression it
// panics when i is outside [0, Len()).
func (d *Dataset) Row(i int) []float64 {
	lo, hi := i*d.Features, (i+1)*d.Features
	return d.X[lo:hi:hi]
}

// Subset copies the rows named by idx, in that order, into a new Dataset.
// Repeated indices repeat the row. An index outside [0, Len()) gives ErrShape.
func (d *Dataset) Subset(idx []int) (*Dataset, error) {
	if err := d.checkShape(); err != nil {
		return nil, err
	}
	for _, i := range idx {
		if i < 0 || i >= d.Len() {
			return nil, fmt.Errorf("%w: row %d of a data set with %d rows", ErrShape, i, d.Len())
		}
	}
	return d.gather(idx), nil
}

// gather is Subset for indices that are known to be valid.
func (d *Dataset) gather(idx []int) *Dataset {
	s := &Dataset{
		X:        make([]float64, 0, len(idx)*d.Features),
		Features: d.Features,
		Labels:   make([]int, 0, len(idx)),
	}
	for _, i := range idx {
		s.X = append(s.X, d.Row(i)...)
		s.Labels = append(s.Labels, d.Labels[i])
	}
	return s
}

// Positives is the number of rows whose label is not 0.
func (d *Dataset) Positives() int {
	n := 0
	for _, y := range d.Labels {
		if y != 0 {
			n++
		}
	}
	return n
}

func (d *Dataset) checkShape() error {
	if d == nil {
		return fmt.Errorf("%w: the data set is nil", ErrShape)
	}
	if d.Features < 1 {
		return fmt.Errorf("%w: the data set has %d features, want at least 1", ErrShape, d.Features)
	}
	// Divide rather than multiply: a product of hostile sizes could wrap.
	if len(d.X)%d.Features != 0 || len(d.X)/d.Features != len(d.Labels) {
		return fmt.Errorf("%w: %d values in rows of %d do not make %d labelled rows",
			ErrShape, len(d.X), d.Features, len(d.Labels))
	}
	return nil
}

// check is checkShape plus what a model with the given number of classes needs:
// at least one row, finite features, known labels.
func (d *Dataset) check(features, classes int) error {
	if err := d.checkShape(); err != nil {
		return err
	}
	if d.Features != features {
		return fmt.Errorf("%w: the data set has %d features, the model %d", ErrShape, d.Features, features)
	}
	if d.Len() == 0 {
		return fmt.Errorf("%w: the data set is empty", ErrTooFewRows)
	}
	if !allFinite(d.X) {
		for i := range d.Len() {
			if !allFinite(d.Row(i)) {
				return fmt.Errorf("%w: row %d has a feature that is NaN or infinite", ErrValue, i)
			}
		}
	}
	for i, y := range d.Labels {
		if y < 0 || y >= classes {
			return fmt.Errorf("%w: the label of row %d is outside 0..%d", ErrValue, i, classes-1)
		}
	}
	return nil
}
