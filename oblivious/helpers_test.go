package oblivious

import (
	"encoding/binary"
	"io"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// seeded is reproducible randomness for tests.
func seeded(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// pairSecrets are secrets of n parties, by both indices.
func pairSecrets(n int) [][]keyexchange.PairSecret {
	secrets := make([][]keyexchange.PairSecret, n)
	for i := range secrets {
		secrets[i] = make([]keyexchange.PairSecret, n)
		for j := range secrets[i] {
			binary.BigEndian.PutUint32(secrets[i][j][:], uint32(1+min(i, j)))
			binary.BigEndian.PutUint32(secrets[i][j][4:], uint32(1+max(i, j)))
		}
	}
	return secrets
}

// session makes all parties of a session.
func session(t testing.TB, config *Config, random io.Reader) []*Transfer {
	t.Helper()
	parties := make([]*Transfer, config.Parties)
	for i, secrets := range pairSecrets(config.Parties) {
		var err error
		if parties[i], err = NewTransfer(config, i, secrets, random); err != nil {
			t.Fatal(err)
		}
	}
	return parties
}

// add sums vectors in the ring.
func sum(vectors [][]uint64, bits int) []uint64 {
	total := make([]uint64, len(vectors[0]))
	for _, v := range vectors {
		for k, x := range v {
			total[k] = (total[k] + x) & mask(bits)
		}
	}
	return total
}

// signed reads a ring element as a number around zero.
func signed(x uint64, bits int) int64 { return int64(x<<(64-bits)) >> (64 - bits) }

func scale(x int64) Noise { return Noise{Scale: big.NewRat(x, 1)} }

// fixed is a filler that fills with the values of a function of the call's number.
type fixed struct {
	calls int
	value func(call int) int64
}

func (f *fixed) Fill(dst []int64) error {
	for k := range dst {
		dst[k] = f.value(f.calls)
	}
	f.calls++
	return nil
}
