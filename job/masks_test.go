package job

import (
	"crypto/ed25519"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
)

// A job says where the masks hold off less than ML-KEM-768 does: from moduli of 37 bits on.
func TestMasksSaid(t *testing.T) {
	roster := func(kind string, n int) *keyexchange.Roster {
		var list []keyexchange.Entry
		for i := range n {
			seed := fmt.Appendf(nil, "%-32s", fmt.Sprint(kind, i))
			key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
			list = append(list, keyexchange.Entry{Name: fmt.Sprint(kind, i), Key: key})
		}
		r, err := keyexchange.NewRoster(list)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	law, err := noise.DiscreteGaussian(big.NewRat(8*41, 1))
	if err != nil {
		t.Fatal(err)
	}
	for bits, want := range map[int]string{
		28: "", 32: "", 33: "37 bits, are weaker against a quantum computer: 2^162",
		40: "44 bits, are weaker",
	} {
		said := sayMasks(&oneshot.Config{Roster: roster("p", 10), Committee: roster("m", 4),
			Terms: oneshot.Terms{Length: 10_000, Bits: bits, MinSurvivors: 8, Faults: 1, Noise: law}})
		if text := strings.Join(said, ""); !strings.Contains(text, want) || (want == "") != (text == "") {
			t.Errorf("%d bits: %q", bits, said)
		}
	}
}
