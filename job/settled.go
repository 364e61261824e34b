package job

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// Settled is a job with everything worked out for its roster: its sessions, how a vector becomes a
// submission with its party's share of the noise, how a sum becomes a mean, and what a round
// spends. It is safe for concurrent use.
type Settled struct {
	job       *Job
	lanes     *lanes
	session   protocol.Config
	promise   privacy.Promise // that noise is settled for, zero without
	budget    privacy.Budget
	before    *Before            // nil: nothing counts that was spent before
	study     *accounting.Budget // nil: there is none
	plan      accounting.Plan    // of the study
	mechanism *privacy.Mechanism // nil without noise
	layout    masking.Layout
	survivors int // fewest in a sum
	digest    [32]byte
	oneshot   *oneshot.Config // nil where sums are pairwise
	declared  [32]byte        // digest of the job without its files
	tensors   []Tensor        // of a file
	weights   []int           // of the parties, declared; nil: all count alike

	multiplier float64 // of the noise, as declared or as the budget takes it
}

// Job returns the job with its defaults and the number of its parties filled in.
func (s *Settled) Job() *Job { return s.job }

// Digest covers everything that the sides must agree on. The label of every session contains the
// digest, so that sides that differ refuse each other's keys.
func (s *Settled) Digest() [32]byte { return s.digest }

// Declared returns the [Job.Digest] of the job that was settled.
func (s *Settled) Declared() [32]byte { return s.declared }

// MinSurvivors returns the fewest parties in a sum: the honest parties whose noise is counted, and
// the colluders.
func (s *Settled) MinSurvivors() int { return s.survivors }

// Honest returns the fewest honest parties in a sum: MinSurvivors less the colluders, and fewer on
// a sparse graph against a server that cheats after keys are exchanged (SPEC.md §13.7).
func (s *Settled) Honest() int {
	if s.oneshot == nil {
		return s.pairwise().Honest
	}
	return s.survivors - s.Colluders()
}

// pairwise returns the promise of the sessions.
func (s *Settled) pairwise() protocol.Promise {
	p, err := s.session.Promise()
	if err != nil {
		panic("job: " + err.Error()) // sums has checked it
	}
	return p
}

// Promise returns how many shares of the noise are in every sum, zero without noise.
func (s *Settled) Promise() privacy.Promise { return s.promise }

// Round returns what a round, or a [Settled.Band], spends; without noise it returns zero, which
// means nothing.
func (s *Settled) Round() accounting.Round {
	if s.mechanism == nil {
		return accounting.Round{}
	}
	return s.mechanism.Round()
}

// Statement returns what every ε of the job is about; without noise the zero Statement.
func (s *Settled) Statement() accounting.Statement { return s.Round().Statement }

// Layout returns the segments of a submission.
func (s *Settled) Layout() masking.Layout { return append(masking.Layout(nil), s.layout...) }

// Mechanism returns the noise and its encoding, nil without noise. A Mechanism can also encode
// signs with the vectors, and the submissions of parties that are not drawn, which Encode and
// Decode cannot.
func (s *Settled) Mechanism() *privacy.Mechanism { return s.mechanism }

// Multiplier returns the multiplier of the noise, which a job with a budget may leave open; 0
// without noise.
func (s *Settled) Multiplier() float64 { return s.multiplier }

// Roster returns the parties.
func (s *Settled) Roster() *keyexchange.Roster { return s.session.Roster }

// Config returns the configuration of the session of the given number. All sessions of a job have
// one label; protocol.Config says why each session needs its own number.
func (s *Settled) Config(number uint64) *protocol.Config {
	config := s.session
	config.Number = number
	if recovery := s.session.Recovery; recovery != nil {
		own := *recovery
		config.Recovery = &own
	}
	return &config
}

// Budget returns what no party spends more than, together with what it has spent before; nil if
// there is no noise, or none is declared.
func (s *Settled) Budget() *accounting.Budget {
	if s.mechanism == nil || s.budget.Epsilon == 0 {
		return nil
	}
	about := s.Statement()
	if s.before != nil { // a ledger composes lines as if all were fixed ahead
		about = about.Assuming(accounting.AssumesAhead)
	}
	return budgetOf(about, s.budget.Epsilon, s.budget.WithDefaults().Delta)
}

// budgetOf returns a budget of a valid job.
func budgetOf(about accounting.Statement, epsilon, delta float64) *accounting.Budget {
	b, err := accounting.NewBudget(about, epsilon, delta)
	if err != nil {
		panic("job: " + err.Error())
	}
	return &b
}

// Ledger returns a ledger that holds every party to the budget, by its name, or nil if there is no
// budget. The ledger contains what was spent before as far as that counts, also by parties that
// have left, since they may come back.
func (s *Settled) Ledger() (*accounting.Ledger, error) {
	budget := s.Budget()
	if budget == nil {
		return nil, nil
	}
	own, err := s.budget.Ledger(budget.Statement())
	if err != nil || s.before == nil {
		return own, err
	}
	left := slices.DeleteFunc(s.before.Ledger.Clients(), func(name string) bool {
		return slices.Contains(s.budget.Before.Clients(), name)
	})
	return own, own.Carry(s.before.Ledger, left...)
}

// Rounds returns how many sums there are.
func (s *Settled) Rounds() int { return s.job.Rounds * s.job.Training.sums() }

// Buffer returns how many submissions a round takes while slower parties continue training; 0: a
// round takes the submissions of all parties, made from its own broadcast. Oneshot().Stale says how
// old a submission may be.
func (s *Settled) Buffer() int { return s.job.Sum.Buffer }

// Submissions returns the most submissions that a party makes, however its rounds are drawn. The
// party is charged for that many, and its own guard enforces the limit.
func (s *Settled) Submissions() int { return s.job.submissions() }

// Length returns how many numbers a party's vector has, without metrics.
func (s *Settled) Length() int {
	n := s.lanes.shape.Dimension
	if s.job.Metrics.Share > 0 {
		n -= metrics
	}
	return n
}

// Colluders returns how many parties may pool what they know with the server.
func (s *Settled) Colluders() int { return s.job.Parties.Colluders }

// PerRound returns how many parties a round is held among, 0 for all that are present.
func (s *Settled) PerRound() int { return s.job.Parties.PerRound }

// Draw returns the parties that take part in a round, out of those that are present, in ascending
// order. All can compute the rule: the parties with the least SHA-256 of the digest, the round and
// the party's number are drawn.
func (s *Settled) Draw(round uint64, there []int, sample int) []int {
	rank := func(i int) string {
		d := sha256.Sum256(fmt.Appendf(nil, "%x %d %d", s.digest, round, i))
		return string(d[:])
	}
	drawn := slices.Clone(there)
	slices.SortFunc(drawn, func(i, j int) int { return strings.Compare(rank(i), rank(j)) })
	drawn = drawn[:min(sample, len(drawn))]
	slices.Sort(drawn)
	return drawn
}

// Hidden returns the probability that a party's own secret coin has it take part in a round; 0:
// there is no coin, and every party takes part. SubmitAfter returns how long after the arrival of a
// round's model all parties submit; 0: as soon as they can. A party that its coin leaves out, or
// that has no vector by then, sends a [Settled.Blank].
func (s *Settled) Hidden() float64 { return s.job.Parties.Hidden }

// SubmitAfter is described with [Settled.Hidden].
func (s *Settled) SubmitAfter() time.Duration { return s.job.Privacy.SubmitAfter }

// Time returns when rounds are held.
func (s *Settled) Time() Time { return s.job.Time }

// Label returns the label of all sessions.
func (s *Settled) Label() string { return s.session.Label }

// StdDev returns the standard deviation of the noise in each coordinate of a mean of the given
// number of parties, in the units of the vectors; 0 without noise. Where the unit is a record,
// means are over the records that a round expects; where parties have declared weights, it is that
// of parties of the mean weight.
func (s *Settled) StdDev(parties int) float64 {
	if e := s.lanes.keyed; e != nil {
		return keyNoise * math.Sqrt(float64(parties)) / e.Scale / s.over(parties)
	}
	if s.mechanism == nil {
		return 0
	}
	if s.job.PerRecord() {
		return s.mechanism.SumStdDev(parties) / float64(s.job.Batch())
	}
	over := s.over(parties)
	if q := s.Hidden(); q > 0 {
		over *= q
	}
	return s.mechanism.SumStdDev(parties) / over
}

// over is how many vectors the mean of any parties is over, as if each had the mean weight.
func (s *Settled) over(parties int) float64 {
	if s.weights == nil {
		return float64(parties)
	}
	return float64(parties) * float64(sum(s.weights)) / float64(len(s.weights))
}

// Blur returns the number of rows that all answers to the job's queries together cannot tell from
// none: a smaller group moves them by less than half of a 95 % interval, by the noise of the fewest
// honest parties, no matter what its rows have in common. It is 0 without noise. It follows from
// what is declared, and from no rows.
func (s *Settled) Blur() float64 {
	m := s.mechanism
	if m == nil {
		return 0
	}
	const z95 = 1.959963984540054 // of a normal law
	rows := 1.0                   // that add norm 1 to the vector
	if !s.job.PerRecord() {
		rows = float64(s.job.Parties.Rows)
	}
	return z95 * m.StdDev(m.Vector.Shares.MinHonest) * rows
}
