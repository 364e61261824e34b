package falsify

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/training"
)

// audited are tiny jobs, with a vector of norm clip in one coordinate as the unit.
var audited = []struct{ name, set string }{
	{"Gaussian", `privacy.noise=discrete-gaussian model.length=1 privacy.multiplier=0.7`},
	{"Gaussian, four rounds",
		`privacy.noise=discrete-gaussian model.length=2 privacy.multiplier=1.5 rounds=4`},
	{"Skellam", `privacy.noise=skellam model.length=2 privacy.multiplier=1.0 rounds=2`},
	{"Laplace", `privacy.noise=discrete-laplace model.length=1 privacy.multiplier=0.8`},
	{"some missing, some collude", `privacy.noise=discrete-gaussian model.length=1 ` +
		`privacy.multiplier=0.8 parties.drop_out=0.34 parties.colluders=1 parties.count=6`},
	{"narrow", `privacy.noise=discrete-gaussian model.length=1 privacy.multiplier=0.8 privacy.bits=14`},
	{"weighted", `privacy.noise=discrete-gaussian model.length=1 privacy.multiplier=0.8 ` +
		`sum.max_weight=10`},
	{"secret coins of parties", `privacy.noise=discrete-gaussian model.length=1 ` +
		`privacy.multiplier=0.8 parties.hidden=0.4 privacy.submit_after=2s`},
	{"moments of records", `privacy.noise=discrete-gaussian model.name=scattering ` +
		`model.features=64 model.classes=2 training.standardise=1 privacy.multiplier=0.6 rounds=2 ` +
		`privacy.unit=record privacy.records=5 training.batch=2 privacy.submit_after=2s`},
	{"records", `privacy.noise=discrete-gaussian model.name=logistic model.features=1 ` +
		`model.classes=2 privacy.multiplier=0.8 privacy.unit=record privacy.records=5 ` +
		`training.batch=2 privacy.submit_after=2s`},
}

// alpha is the error of each interval of an audit; five δ are tried, in two directions.
const alpha = 1e-7

// F5: whole sums of tiny jobs show no more than is claimed; with half the noise they show more.
func TestAudit(t *testing.T) {
	trials, jobs := 4000, 3
	if suite.Long() {
		trials, jobs = 40_000, len(audited)
	}
	today := int(time.Now().UTC().Unix() / 86400)
	for i := range jobs {
		// The records are always among them, and others by date.
		c := audited[len(audited)-1]
		if i > 0 {
			c = audited[(today*2+i)%(len(audited)-1)]
		}
		d := draft{}
		d.put("name", "a")
		d.put("rounds", 1)
		d.put("parties.count", 3)
		d.put("sum.adversary", "curious")
		d.put("privacy.clip", 1.0)
		d.set = append(d.set, splitFields(c.set)...)
		s, err := d.settle()
		if err != nil {
			t.Fatal(c.name, err)
		}
		if err := refuted(s, s, trials); err != nil {
			t.Errorf("F5 refutes a job (%s): %v\n%s", c.name, err, d)
		}
		weak := d
		weak.put("privacy.multiplier", s.Job().Privacy.Multiplier/2)
		w, err := weak.settle()
		if err != nil {
			t.Fatal(c.name, err)
		}
		if err := refuted(s, w, trials); err == nil {
			t.Errorf("%s: with half the noise nothing is refuted: the audit sees nothing", c.name)
		}
	}
}

func splitFields(text string) (out []string) {
	last := 0
	for i := range text {
		if text[i] == ' ' {
			out = append(out, text[last:i])
			last = i + 1
		}
	}
	return append(out, text[last:])
}

// refuted runs a job with the unit and without, and says where it shows more than another claims.
func refuted(claim, run *job.Settled, trials int) error {
	scores := [2][]float64{}
	for with := range scores {
		for range trials {
			x, err := score(run, with == 1)
			if err != nil {
				return nil // which the caller notices: half the noise must be refuted
			}
			scores[with] = append(scores[with], x)
		}
	}
	charges := claim.Charges(claim.Submissions())
	for _, delta := range []float64{1e-5, 0.05, 0.1, 0.2, 0.3, 0.45} {
		spent, err := claim.Round().Spent(accounting.ServerView, charges, delta)
		if err != nil {
			return err
		}
		result, err := audit.Scores(scores[0], scores[1], delta, alpha)
		if err != nil {
			return err
		}
		if result.Lower > spent.Bare().Upper {
			return fmt.Errorf("at δ = %v sums show epsilon %.4f, %+v, and at most %.4f is claimed", delta,
				result.Lower, result.Counts, spent.Bare().Upper)
		}
	}
	return nil
}

// score adds up the smallest sums that a job may have, with a unit or without, and returns by how
// much they point to it.
func score(s *job.Settled, with bool) (total float64, err error) {
	honest := s.Honest()
	along, err := direction(s)
	if err != nil {
		return 0, err
	}
	for round := range s.Rounds() {
		broadcast := job.BroadcastDigest([]byte{byte(round)})
		var sum [][]uint64
		add := func(values [][]uint64) {
			if sum == nil {
				sum = values
				return
			}
			for k := range values {
				for i, x := range values[k] {
					sum[k][i] += x
				}
			}
		}
		for i := range honest {
			values, err := part(s, broadcast, round+1, with && i == 0)
			if err != nil {
				return 0, err
			}
			add(values)
		}
		decoded, err := s.Decode(broadcast, sum, honest)
		if err != nil {
			return 0, err
		}
		for i, x := range along {
			total += x * decoded.Mean[i]
		}
		if s.Job().Sum.MaxWeight > 0 {
			continue
		}
		if math.IsNaN(total) {
			return 0, fmt.Errorf("a sum is %v", decoded.Mean)
		}
	}
	return total, nil
}

// unitRow is the row that is in a sum, or not: a large number, or an image of 8 × 8 pixels of
// which one is so bright that its moments are as long as may be.
func unitRow(j *job.Job) *learning.Dataset {
	row := &learning.Dataset{X: []float64{40}, Features: 1, Labels: []int{1}}
	if j.Model.Name == "scattering" {
		row.X, row.Features = make([]float64, 64), 64
		row.X[27] = 1e6
	}
	return row
}

// direction is that in which the unit moves a sum, which those who look for it know.
func direction(s *job.Settled) ([]float64, error) {
	along := make([]float64, s.Length())
	along[0] = 1
	if s.Job().Model.Name != "scattering" {
		return along, nil
	}
	o, err := training.OptionsOf(s.Job())
	if err != nil {
		return nil, err
	}
	m := o.Model.(learning.Scattering)
	along = make([]float64, m.Moments())
	err = m.MomentSum(along, unitRow(s.Job()), [][]int{{0}}, 1)
	return along, err
}

// part is one party's submission: the unit at most, by the coins of the party's own, if it tosses
// any.
func part(s *job.Settled, broadcast [32]byte, round int, with bool) ([][]uint64, error) {
	switch j := s.Job(); {
	case !with:
		return blank(s, nil)
	case j.PerRecord():
		t, err := training.Of(s)
		if err != nil {
			return nil, err
		}
		p, err := t.Party(0, unitRow(j), nil)
		if err != nil {
			return nil, err
		}
		standing := t.First()
		standing.Model[0], standing.Public = 0, broadcast
		m, err := p.Message(context.Background(), standing)
		if err != nil {
			return nil, err
		}
		if j.Model.Name != "scattering" {
			for i := range m.Vector {
				m.Vector[i] = math.Abs(m.Vector[i])
			}
		}
		return s.Encode(broadcast, m, nil)
	case s.Hidden() > 0 && !luck(s.Hidden()):
		return blank(s, nil)
	}
	v := make([]float64, s.Length())
	v[0] = s.Job().Privacy.Clip
	m := job.Update[float64]{Vector: v, Samples: max(1, s.Job().Sum.MaxWeight), Trained: s.Trains()}
	return s.Encode(broadcast, m, nil)
}
