package job

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// Terms hold what follows from a [Plan] and a roster: the numbers of the noise, the budget and the
// sessions, each in the type of the package that uses it. They are for those who have such numbers
// and no plan: noise by its multiplier rather than by what a budget takes, a lane of signs,
// sampling in secret, a schedule, thresholds of their own.
type Terms struct {
	// Release describes the sums and their noise. Its Contributors must be those of Session: see
	// privacy.ContributorsOf.
	Release privacy.Release
	Budget  privacy.Budget // of Ledger; without Epsilon there is no limit
	// Session is the configuration of the sessions, except Number and Layout. Without a Roster there
	// are none, and the sums are taken in some other way.
	Session protocol.Config
}

// Settle works the terms out. It fails with the errors of package privacy, and with a
// [ConfigError] if there can be no such session. What it returns is for those who keep
// their own loop: a [Coordinator] and a [Participant] take a plan.
func (t *Terms) Settle() (*Settled, error) {
	mechanism, err := t.Release.Mechanism()
	if err != nil {
		return nil, err
	}
	s := &Settled{
		mechanism: mechanism,
		encoder:   mechanism.Encoder,
		budget:    t.Budget.WithDefaults(),
		session:   t.Session,
		survivors: t.Release.Contributors.MinSurvivors,
	}
	if s.survivors == 0 {
		s.survivors = t.Release.Contributors.Parties
	}
	if s.layout, err = mechanism.Layout(); err != nil {
		return nil, err
	}
	s.session.Layout = s.layout
	text, err := json.Marshal(struct {
		Label   string
		Release privacy.Release
		Budget  privacy.Budget
	}{t.Session.Label, t.Release, t.Budget})
	if err != nil {
		return nil, &ConfigError{Path: "Release", Reason: err.Error(), Err: err}
	}
	s.digest = sha256.Sum256(append([]byte("hushsum/2 terms\n"), text...))
	s.session.Label = label(t.Session.Label, s.digest)
	if t.Session.Roster == nil {
		return s, nil
	}
	if err := s.session.Validate(); err != nil {
		return nil, &ConfigError{Path: "Session", Reason: err.Error(), Err: err}
	}
	return s, nil
}

// Layout returns the segments of a submission.
func (s *Settled) Layout() masking.Layout { return append(masking.Layout(nil), s.layout...) }

// Mechanism returns the noise and its encoding, nil without noise: it offers what Encode and Decode
// leave out, namely signs with the vectors, and submissions of parties that are not drawn.
func (s *Settled) Mechanism() *privacy.Mechanism { return s.mechanism }

// Roster returns the parties, nil if there are no sessions.
func (s *Settled) Roster() *keyexchange.Roster { return s.session.Roster }

// Config returns the configuration of the session of the given number. All sessions of
// a plan have one label; see protocol.Config for what a number is good for.
func (s *Settled) Config(number uint64) *protocol.Config {
	config := s.session
	config.Number = number
	if recovery := s.session.Recovery; recovery != nil {
		own := *recovery
		config.Recovery = &own
	}
	return &config
}

// Ledger returns a ledger that holds every party to the budget, by its name, or nil if there is no
// budget. It has what was spent before as far as that counts, by parties that have left too, who
// may come back.
func (s *Settled) Ledger() (*accounting.Ledger, error) {
	if s.mechanism == nil || s.budget.Epsilon == 0 {
		return nil, nil
	}
	own, err := s.budget.Ledger()
	if err != nil || s.before == nil {
		return own, err
	}
	left := slices.DeleteFunc(s.before.Ledger.Clients(), func(name string) bool {
		return slices.Contains(s.budget.Before.Clients(), name)
	})
	return own, own.Carry(s.before.Ledger, left...)
}

// Rounds returns how many sums there are, 0 for [Terms], which do not say.
func (s *Settled) Rounds() int {
	if s.job != nil {
		return s.job.Rounds * s.job.Training.sums()
	}
	return s.plan.Rounds
}

// Buffer returns how many submissions a round takes, while slower parties continue training; 0:
// what all make from its own broadcast. How old a submission may be is Oneshot().Stale.
func (s *Settled) Buffer() int {
	if s.job == nil {
		return 0
	}
	return s.job.Sum.Buffer
}

// Submissions returns the most submissions that a party makes, however its rounds are drawn: it is
// charged for them, and its own ledger enforces the limit.
func (s *Settled) Submissions() int {
	if s.job != nil {
		return s.job.submissions()
	}
	return s.plan.Rounds
}

// Length returns how many numbers a party's vector has.
func (s *Settled) Length() int {
	if s.lanes != nil {
		return s.lanes.shape.Dimension
	}
	return s.plan.Length
}

// Colluders returns how many parties may pool what they know with the server.
func (s *Settled) Colluders() int {
	if s.job != nil {
		return s.job.Parties.Colluders // a sparse graph counts those among neighbours
	}
	return s.session.Colluders
}

// PerRound returns how many parties a round is held among, 0 for all that are present.
func (s *Settled) PerRound() int {
	if s.job == nil {
		return 0
	}
	return s.job.Parties.PerRound
}

// Draw returns which of the parties that are present a round is held among, in ascending order, by
// a rule that all can compute: those whose SHA-256 of the digest, the round and their number are
// least.
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
// there is no coin, and it does. SubmitAfter returns how long after a round's model came all
// submit; 0: as soon as they can. A party without luck, or with nothing, then sends a
// [Settled.Blank].
func (s *Settled) Hidden() float64 {
	if s.job == nil {
		return 0
	}
	return s.job.Parties.Hidden
}

// SubmitAfter is described with [Settled.Hidden].
func (s *Settled) SubmitAfter() time.Duration {
	if s.job == nil {
		return 0
	}
	return s.job.Privacy.SubmitAfter
}

// Time returns when rounds are held; for a [Plan] and for [Terms] the program decides that.
func (s *Settled) Time() Time {
	if s.job == nil {
		return Time{}
	}
	return s.job.Time
}

// Label returns the label of all sessions.
func (s *Settled) Label() string { return s.session.Label }
