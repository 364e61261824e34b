package protocol

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// parties returns n identities from fixed seeds, and their roster.
func parties(t testing.TB, n int) ([]crypto.Signer, *keyexchange.Roster) {
	t.Helper()
	signers := make([]crypto.Signer, n)
	members := make([]keyexchange.Entry, n)
	for i := range n {
		seed := sha256.Sum256(fmt.Appendf(nil, "identity %d", i))
		key := ed25519.NewKeyFromSeed(seed[:])
		signers[i] = key
		members[i] = keyexchange.Entry{Name: fmt.Sprintf("party-%d", i),
			Key: key.Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return signers, roster
}

func testConfig(roster *keyexchange.Roster) *Config {
	return &Config{Label: "test", Roster: roster,
		Layout: masking.Layout{{Length: 5, Bits: 20}, {Length: 2, Bits: 64}, {Length: 1, Bits: 3}}}
}

func local(t testing.TB, n int) (*Local, *Config) {
	t.Helper()
	signers, roster := parties(t, n)
	config := testConfig(roster)
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l, config
}

// inputs draws an input for each of n parties, and their sum in the ring.
func inputs(seed uint64, layout masking.Layout, n int) (in [][][]uint64, sum [][]uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	sum = make([][]uint64, len(layout))
	for j, s := range layout {
		sum[j] = make([]uint64, s.Length)
	}
	for range n {
		values := make([][]uint64, len(layout))
		for j, s := range layout {
			low := ^uint64(0) >> (64 - s.Bits)
			for k := range s.Length {
				x := rng.Uint64() & low
				values[j] = append(values[j], x)
				sum[j][k] = (sum[j][k] + x) & low
			}
		}
		in = append(in, values)
	}
	return in, sum
}

func digestOf(config *Config) [32]byte {
	own, err := config.settle()
	if err != nil {
		panic(err)
	}
	return own.digest
}

// deliver gives the server a message from the party that it names.
func deliver(s *Server, message []byte) error {
	from := 0
	if len(message) >= wire.HeaderSize {
		from = int(int32(binary.BigEndian.Uint32(message[42:])))
	}
	return s.Receive(from, message)
}
