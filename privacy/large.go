package privacy

import (
	"fmt"
	"io"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/masking"
)

// EncodeTo is [Mechanism.Encode] for vectors too large for a second copy: it writes the
// submission to v, which has the layout of m, and draws the noise as it goes. It refuses a
// mechanism with signs next to the vectors with aggregation.ErrLength. v is zero after an error.
func EncodeTo[F aggregation.Float](
	v *masking.Vector, m *Mechanism, rotation [32]byte, vector []F, random io.Reader,
) error {
	if err := m.single(); err != nil {
		v.Erase()
		return err
	}
	if m.Signs != nil {
		v.Erase()
		return fmt.Errorf("%w: signs next to the vectors are not encoded in place",
			aggregation.ErrLength)
	}
	return aggregation.EncodeTo(v, 0, m.rotated(rotation), vector,
		m.Vector.table.NewSampler(random), random)
}

// DecodeTo is [Mechanism.Decode] without a second copy, for the vectors only: it writes the mean,
// of Dimension coordinates, to mean, which is zero after an error.
func DecodeTo[F aggregation.Float](
	mean []F, m *Mechanism, rotation [32]byte, sum *masking.Vector, parties int,
) error {
	return aggregation.DecodeTo(mean, m.rotated(rotation), sum, 0, parties)
}
