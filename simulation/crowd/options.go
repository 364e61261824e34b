package crowd

import (
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/masking"
)

// ErrConfig: the options are out of range; the text says which and what to use.
var ErrConfig = errors.New("crowd: unusable options")

// maxParties is the most parties of a crowd.
const maxParties = 1 << 20

// Options says who is in a crowd, and what they sum.
type Options struct {
	// Parties is how many there are, 2 to 2^20.
	Parties int
	// Degree is how many neighbours each party shares masks with on a sparse graph, 2 to
	// Parties − 1, even or with an even number of parties; 0: everybody with everybody.
	Degree int
	// Length and Bits are the submission's: Length coordinates in a ring of Bits bits.
	Length, Bits int
	// Classical leaves ML-KEM out, as protocol.Config does.
	Classical bool
	// SelfMasks has every party add a mask of its own and sign who is in the sum, as in
	// rounds that survive drop-outs. Without, nobody may drop out.
	SelfMasks bool
	// Seed is the graph's.
	Seed [32]byte
	// Workers is how many work at once; 0: one for each core.
	Workers int
	// Progress, if not nil, is told how many of the parties are done with a round (0:
	// set-up). It is called from several goroutines.
	Progress func(round, done, of int)
}

func (o *Options) layout() masking.Layout {
	return masking.Layout{{Length: o.Length, Bits: o.Bits}}
}

// check returns ErrConfig for the first that is out of range.
func (o *Options) check() error {
	switch {
	case o.Parties < 2 || o.Parties > maxParties:
		return fmt.Errorf("%w: %d parties, use 2 to %d", ErrConfig, o.Parties, maxParties)
	case o.Degree < 0 || o.Degree == 1 || o.Degree >= o.Parties:
		return fmt.Errorf("%w: %d neighbours, use 2 to %d, or 0 for all", ErrConfig, o.Degree,
			o.Parties-1)
	case o.Degree%2 == 1 && o.Parties%2 == 1:
		return fmt.Errorf("%w: %d neighbours of %d parties, use an even number", ErrConfig, o.Degree,
			o.Parties)
	case o.Workers < 0:
		return fmt.Errorf("%w: %d workers, use 0 or more", ErrConfig, o.Workers)
	}
	if err := o.layout().Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// Counts says what a crowd has done, next to what parties in places of their own would do
// for the same.
type Counts struct {
	Pairs int // that share a chain

	Agreements, AgreementsApart         int // X25519
	Encapsulations, EncapsulationsApart int // ML-KEM, with the decapsulations
	Chains, ChainsApart                 int // made
	Steps, StepsApart                   int // of chains
	Masks, MasksApart                   int // expanded
	Signatures                          int
	Checks, ChecksApart                 int // of signatures
}
