package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"
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

// In a crowd, as in sessions, the model travels once a round: over a slow link it costs its
// bytes once.
func TestCrowdModelTravelsOnce(t *testing.T) {
	rows := census(t)
	took := func(kind string, bandwidth float64) time.Duration {
		s := small()
		s.Rounds, s.Sum.Kind = 2, kind
		s.Links[0] = Link{Between: []string{"here", "server"}, Latency: ms(50)[0], Bandwidth: bandwidth}
		return simulate(t, s, rows).Rounds[1].Took // the end of set-up is on its way in the first
	}
	crowd, sessions := took(Crowd, 1e4)-took(Crowd, 0), took(Private, 1e4)-took(Private, 0)
	if ratio := float64(crowd) / float64(sessions); ratio < .9 || ratio > 1.1 {
		t.Errorf("at 10 kB/s a crowd takes %v longer, sessions %v", crowd, sessions)
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

// A crowd on the complete graph takes the thresholds of the protocol's own sessions.
func TestCrowdThresholds(t *testing.T) {
	for _, adversary := range []string{"curious", "semi-malicious", "cheating"} {
		for n := 3; n <= 9; n++ {
			for colluders := range n - 1 {
				for gone := 0; gone < n; gone++ {
					s := small()
					s.Parties = []Party{{Name: "p", Place: "here", Count: n}}
					s.Privacy.Colluders = colluders
					s.Recovery = &Recovery{Adversary: adversary, DropOut: max(1e-9, float64(gone)/float64(n))}
					s.Sum.Kind = Private
					want := s.Validate()
					s.Sum.Kind = Crowd
					if got := s.Validate(); (got == nil) != (want == nil) {
						t.Errorf("%s, %d of %d collude, %d gone: a crowd %v, sessions %v", adversary,
							colluders, n, gone, got, want)
					}
				}
			}
		}
	}
}
