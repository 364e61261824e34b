package oneshot

import (
	"errors"
	"testing"

	"github.com/hushsum/hushsum/noise"
)

// A configuration promises the same before and after its noise is known, and none is refused later
// for how many there are.
func TestPromise(t *testing.T) {
	w := newWorld(10, 13, Terms{Length: 5, Bits: 8, MinSurvivors: 8, Colluders: 2, Faults: 3,
		Noise: gaussian(20, 6)})
	whole := *w.config
	want := Promise{Colluders: 2, Parties: 10, Honest: 6, Committee: whole.Committee.Digest(),
		Members: 13, Faults: 3, InLeague: 3}
	bare := whole
	bare.Length, bare.Bits, bare.Noise = 0, 0, noise.Law{}
	for _, c := range []*Config{&whole, &bare} {
		if got, err := c.Promise(); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	bare.CommitteeNoise, want.Dealt = true, true
	if got, err := bare.Promise(); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	taken := 0
	for least := range 12 {
		for colluders := -1; colluders < 10; colluders++ {
			for faults := range 6 {
				c := whole
				c.MinSurvivors, c.Colluders, c.Faults = least, colluders, faults
				c.Noise = gaussian(20, max(1, least-colluders))
				_, promised := c.Promise()
				_, err := c.Parameters()
				if (promised == nil) != (err == nil) || promised != nil && !errors.Is(promised, ErrConfig) {
					t.Errorf("%+v: %v, and %v", c.Terms, promised, err)
				}
				if err == nil {
					taken++
				}
			}
		}
	}
	if taken == 0 {
		t.Error("nothing was taken")
	}
	if _, err := (&Config{}).Promise(); !errors.Is(err, ErrConfig) {
		t.Errorf("nobody promises: %v", err)
	}
}
