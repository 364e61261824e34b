package job_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

// sparseJob settles a job on a sparse graph of n parties.
func sparseJob(t *testing.T, n int, parties, sum, noise string) (*job.Settled, error) {
	t.Helper()
	j, err := job.Parse("job.toml", fmt.Appendf(nil, "name = \"sparse\"\nrounds = 6\n"+
		"model.length = 10\nparties = { count = %d, %s }\nsum = { sparse = true, %s }\n%s", n, parties,
		sum, noise))
	if err != nil {
		return nil, err
	}
	return j.Settle(job.Files{Roster: job.RosterOf(t, n)})
}

// On a sparse graph a server that cheats after keys are exchanged may take a sum of a party and its
// neighbours, of which t − c + 1 are honest (SPEC.md §13.7): noise of all that remain would be
// counted on 890 shares here, and with 30 of them an epsilon of 4 is 33.
func TestSparse(t *testing.T) {
	for _, c := range []struct {
		adversary, noise string
		honest           int // 0: refused
		says             string
	}{
		{"semi-malicious", "", 30, ", and a server that cheats once keys are exchanged may learn sums " +
			"of as few as 30 honest parties; the round"},
		{"semi-malicious", noisy, 0, ""},
		{"curious", noisy, 890, "at least 900 of the 1000 parties of the roster, but for a probability " +
			"of 2^-42 a round; the round"},
	} {
		s, err := sparseJob(t, 1000, "drop_out = 0.1, colluders = 10",
			"adversary = \""+c.adversary+"\"", c.noise)
		wrong := job.Errors(err)
		switch {
		case c.honest == 0 && (len(wrong) == 0 || wrong[0].Path != "sum.sparse"):
			t.Errorf("%+v: %v", c, err)
		case c.honest > 0 && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.honest > 0 && s.Honest() != c.honest:
			t.Errorf("%+v: %d honest parties", c, s.Honest())
		case c.honest > 0 && !strings.Contains(strings.Join(s.Explain(), "\n"), c.says):
			t.Errorf("%s explains %q, want %q", c.adversary, s.Explain(), c.says)
		}
	}
}

// The degree of a job keeps the survivors of every size together, not of the smallest alone: of 60
// parties of whom 24 are missing 16 neighbours leave them in parts once in 90,000 rounds.
func TestSparseDegree(t *testing.T) {
	const curious = "adversary = \"curious\""
	for _, c := range []struct {
		n                          int
		parties, sum               string
		degree, threshold, corrupt int
	}{
		{60, "drop_out = 0.4, colluders = 1", curious, 26, 2, 1},
		{100, "drop_out = 0.2, colluders = 1", curious, 18, 2, 1},
		{100, "drop_out = 0.2, colluders = 1", curious + ", degree = 24", 24, 2, 1},
		// More neighbours have more colluders among them: they take a threshold of their own.
		{1000, "drop_out = 0.1, colluders = 30", curious, 36, 16, 15},
		{1000, "drop_out = 0.1, colluders = 30", curious + ", degree = 200", 200, 28, 27},
	} {
		s, err := sparseJob(t, c.n, c.parties, c.sum, noisy)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		config := s.Config(1)
		r := config.Recovery
		if r.Degree != c.degree || r.Threshold != c.threshold || r.CorruptNeighbours != c.corrupt {
			t.Errorf("%+v: %+v", c, r)
		}
		// What may fail is in delta.
		promise, err := config.Promise()
		if p := s.Round().Failure; err != nil || p != promise.Failure || p > math.Exp2(-40) {
			t.Errorf("%+v: failure %v of %+v, %v", c, p, promise, err)
		}
	}
	for _, c := range []struct{ parties, sum, path, says string }{
		{"drop_out = 0.2, colluders = 1", curious + ", degree = 4", "sum.degree",
			"4 neighbours do not keep the survivors of sessions of 80 to 100 parties together but for " +
				"2^-40 a round; write 18 or more, or leave it out"},
		{"drop_out = 0.2, colluders = 1", "adversary = \"semi-malicious\", degree = 4", "sum.degree",
			"write 42 or more, or leave it out"},
		{"drop_out = 0.01, colluders = 1", curious + ", degree = 98", "sum.degree", "write 4 to 97"},
		{"drop_out = 0.02, colluders = 1", curious + ", degree = 13", "sum.degree", "even degree"},
		{"drop_out = 0.2, colluders = 60", curious, "sum.sparse", "too few parties"},
	} {
		_, err := sparseJob(t, 100, c.parties, c.sum, "")
		if wrong := job.Errors(err); len(wrong) == 0 || wrong[0].Path != c.path ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
