// Package consent has what a party agrees to: its [Policy] says which jobs it takes part in, and
// its [Book] what it has accepted and spent in all of them, whatever carries their sums.
package consent

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/charset"
	"github.com/hushsum/hushsum/internal/instant"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/internal/suggest"
	"github.com/hushsum/hushsum/job"
)

// ErrPolicy: the job asks for more than this party's policy permits.
var ErrPolicy = errors.New("consent: the job is not within this party's policy")

// Policy holds the limits that a party insists on. A zero value sets no limit.
type Policy struct {
	// JobDigest is the digest of the only job that the party takes part in, as hushsum job check
	// prints it: 64 hexadecimal digits.
	JobDigest string `toml:"job_digest"`
	// LeastHonest is the fewest honest parties in a sum, Colluders how many parties the job must
	// withstand, and Adversary the weakest server that its sums may withstand: cheating,
	// semi-malicious or curious.
	LeastHonest int    `toml:"least_honest"`
	Colluders   int    `toml:"colluders"`
	Adversary   string `toml:"adversary"`
	// Faults is how many members of a committee that lie or are silent the job must withstand, and
	// Covered requires that submissions are covered until the members agree on which parties are in
	// the sum. Both are for jobs with a committee.
	Faults  int  `toml:"faults"`
	Covered bool `toml:"covered"`
	// MaxEpsilon bounds what all rounds together spend, with what anybody in the roster has spent in
	// the jobs that this one continues, and MaxEpsilonRound what one round spends. Both
	// require noise. Every epsilon of the policy is for Unit, against Adversary with Colluders and
	// Faults, and at Delta, whatever delta the job states its own at; 0: 1e-5.
	MaxEpsilon      float64 `toml:"max_epsilon"`
	MaxEpsilonRound float64 `toml:"max_epsilon_round"`
	Delta           float64 `toml:"delta"`
	// Assumes lists what an epsilon may assume, those of the policy and the job's own, by the names
	// that accounting.ParseAssumptions reads. Nil: those of the policy anything but ahead and sums.
	Assumes []string `toml:"assumes"`
	// MaxEpsilonYear bounds what all jobs that go on or have ended in the last 365 days, and this
	// one, spend together according to the party's [Book], which it requires.
	MaxEpsilonYear float64 `toml:"max_epsilon_year"`
	// MaxEpsilonMonth bounds the same over the last 30 days.
	MaxEpsilonMonth float64 `toml:"max_epsilon_month"`
	// Plan says how jobs add up in a month or a year: gaussian, which is the default, or adds.
	// See [accounting.Plan].
	Plan string `toml:"plan"`
	// QueryColumns and QueryKinds list the columns that queries may read, including in conditions,
	// and the kinds that queries may have; empty: all.
	QueryColumns []string `toml:"query_columns"`
	QueryKinds   []string `toml:"query_kinds"`
	// SmallestGroup is the fewest rows that answers may distinguish from none: see [job.Settled.Blur].
	// SmallestGroup is compared with the declared noise, and never with this party's rows: a party
	// that refused because few of its rows match would reveal that, and no party knows how many rows
	// others have.
	SmallestGroup float64 `toml:"smallest_group"`
	// Follow lists keys of operators of the service, 64 hexadecimal digits each, by whose signed
	// statement the party, or the member of a committee, goes on in a federation that continues one
	// in which it took part, if the new federation is within this policy and has at most FollowJoined
	// new parties, members and keys.
	Follow       []string `toml:"follow"`
	FollowJoined int      `toml:"follow_joined"`
	// Unit is whom the epsilon of these fields is for: party, which is the default, record, or
	// "records of each PERSON". A party's rounds count twice for what is smaller.
	Unit string `toml:"unit"`
	// Keep lists patterns for the names of tensors that must stay with the party, where the model
	// has them; a star matches any characters, including slashes.
	Keep []string `toml:"keep"`
	// From and Until are the hours of the day, in local time, between which the party asks the server
	// for anything; equal hours mean the whole day.
	From  int `toml:"from_hour"`
	Until int `toml:"until_hour"`
	// MaxBytesRound is the most bytes that a round may send.
	MaxBytesRound int `toml:"max_bytes_round"`
}

// unreadable is why a policy's file cannot be read. It is [ErrPolicy], without its text, which is
// about a job.
func unreadable(format string, a ...any) error {
	return &unreadableError{fmt.Errorf("consent: the policy's file: "+format, a...)}
}

type unreadableError struct{ error }

func (e *unreadableError) Is(target error) bool { return target == ErrPolicy }

func (e *unreadableError) Unwrap() error { return e.error }

// policyKeys lists the keys of a policy's file.
func policyKeys() (keys []string) {
	for i, t := 0, reflect.TypeFor[Policy](); i < t.NumField(); i++ {
		keys = append(keys, t.Field(i).Tag.Get("toml"))
	}
	return keys
}

// mostPolicy bounds what is read of a file: keys and patterns in it are a line each.
const mostPolicy = 64 << 10

// ReadPolicy reads a policy from a TOML file.
func ReadPolicy(name string) (*Policy, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, mostPolicy+1))
	if err != nil {
		return nil, err
	}
	if len(b) > mostPolicy {
		return nil, unreadable("%s has more than %d bytes; give a policy", name, mostPolicy)
	}
	if encoding := charset.Of(b); encoding != "" {
		reason, advice := charset.Foreign(encoding, name)
		return nil, unreadable("%s: %s; %s", name, reason, advice)
	}
	p := new(Policy)
	if wrong := strict.TOML(b, p); wrong != nil {
		if line := wrong.Line; line > 0 {
			name += fmt.Sprint(":", line)
		}
		advice := ""
		key := wrong.Key
		if near := suggest.Nearest(key, policyKeys()); wrong.Meant == "" && near != "" && near != key {
			advice = "; did you mean " + near + "?"
		}
		return nil, unreadable("%s: %w%s", name, wrong, advice)
	}
	if p.JobDigest != "" && !digestPattern.MatchString(p.JobDigest) {
		return nil, unreadable("%s: job_digest = %.80q is not 64 hexadecimal digits in lower case, "+
			"as hushsum job check prints them", name, p.JobDigest)
	}
	if _, found := strength[p.Adversary]; !found {
		return nil, unreadable("%s:%d: there is no adversary %.80q; use cheating, semi-malicious or "+
			"curious", name, lineOf(b, "adversary"), p.Adversary)
	}
	if _, err := p.unit(); err != nil {
		return nil, unreadable("%s:%d: unit = %.80q; use party, record, or \"records of each PERSON\"",
			name, lineOf(b, "unit"), p.Unit)
	}
	if _, err := p.assumptions(); err != nil {
		return nil, unreadable("%s:%d: assumes: %v", name, lineOf(b, "assumes"), err)
	}
	if _, err := p.plan(); err != nil {
		return nil, unreadable("%s:%d: plan = %.80q; use gaussian or adds", name, lineOf(b, "plan"),
			p.Plan)
	}
	if !(p.Delta >= 0 && p.Delta < 1) {
		return nil, unreadable("%s:%d: delta = %v; use a number above 0 and below 1, such as 1e-5", name,
			lineOf(b, "delta"), p.Delta)
	}
	for _, bound := range []struct {
		name  string
		value float64
	}{
		{"least_honest", float64(p.LeastHonest)},
		{"colluders", float64(p.Colluders)},
		{"faults", float64(p.Faults)},
		{"max_epsilon", p.MaxEpsilon},
		{"max_epsilon_round", p.MaxEpsilonRound},
		{"max_epsilon_year", p.MaxEpsilonYear},
		{"max_epsilon_month", p.MaxEpsilonMonth},
		{"smallest_group", p.SmallestGroup},
		{"follow_joined", float64(p.FollowJoined)},
		{"max_bytes_round", float64(p.MaxBytesRound)},
	} {
		// A bound that is not a number would insist on nothing.
		if !(bound.value >= 0) {
			return nil, unreadable("%s: %s = %v; use a number above 0, or leave it out", name,
				bound.name, bound.value)
		}
	}
	for _, key := range p.Follow {
		if !digestPattern.MatchString(key) {
			return nil, unreadable("%s: follow: %.80q is not a key of 64 hexadecimal digits in lower case, "+
				"as hushsumd identity prints it", name, key)
		}
	}
	for _, pattern := range p.Keep {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, unreadable("%s: keep: %q is not a pattern", name, pattern)
		}
	}
	if p.From < 0 || p.From > 23 || p.Until < 0 || p.Until > 23 {
		return nil, unreadable("%s: hours are 0 to 23", name)
	}
	return p, nil
}

// lineOf returns the line of a policy's file that sets a key, which it has.
func lineOf(text []byte, key string) int {
	at := regexp.MustCompile(`(?m)^[ \t]*["']?` + key + `["']?[ \t]*=`).FindIndex(text)
	if at == nil {
		return 1
	}
	return 1 + bytes.Count(text[:at[0]], []byte("\n"))
}

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// strength orders the adversaries that sums can withstand.
var strength = map[string]int{"": 0, "curious": 1, "semi-malicious": 2, "cheating": 3}

// Check fails with [ErrPolicy], naming what falls short, if a job is not within the policy. A nil
// policy permits any.
func (p *Policy) Check(s *job.Settled) error {
	if p == nil {
		return nil
	}
	declared, one := s.Declared(), s.Oneshot()
	bounds := p.MaxEpsilon > 0 || p.MaxEpsilonRound > 0 || p.ofTime()
	switch {
	case p.JobDigest != "" && hex.EncodeToString(declared[:]) != p.JobDigest:
		return refuse("the digest of its job is %x, job_digest is %s", declared, p.JobDigest)
	case s.Honest() < p.LeastHonest:
		return refuse("%d honest parties in a sum, least_honest is %d", s.Honest(), p.LeastHonest)
	case s.Colluders() < p.Colluders:
		return refuse("it withstands %d colluders, the policy has %d", s.Colluders(), p.Colluders)
	case strength[s.Job().Adversary()] < strength[p.Adversary]:
		return refuse("it is made for a %s server, and the policy says %s", s.Job().Adversary(),
			p.Adversary)
	case one != nil && one.Faults < p.Faults:
		return refuse("its committee withstands %d members that lie, faults is %d", one.Faults, p.Faults)
	case one != nil && p.Covered && !one.Covered:
		return refuse("its submissions are not covered; the policy says covered")
	case bounds && !s.Job().Noisy():
		return refuse("it has no noise, and the policy bounds epsilon")
	}
	for _, check := range []func(*job.Settled) error{p.checkAssumed, p.checkEpsilon, p.checkQueries,
		p.checkSent} {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

// checkSent fails with [ErrPolicy] if a party would send a tensor that must stay with it, or more
// bytes than the policy permits.
func (p *Policy) checkSent(s *job.Settled) error {
	for _, t := range s.Tensors() {
		for _, pattern := range p.Keep {
			if kept(pattern, t.Name) {
				return refuse("it shares %q, which matches keep = %q", t.Name, pattern)
			}
		}
	}
	layout := s.Layout()
	up := layout.PackedSize()
	if one := s.Oneshot(); one != nil {
		figures, err := one.Parameters()
		if err != nil {
			return err
		}
		up = figures.Up
	}
	if p.MaxBytesRound > 0 && up > p.MaxBytesRound {
		return refuse("a round sends %d bytes, max_bytes_round is %d", up, p.MaxBytesRound)
	}
	return nil
}

// checkQueries fails with [ErrPolicy] if a job asks what the policy does not permit, and names the
// query.
func (p *Policy) checkQueries(s *job.Settled) error {
	j := s.Job()
	for i := range j.Query {
		q := &j.Query[i]
		if len(p.QueryKinds) > 0 && !slices.Contains(p.QueryKinds, q.Kind) {
			return refuse("query %s is a %s, and query_kinds has %s", q.Name, q.Kind,
				strings.Join(p.QueryKinds, ", "))
		}
		for _, column := range j.ColumnsOf(q) {
			if len(p.QueryColumns) > 0 && !slices.Contains(p.QueryColumns, column) {
				return refuse("query %s reads the column %s, and query_columns has %s", q.Name, column,
					strings.Join(p.QueryColumns, ", "))
			}
		}
	}
	if blur := s.Blur(); j.Asks() && blur < p.SmallestGroup {
		return refuse("its answers distinguish groups of %.3g rows from none, smallest_group is %g", blur,
			p.SmallestGroup)
	}
	return nil
}

// kept reports whether a pattern has a tensor stay with the party. Unlike a file's, a star also
// matches slashes: a name with slashes must not make the pattern keep less. An invalid pattern
// keeps everything.
func kept(pattern, name string) bool {
	const other = "\x00" // which no name has
	whole := func(s string) string { return strings.ReplaceAll(s, "/", other) }
	ok, err := path.Match(whole(pattern), whole(name))
	return err != nil || ok
}

// errHours is why a context of [Policy.Hours] has ended.
var errHours = errors.New("consent: it is past the hours of this party's policy")

// Hours waits until the party takes part by the clock, and returns a context that ends when it no
// longer does. A nil policy has no such hours. It fails with the context's error.
func (p *Policy) Hours(ctx context.Context) (context.Context, context.CancelFunc, error) {
	now := time.Now()
	for ; !p.within(now); now = time.Now() {
		if err := instant.Sleep(ctx, now.Add(time.Minute)); err != nil {
			return nil, nil, err
		}
	}
	if p == nil || p.From == p.Until {
		return ctx, func() {}, nil
	}
	end := time.Date(now.Year(), now.Month(), now.Day(), p.Until, 0, 0, 0, now.Location())
	if !end.After(now) {
		end = end.AddDate(0, 0, 1)
	}
	within, cancel := context.WithDeadlineCause(ctx, end, errHours)
	return within, cancel, nil
}

func (p *Policy) within(t time.Time) bool {
	if p == nil {
		return true
	}
	hour := t.Hour()
	switch {
	case p.From == p.Until:
		return true
	case p.From < p.Until:
		return hour >= p.From && hour < p.Until
	}
	return hour >= p.From || hour < p.Until
}
