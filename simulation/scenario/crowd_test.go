package scenario

import (
	"errors"
	"strings"
	"testing"
)

// A crowd drops out as far as its recovery allows, and no further: the noise in its sums
// is calibrated to those who must be there.
func TestCrowdDropsOut(t *testing.T) {
	s := small()
	s.Sum.Kind = Crowd
	s.Parties = []Party{{Name: "p", Place: "here", Count: 20}}
	s.Recovery = &Recovery{Adversary: "curious", DropOut: .25}
	s.Sum.Drop = .25
	for _, r := range simulate(t, s, census(t)).Rounds {
		if r.Included != 15 {
			t.Errorf("round %d is of %d", r.Number, r.Included)
		}
	}
	for _, test := range []struct {
		drop     float64
		recovery *Recovery
		advice   string
	}{
		{.3, s.Recovery, "raise recovery.drop_out"},
		{.25, nil, "add [recovery]"},
	} {
		s.Sum.Drop, s.Recovery = test.drop, test.recovery
		var e *FieldError
		if err := s.Validate(); !errors.As(err, &e) || e.Path != "sum.drop" ||
			!strings.Contains(e.Advice, test.advice) {
			t.Errorf("%v with %v: got %v", test.drop, test.recovery, err)
		}
	}
}

// A crowd on a graph that would not hide so many colluders says so.
func TestCrowdDegree(t *testing.T) {
	s := small()
	s.Rounds = 1
	s.Sum.Kind = Crowd
	s.Parties = []Party{{Name: "p", Place: "here", Count: 200}}
	s.Data.Draw, s.Data.Rows = DrawAnew, 10
	s.Recovery = &Recovery{Adversary: "curious", DropOut: .05}
	s.Privacy.Colluders = 10
	for degree, want := range map[int]bool{4: true, 60: false} {
		s.Sum.Degree = degree
		notes := strings.Join(simulate(t, s, census(t)).Notes, "\n")
		if strings.Contains(notes, "too few") != want {
			t.Errorf("%d neighbours: %q", degree, notes)
		}
	}
}
