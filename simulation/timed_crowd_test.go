package simulation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
)

// A crowd drops out as far as its recovery allows, and no further: the noise in its sums
// is calibrated to those who must be there.
func TestCrowdDropsOut(t *testing.T) {
	s := smallJob()
	s.World.Fidelity = Crowd
	set(s, who{Name: "p", Place: "here", Count: 20})
	recovers(s, 0.25, "curious")
	s.World.Drop = 0.25
	for _, r := range simulate(t, s, dataRows(t)).Rounds {
		if r.Parties != 15 {
			t.Errorf("round %d is of %d", r.Round, r.Parties)
		}
	}
	for path, test := range map[string][2]float64{"world.drop": {0.3, 0.25}, "": {0.25, 0.25}} {
		s.World.Drop, s.Parties.DropOut = test[0], test[1]
		err := Validate(s)
		var e *job.ConfigError
		if found := errors.As(err, &e); found != (path != "") || found && e.Path != path {
			t.Errorf("%v: %v", test, err)
		}
	}
}

// In a crowd, as in sessions, the model travels once a round: over a slow link it costs its
// bytes once.
func TestCrowdModelTravelsOnce(t *testing.T) {
	rows := dataRows(t)
	took := func(kind string, bandwidth float64) time.Duration {
		s := smallJob()
		s.Rounds, s.World.Fidelity = 2, kind
		s.World.Link[0] = job.Link{Between: []string{"here", "server"}, Latency: ms(50)[0],
			Bandwidth: bandwidth}
		return simulate(t, s, rows).Rounds[1].Took // the end of set-up is on its way in the first
	}
	crowd, sessions := took(Crowd, 1e4)-took(Crowd, 0), took(Messages, 1e4)-took(Messages, 0)
	if ratio := float64(crowd) / float64(sessions); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("at 10 kB/s a crowd takes %v longer, sessions %v", crowd, sessions)
	}
}

// Who drops out of a crowd is waited for, as somebody in a session who is there and silent.
func TestCrowdWaits(t *testing.T) {
	rows := dataRows(t)
	s := smallJob()
	s.Rounds, s.Time.StepTime = 1, 10*time.Second
	s.World.Link[0].Jitter = 0
	set(s, who{Name: "p", Place: "here", Count: 8},
		who{Name: "q", Place: "here", Count: 2, Compute: []time.Duration{time.Minute}})
	recovers(s, 0.2, "curious")
	silent := simulate(t, s, rows).Rounds[0]
	set(s, who{Name: "p", Place: "here", Count: 10})
	s.World.Fidelity, s.World.Drop = Crowd, 0.2
	result := simulate(t, s, rows)
	gone := result.Rounds[0]
	if d := gone.Took - silent.Took; gone.Parties != 8 || silent.Parties != 8 ||
		d.Abs() > 50*time.Millisecond {
		t.Errorf("a crowd took %v, sessions %v", gone.Took, silent.Took)
	}
	if up := result.SetUps[0].Took; up == 0 || gone.Began != up || result.Elapsed() != up+gone.Took {
		t.Errorf("keys took %v, the round began at %v", up, gone.Began)
	}
}

// A crowd, and sessions by message, take a degree only if it keeps the survivors together.
func TestDegree(t *testing.T) {
	for _, fidelity := range []string{Crowd, Messages} {
		for degree, want := range map[int]string{
			4:  "sum.degree: 4 neighbours do not keep the survivors of sessions of 38 to 40 parties",
			0:  "",
			10: "",
		} {
			s := smallJob()
			s.Rounds, s.World.Fidelity = 1, fidelity
			set(s, who{Name: "p", Place: "here", Count: 40})
			s.World.Data.Draw, s.World.Data.Rows = drawAnew, 10
			recovers(s, 0.05, "curious")
			s.Parties.Colluders, s.Sum.Sparse, s.Sum.Degree = 3, true, degree
			if err := Validate(s); (err == nil) != (want == "") ||
				err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %d neighbours: %v", fidelity, degree, err)
			}
		}
	}
}

// A crowd on the complete graph takes the thresholds of the protocol's own sessions.
func TestCrowdThresholds(t *testing.T) {
	for _, adversary := range []string{"curious", "semi-malicious", "cheating"} {
		for n := 3; n <= 9; n++ {
			for colluders := range n - 1 {
				for gone := 0; gone < n; gone++ {
					s := smallJob()
					set(s, who{Name: "p", Place: "here", Count: n})
					s.Parties.Colluders = colluders
					recovers(s, max(1e-9, float64(gone)/float64(n)), adversary)
					s.World.Fidelity = Messages
					want := Validate(s)
					s.World.Fidelity = Crowd
					if got := Validate(s); (got == nil) != (want == nil) {
						t.Errorf("%s, %d of %d collude, %d gone: a crowd %v, sessions %v", adversary,
							colluders, n, gone, got, want)
					}
				}
			}
		}
	}
}
