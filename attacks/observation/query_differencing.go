package observation

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math"
	"strings"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/query"
)

var queryDifferencing = attacks.Attack{
	Name:      "QueryDifferencing",
	Adversary: "whoever asks",
	About:     "ask two counts whose conditions differ by one person, and subtract the answers",
	Defence:   "noise for all queries of a job together",
	Run:       runQueryDifferencing,
}

// differs is a job with two counts, of all that are ill and of those but for one postcode, in which
// one person lives.
const differs = `name = "differencing"
parties = { count = 4, rows = 3 }
column = [
  { name = "place", type = "category", categories = ["there", "elsewhere"] },
  { name = "ill", type = "category", categories = ["yes", "no"] },
]
query = [
  { name = "all", kind = "count", where = "ill = yes" },
  { name = "but-one", kind = "count", where = "ill = yes and place = elsewhere" },
]
`

// guarded holds the lines of a job that the defence adds, for each row.
const guarded = `privacy = { noise = "discrete-gaussian", epsilon = 1.0, unit = "record", records = 12 }
`

// survey is a job whose answers are read again and again.
type survey struct {
	settled *job.Settled
	plan    *query.Plan
	others  [][]float64  // vectors of the parties but the first
	first   [2][]float64 // that of the first, whose person is ill or not
	ill     float64      // how many of all others are
}

// newSurvey settles a job for made-up rows.
func newSurvey(text string) (*survey, error) {
	j, err := job.Parse("", []byte(text))
	if err != nil {
		return nil, err
	}
	var members []keyexchange.Entry
	for i := range j.Size() {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, err
		}
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party-", i+1),
			Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, err
	}
	s := &survey{ill: 5}
	if s.settled, err = j.Settle(job.Files{Roster: roster}); err != nil {
		return nil, err
	}
	if s.plan, err = query.New(s.settled); err != nil {
		return nil, err
	}
	vector := func(text string) []float64 {
		var rows *query.Rows
		if err == nil {
			rows, _, err = query.NewSchema(j).Read("", strings.NewReader("place,ill\n"+text), nil)
		}
		if err != nil {
			return nil
		}
		return s.plan.Vector(rows)
	}
	const elsewhere = "elsewhere,yes\nelsewhere,no\n"
	s.first[0] = vector(elsewhere + "there,no\n")
	s.first[1] = vector(elsewhere + "there,yes\n")
	for _, text := range []string{elsewhere, elsewhere, elsewhere + "elsewhere,yes\n"} {
		s.others = append(s.others, vector(text))
	}
	return s, err
}

// ask returns both counts as the job's sum has them: an answer of it is no less than 0.
func (s *survey) ask(ill int) (counts [2]float64, err error) {
	layout := s.settled.Layout()
	total := make([]uint64, layout[0].Length)
	for _, v := range append([][]float64{s.first[ill]}, s.others...) {
		values, err := s.settled.Encode(nil, v, nil)
		if err != nil {
			return counts, err
		}
		for i, x := range values[0] {
			total[i] = (total[i] + x) & (^uint64(0) >> (64 - layout[0].Bits))
		}
	}
	parties := 1 + len(s.others)
	mean, err := s.settled.Decode(nil, [][]uint64{total}, parties)
	if err != nil {
		return counts, err
	}
	over := float64(parties)
	if j := s.settled.Job(); j.PerRecord() {
		over = float64(j.Batch())
	}
	one := s.first[1][0] - s.first[0][0] // what a row adds
	return [2]float64{mean[0] * over / one, mean[1] * over / one}, nil
}

func runQueryDifferencing(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	trials := 4000
	if o.Long {
		trials *= 10
	}
	var right [2][2]float64 // of guesses by the difference, and by one count; exact and with noise
	deviation, epsilon := 0.0, 0.0
	for k, text := range []string{differs, differs + guarded} {
		s, err := newSurvey(text)
		if err != nil {
			return nil, err
		}
		r := o.Rand(partQueries + uint64(k))
		for range trials {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			ill := r.IntN(2)
			counts, err := s.ask(ill)
			if err != nil {
				return nil, err
			}
			for g, seen := range []float64{counts[0] - counts[1], counts[0] - s.ill} {
				if (seen > 0.5) == (ill == 1) {
					right[g][k]++
				}
			}
		}
		spent, err := s.plan.Spent()
		if err != nil {
			return nil, err
		}
		deviation, epsilon = s.plan.Expected()[0].Margin/1.959963984540054, spent.Upper
	}
	report := &attacks.Report{}
	// The most that ε lets anybody guess, from whatever is answered.
	most := 1 / (1 + math.Exp(-epsilon))
	for g, c := range []struct {
		name string
		of   float64 // deviation of what is compared
	}{{"the difference of two counts", deviation * math.Sqrt2},
		{"one count, all others known", deviation}} {
		want := 0.5 * math.Erfc(-0.5/c.of/math.Sqrt2)
		n := float64(trials)
		guess := attacks.Near(right[g][1]/n, math.Sqrt(want*(1-want)/n), trials, want)
		guess.Max = min(guess.Max, most)
		report.Rows = append(report.Rows, attacks.Row{
			Case:       c.name,
			Metric:     "right guesses whether one person is ill",
			Undefended: attacks.Exactly(right[g][0]/n, trials, 1),
			Defended:   guess,
			Limit:      true,
			Note: fmt.Sprintf("ε = %.3g for both queries together lets nobody guess right in more than "+
				"%.3f; half is by chance", epsilon, most),
		})
	}
	return report, nil
}
