package fuzz

import (
	"math/rand/v2"
	"testing"
	"testing/cryptotest"

	"github.com/hushsum/hushsum/drive/jobtest"
)

// FuzzJob runs whole jobs of package drive, whose parties, faults and lies are chosen by the
// input. Package jobtest has what must hold after each step.
func FuzzJob(f *testing.F) {
	for i := range uint64(8) {
		input := make([]byte, 4000)
		rng := rand.New(rand.NewPCG(i, 5))
		for k := range input {
			input[k] = byte(rng.Uint32())
		}
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		cryptotest.SetGlobalRandom(t, 1)
		s := schedule(input) // once it has ended, nothing goes wrong any more
		jobtest.NewSwarm(t, 1, &s).Play()
	})
}
