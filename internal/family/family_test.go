package family

import (
	"errors"
	"testing"
)

// Every family has a name of its own that leads back to it, and nothing else has one.
func TestText(t *testing.T) {
	seen := map[string]bool{}
	for f := DiscreteLaplace; f <= PolyaDifference; f++ {
		text, err := f.MarshalText()
		var back Family
		if err != nil || string(text) != f.String() || seen[string(text)] ||
			back.UnmarshalText(text) != nil || back != f {
			t.Errorf("%v: %q leads to %v, %v", f, text, back, err)
		}
		seen[string(text)] = true
	}
	for _, f := range []Family{0, PolyaDifference + 1, 255} {
		if text, err := f.MarshalText(); !errors.Is(err, ErrUnknown) || text != nil {
			t.Errorf("%v: %q, %v", f, text, err)
		}
	}
	for _, text := range []string{"", "none", "Skellam", "family(7)"} {
		f := Skellam
		if err := f.UnmarshalText([]byte(text)); !errors.Is(err, ErrUnknown) || f != Skellam {
			t.Errorf("%q: %v, %v", text, f, err)
		}
	}
}
