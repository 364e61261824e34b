package observation

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/accounting"
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
	another []float64    // what somebody else who is ill adds to a sum
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
	s := &survey{}
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
		var v []float64
		v, err = s.plan.Vector(rows, nil)
		return v
	}
	const elsewhere = "elsewhere,yes\nelsewhere,no\n"
	s.first[0] = vector(elsewhere + "there,no\n")
	s.first[1] = vector(elsewhere + "there,yes\n")
	for _, text := range []string{elsewhere, elsewhere, elsewhere + "elsewhere,yes\n"} {
		s.others = append(s.others, vector(text))
	}
	if err == nil {
		s.another = less(vector("elsewhere,yes\n"), vector("elsewhere,no\n"))
	}
	return s, err
}

// less returns a − b.
func less(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i := range out {
		out[i] -= b[i]
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// reading is a way to read from a sum whether the person is ill: how far it is from a sum in which
// the person is not, along what the person adds.
type reading struct{ well, along []float64 }

// readings are the two, as good as any by the sum alone: by least squares over all that a sum
// holds, in whichever basis a plan has it, since its noise is the same in all of its numbers. The
// first is for somebody who does not know how many others are ill, as the difference of two counts
// is, and the second for somebody who knows.
func (s *survey) readings() [2]reading {
	person := less(s.first[1], s.first[0])
	along, share := slices.Clone(person), dot(person, s.another)/dot(s.another, s.another)
	for i := range along {
		along[i] -= share * s.another[i]
	}
	well := slices.Clone(s.first[0])
	for _, v := range s.others {
		for i := range well {
			well[i] += v[i]
		}
	}
	return [2]reading{{well: make([]float64, len(well)), along: along}, {well: well, along: person}}
}

// ill returns an estimate of 1 if the person is ill, and of 0 if not.
func (r *reading) ill(sum []float64) float64 {
	return dot(less(sum, r.well), r.along) / dot(r.along, r.along)
}

// ask returns the job's sum: an answer that is read from it is no less than 0.
func (s *survey) ask(ill int) ([]float64, error) {
	layout := s.settled.Layout()
	total := make([]uint64, layout[0].Length)
	for _, v := range append([][]float64{s.first[ill]}, s.others...) {
		values, err := s.settled.Encode(job.BroadcastDigest(nil), job.Update[float64]{Vector: v}, nil)
		if err != nil {
			return nil, err
		}
		for i, x := range values[0] {
			total[i] = (total[i] + x) & (^uint64(0) >> (64 - layout[0].Bits))
		}
	}
	sum, err := s.settled.Decode(job.BroadcastDigest(nil), [][]uint64{total}, s.parties())
	for i := range sum.Mean {
		sum.Mean[i] *= s.over()
	}
	return sum.Mean, err
}

func (s *survey) parties() int { return 1 + len(s.others) }

// over is by how much a sum is larger than its mean.
func (s *survey) over() float64 {
	if j := s.settled.Job(); j.PerRecord() {
		return float64(j.Batch())
	}
	return float64(s.parties())
}

func runQueryDifferencing(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	trials := 10000
	if o.Long {
		trials *= 10
	}
	var right [2][2]float64 // of guesses by the difference, and by one count; exact and with noise
	var deviation [2]float64
	var spent accounting.Claim
	for k, text := range []string{differs, differs + guarded} {
		s, err := newSurvey(text)
		if err != nil {
			return nil, err
		}
		r, readings := o.Rand(partQueries+uint64(k)), s.readings()
		for range trials {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			ill := r.IntN(2)
			sum, err := s.ask(ill)
			if err != nil {
				return nil, err
			}
			for g := range readings {
				if (readings[g].ill(sum) > 0.5) == (ill == 1) {
					right[g][k]++
				}
			}
		}
		if spent, err = s.plan.Spent(); err != nil {
			return nil, err
		}
		for g := range readings {
			along := readings[g].along
			deviation[g] = s.settled.StdDev(s.parties()) * s.over() / math.Sqrt(dot(along, along))
		}
	}
	report := &attacks.Report{}
	// The most that ε lets anybody guess, from whatever is answered.
	most := 1 / (1 + math.Exp(-spent.Bare().Upper))
	for g, name := range []string{"the difference of two counts", "one count, all others known"} {
		want := 0.5 * math.Erfc(-0.5/deviation[g]/math.Sqrt2)
		n := float64(trials)
		guess := attacks.Near(right[g][1]/n, math.Sqrt(want*(1-want)/n), trials, want)
		guess.Max = min(guess.Max, most)
		report.Rows = append(report.Rows, attacks.Row{
			Case:       name,
			Metric:     "right guesses whether one person is ill",
			Undefended: attacks.Exactly(right[g][0]/n, trials, 1),
			Defended:   guess,
			Limit:      true,
			Note: fmt.Sprintf("ε = %s for both queries together lets nobody guess right in more than "+
				"%.3f; half is by chance", spent.Most(), most),
		})
	}
	return report, nil
}
