package oneshot

import (
	"testing"
)

// small is a committee of four, of whom one may be faulty.
func small(t Terms) Terms {
	t.Length, t.Bits, t.MinSurvivors, t.Faults = 5, 8, 3, 1
	if t.KEM == 0 {
		t.KEM = KEMX25519
	}
	return t
}

// TestRound: a round with everybody there, exact and with noise, with each kind of key.
func TestRound(t *testing.T) {
	for _, c := range []struct {
		name string
		t    Terms
	}{
		{"exact", small(Terms{})},
		{"noise", small(Terms{Noise: gaussian(10, 3)})},
		{"long", Terms{Length: 5000, Bits: 16, MinSurvivors: 3, Faults: 1, KEM: KEMX25519, Noise: gaussian(100, 3)}},
		{"hybrid", Terms{Length: 5, Bits: 8, MinSurvivors: 3, Faults: 1}},
		{"packed", Terms{Length: 5, Bits: 8, MinSurvivors: 3, Faults: 1, KEM: KEMX25519, PerPolynomial: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(5, 7, c.t)
			if err := w.begin(nil); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				if err := w.server.Receive(must(w.submit(i))); err != nil {
					t.Fatal(err)
				}
				if i%2 == 1 {
					if err := w.deliver(nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.deliver(nil); err != nil {
				t.Fatal(err)
			}
			sum, err := w.finish(nil)
			if err != nil {
				t.Fatal(err)
			}
			w.near(t, sum, w.total(0, 1, 2, 3, 4))
		})
	}
}
