package job_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

// sampled settles a job of 500 parties of which this many are in a round.
func sampled(t *testing.T, parties, adversary string) (*job.Settled, error) {
	t.Helper()
	j, err := job.Parse("job.toml", fmt.Appendf(nil, `name = "sampled"
rounds = 100
model.length = 20
parties = { count = 500, %s }
sum.adversary = %q
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0, bits = 48 }
`, parties, adversary))
	if err != nil {
		return nil, err
	}
	return j.Settle(job.Files{Roster: job.RosterOf(t, 500)})
}

// With 10 of 500 parties in a round, the numbers of sums are those of ten: the fewest honest are
// ten less all colluders, whom the server may have drawn, and those that may be missing. Two
// submissions at epsilon 8 take a multiplier of 0.849 and ten one of 1.898, as in rounds of all.
func TestSampledSums(t *testing.T) {
	for _, c := range []struct {
		parties, adversary string
		survivors, members int
		multiplier         float64
	}{
		{"per_round = 10, participations = 2, drop_out = 0.2", "cheating", 8, 10, 0.849},
		{"per_round = 10, participations = 2, drop_out = 0.2, colluders = 3", "cheating", 8, 10, 0.849},
		{"per_round = 10, participations = 10, drop_out = 0.1", "semi-malicious", 8, 10, 1.898},
		{"per_round = 10, participations = 2, drop_out = 0.5, colluders = 3", "curious", 5, 5, 0.849},
		{"per_round = 400, participations = 80, drop_out = 0.2", "cheating", 320, 320, 0},
		{"per_round = 100, participations = 20, drop_out = 0.3", "cheating", 68, 100, 2.684},
	} {
		s, err := sampled(t, c.parties, c.adversary)
		if err != nil {
			t.Errorf("%s: %v", c.parties, err)
			continue
		}
		config, round := s.Config(1), s.Round()
		if s.MinSurvivors() != c.survivors || config.MinMembers != c.members {
			t.Errorf("%s: %d survivors, sessions of %d", c.parties, s.MinSurvivors(), config.MinMembers)
		}
		if honest := c.survivors - s.Colluders(); round.Shares != honest {
			t.Errorf("%s: noise of %d honest parties, want %d", c.parties, round.Shares, honest)
		}
		// What a round of any size must have is never less than what the noise counts on.
		for size := config.MinMembers; size <= 500; size += 1 + (size-config.MinMembers)/3 {
			of := *config
			of.MinMembers = size
			if own, err := of.EffectiveRecovery(); err != nil || own.MinSurvivors < c.survivors {
				t.Errorf("%s: %+v of %d parties: %v", c.parties, own, size, err)
			}
		}
		if l2 := s.Mechanism().Vector.Sensitivity.L2; c.multiplier > 0 {
			z := s.Mechanism().Vector.SumStdDev(round.Shares) / l2
			if math.Abs(z/c.multiplier-1) > 0.01 {
				t.Errorf("%s: multiplier %.4f, want %v", c.parties, z, c.multiplier)
			}
		}
		spent, err := round.Spent(accounting.ServerView, s.Submissions(), 1e-5)
		if err != nil || spent.Bare().Upper > 8 || spent.Bare().Upper < 7.9 {
			t.Errorf("%s: %+v, %v", c.parties, spent, err)
		}
		text := strings.Join(s.Explain(), "\n")
		for _, want := range []string{"of the parties of a round may be missing",
			fmt.Sprintf("of at least %d of the 500 parties", c.survivors)} {
			if !strings.Contains(text, want) {
				t.Errorf("nothing says %q: %s", want, text)
			}
		}
	}
}

// A sample that colluders and drop-outs leave too few of is refused, whoever draws it.
func TestSampledRefused(t *testing.T) {
	for _, c := range []struct{ parties, adversary, path string }{
		{"per_round = 10, drop_out = 0.2, colluders = 9", "cheating", "parties.colluders"},
		{"per_round = 10, drop_out = 0.2, colluders = 6", "cheating", "parties.per_round"},
		{"per_round = 10, drop_out = 0.3", "cheating", "parties.drop_out"},
		{"per_round = 10", "cheating", "parties.per_round"}, // nothing recovers
		{"per_round = 10, drop_out = 0.5, colluders = 6", "curious", "parties.per_round"},
		{"per_round = 10, participations = 1, drop_out = 0.2", "cheating", "parties.participations"},
	} {
		_, err := sampled(t, c.parties, c.adversary)
		found := false
		for _, e := range job.Errors(err) {
			found = found || e.Path == c.path && e.Advice != ""
		}
		var p *privacy.ConfigError
		if !found && !errors.As(err, &p) {
			t.Errorf("%s: %v, want %s", c.parties, err, c.path)
		}
	}
}
