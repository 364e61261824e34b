package learning

import (
	"slices"

	"github.com/hushsum/hushsum/internal/fault"
)

// Dataset is a table of feature rows with one class label each.
//
// The table is row-major and dense, and either X or Pixels holds it; the other
// one is nil. Row i of X is X[i*Features : (i+1)*Features], so that
// blas64.General and mat.NewDense wrap it without a copy. Pixels has the same
// layout in one byte per feature and stands for the value byte/255: 60,000 MNIST
// images take 47 MB this way instead of 376 MB, and models turn them into
// numbers one batch at a time.
//
// A constant column for the intercept, if there is one, is an ordinary feature;
// ReadAdult and Census put it last. Labels count from 0. Writers, when it is not
// nil, names for every row the person that it comes from.
type Dataset struct {
	X        []float64
	Pixels   []byte
	Features int
	Labels   []int
	Writers  []int
}

// Len returns the number of rows.
func (d *Dataset) Len() int { return len(d.Labels) }

// Row returns row i. It is a slice of X, not a copy; for a data set of Pixels it
// is a new slice of values in [0, 1]. Like an index expression it panics when i
// is outside [0, Len()).
func (d *Dataset) Row(i int) []float64 {
	if d.Pixels != nil {
		row := make([]float64, d.Features)
		d.values(row, i)
		return row
	}
	lo, hi := i*d.Features, (i+1)*d.Features
	return d.X[lo:hi:hi]
}

// values writes row i into dst.
func (d *Dataset) values(dst []float64, i int) {
	lo, hi := i*d.Features, (i+1)*d.Features
	if d.Pixels == nil {
		copy(dst, d.X[lo:hi])
		return
	}
	for j, p := range d.Pixels[lo:hi] {
		dst[j] = pixelValue[p]
	}
}

// pixelValue is byte/255.
var pixelValue = func() (t [256]float64) {
	for i := range t {
		t[i] = float64(i) / 255
	}
	return t
}()

// Subset copies the rows named by idx, in that order, into a new Dataset.
// Repeated indices repeat the row. An index outside [0, Len()) gives ErrShape.
func (d *Dataset) Subset(idx []int) (*Dataset, error) {
	if err := d.checkShape(); err != nil {
		return nil, err
	}
	for _, i := range idx {
		if i < 0 || i >= d.Len() {
			return nil, fault.New(ErrShape, "", "row %d of a data set with %d rows", i, d.Len())
		}
	}
	return d.gather(idx), nil
}

// gather is Subset for indices that are known to be valid.
func (d *Dataset) gather(idx []int) *Dataset {
	s := &Dataset{}
	d.gatherInto(s, idx)
	return s
}

// gatherInto is gather into the slices of s, which grow when they are too small.
func (d *Dataset) gatherInto(s *Dataset, idx []int) {
	s.Features = d.Features
	s.Labels = pick(s.Labels, d.Labels, 1, idx)
	s.X = pick(s.X, d.X, d.Features, idx)
	s.Pixels = pick(s.Pixels, d.Pixels, d.Features, idx)
	s.Writers = pick(s.Writers, d.Writers, 1, idx)
}

// pick writes rows of the given width into dst; nil stays nil.
func pick[T any](dst, src []T, width int, idx []int) []T {
	if src == nil {
		return nil
	}
	dst = slices.Grow(dst[:0], len(idx)*width)
	for _, i := range idx {
		dst = append(dst, src[i*width:(i+1)*width]...)
	}
	return dst
}

// view is rows lo to hi-1 without a copy.
func (d *Dataset) view(lo, hi int) *Dataset {
	v := &Dataset{Features: d.Features, Labels: d.Labels[lo:hi]}
	if d.Pixels != nil {
		v.Pixels = d.Pixels[lo*d.Features : hi*d.Features]
	} else {
		v.X = d.X[lo*d.Features : hi*d.Features]
	}
	return v
}

func (d *Dataset) checkShape() error {
	if d == nil {
		return fault.New(ErrShape, "", "the data set is nil")
	}
	if d.Features < 1 {
		return fault.New(ErrShape, "", "the data set has %d features, want at least 1", d.Features)
	}
	values := len(d.X)
	if d.Pixels != nil {
		if d.X != nil {
			return fault.New(ErrShape, "", "the data set has both X and Pixels, want one of them")
		}
		values = len(d.Pixels)
	}
	// Divide rather than multiply: a product of hostile sizes could wrap.
	if values%d.Features != 0 || values/d.Features != len(d.Labels) {
		return fault.New(ErrShape, "",
			"%d values in rows of %d do not make %d labelled rows",
			values, d.Features, len(d.Labels))
	}
	if d.Writers != nil && len(d.Writers) != len(d.Labels) {
		return fault.New(ErrShape, "", "%d writers for %d rows", len(d.Writers), len(d.Labels))
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
		return fault.New(ErrShape, "", "the data set has %d features, the model %d", d.Features, features)
	}
	if d.Len() == 0 {
		return fault.New(ErrTooFewRows, "", "the data set is empty")
	}
	if !allFinite(d.X) {
		for i := range d.Len() {
			if !allFinite(d.Row(i)) {
				return fault.New(ErrValue, "", "row %d has a feature that is NaN or infinite", i)
			}
		}
	}
	for i, y := range d.Labels {
		if y < 0 || y >= classes {
			return fault.New(ErrValue, "", "the label of row %d is outside 0..%d", i, classes-1)
		}
	}
	return nil
}
