package party

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/internal/suggest"
	"github.com/hushsum/hushsum/service/federation"
)

// ErrPolicy: the federation asks for more than this party's policy permits.
var ErrPolicy = errors.New("party: the federation is not within this party's policy")

// Policy is the minimum that a party insists on. Zero values insist on nothing.
type Policy struct {
	// JobDigest is the digest of the only job that the party takes part in, as hushsum job check
	// prints it: 64 hexadecimal digits.
	JobDigest string `toml:"job_digest"`
	// LeastHonest is the fewest honest parties in a sum, Colluders how many parties the federation
	// must withstand, and Adversary the weakest server that it may be designed for: cheating,
	// semi-malicious or curious.
	LeastHonest int    `toml:"least_honest"`
	Colluders   int    `toml:"colluders"`
	Adversary   string `toml:"adversary"`
	// Faults is how many members of a committee that lie or are silent the federation must
	// withstand, and Covered requires that submissions are covered until the members agree on which
	// parties are in the sum. Both are for federations with a committee.
	Faults  int  `toml:"faults"`
	Covered bool `toml:"covered"`
	// MaxEpsilon bounds what all rounds spend, MaxEpsilonRound what one round does, and
	// MaxDelta goes with both. Any of them requires noise.
	MaxEpsilon      float64 `toml:"max_epsilon"`
	MaxEpsilonRound float64 `toml:"max_epsilon_round"`
	MaxDelta        float64 `toml:"max_delta"`
	// MaxEpsilonYear bounds what all federations of the last 365 days and this one spend together,
	// according to the party's [Book], which it requires.
	MaxEpsilonYear float64 `toml:"max_epsilon_year"`
	// MaxEpsilonMonth bounds the same over the last 30 days, in which what was spent earlier in
	// federations that the others continue does not count.
	MaxEpsilonMonth float64 `toml:"max_epsilon_month"`
	// QueryColumns and QueryKinds list the columns that queries may read, including in conditions,
	// and the kinds that queries may have; empty: all.
	QueryColumns []string `toml:"query_columns"`
	QueryKinds   []string `toml:"query_kinds"`
	// SmallestGroup is the fewest rows that answers may distinguish from none: see
	// [query.Plan.Blur]. It is compared with the declared noise, and never with this party's rows:
	// a party that refused because few of them match would reveal that, and no party knows how many
	// others have.
	SmallestGroup float64 `toml:"smallest_group"`
	// Follow lists keys of operators, 64 hexadecimal digits each, on whose word the party, or the
	// member of a committee, continues in a federation that continues one that it took part in, if
	// that is within this policy and has at most FollowJoined parties, members and keys that are
	// new.
	Follow       []string `toml:"follow"`
	FollowJoined int      `toml:"follow_joined"`
	// Unit is the least that epsilon may protect, where one of these fields bounds it: party, which
	// is the default, or record.
	Unit string `toml:"unit"`
	// Keep lists patterns for the names of tensors that must stay with the party, where the model
	// has them; a star matches any characters, including slashes.
	Keep []string `toml:"keep"`
	// From and Until are the hours of the day, in local time, between which the party asks the
	// server for anything; equal ones mean the whole day.
	From  int `toml:"from_hour"`
	Until int `toml:"until_hour"`
	// MaxBytesRound is the most bytes that a round may send.
	MaxBytesRound int `toml:"max_bytes_round"`
}

// unreadable is why a policy's file cannot be read. It is [ErrPolicy], without its text, which is
// about a federation.
func unreadable(format string, a ...any) error {
	return &unreadableError{fmt.Errorf("party: the policy's file: "+format, a...)}
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

// ReadPolicy reads a policy from a TOML file.
func ReadPolicy(name string) (*Policy, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	p := new(Policy)
	if wrong := strict.TOML(b, p); len(wrong) > 0 {
		if line := wrong[0].Line; line > 0 {
			name += fmt.Sprint(":", line)
		}
		advice := ""
		key := wrong[0].Key
		if near := suggest.Nearest(key, policyKeys()); wrong[0].Meant == "" && near != "" && near != key {
			advice = "; did you mean " + near + "?"
		}
		return nil, unreadable("%s: %w%s", name, wrong[0], advice)
	}
	if p.JobDigest != "" && !digestPattern.MatchString(p.JobDigest) {
		return nil, unreadable("%s: job_digest = %.80q is not 64 hexadecimal digits in lower case, "+
			"as hushsum job check prints them", name, p.JobDigest)
	}
	if _, found := strength[p.Adversary]; !found {
		return nil, unreadable("%s:%d: there is no adversary %.80q; use cheating, semi-malicious or "+
			"curious", name, lineOf(b, "adversary"), p.Adversary)
	}
	if p.Unit != "" && p.Unit != "party" && p.Unit != "record" {
		return nil, unreadable("%s:%d: unit = %.80q; use party or record", name, lineOf(b, "unit"),
			p.Unit)
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
		{"max_delta", p.MaxDelta},
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

// strength orders the adversaries that a federation can be made for.
var strength = map[string]int{"": 0, "curious": 1, "semi-malicious": 2, "cheating": 3}

// Check fails with [ErrPolicy], naming what falls short, if a federation is not within the policy.
func (p *Policy) Check(f *federation.Federation) error {
	own, colluders, adversary := f.Job.Privacy, f.Settled.Colluders(), f.Job.Sum.Adversary
	honest := f.Settled.Honest()
	fail := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrPolicy, fmt.Sprintf(format, a...))
	}
	one := f.Settled.Oneshot()
	bounds := p.MaxEpsilon > 0 || p.MaxEpsilonRound > 0 || p.MaxDelta > 0 || p.ofTime()
	switch {
	case p.JobDigest != "" && f.JobDigest == "":
		return fail("job_digest is for a job, and its file is in the form of an earlier release")
	case p.JobDigest != "" && f.JobDigest != p.JobDigest:
		return fail("the digest of its job is %s, job_digest is %s", f.JobDigest, p.JobDigest)
	case honest < p.LeastHonest:
		return fail("%d honest parties in a sum, least_honest is %d", honest, p.LeastHonest)
	case colluders < p.Colluders:
		return fail("it withstands %d colluders, the policy has %d", colluders, p.Colluders)
	case strength[adversary] < strength[p.Adversary]:
		return fail("it is made for a %s server, and the policy says %s", adversary, p.Adversary)
	case one != nil && one.Faults < p.Faults:
		return fail("its committee withstands %d members that lie, faults is %d", one.Faults, p.Faults)
	case one != nil && p.Covered && !one.Covered:
		return fail("its submissions are not covered; the policy says covered")
	case bounds && !f.Job.Noisy():
		return fail("it has no noise, and the policy bounds epsilon")
	case bounds && f.Job.PerRecord() && p.Unit != "record":
		return fail(`its epsilon is of %s, and the policy's of each party; write unit = "record" if `+
			"that is enough", f.Job.Protects())
	case p.MaxEpsilon > 0 && own.Epsilon == 0:
		return fail("its noise is set by a multiplier and guarantees no epsilon, max_epsilon is %g",
			p.MaxEpsilon)
	case p.MaxEpsilon > 0 && own.Epsilon > p.MaxEpsilon:
		return fail("it spends epsilon %g, max_epsilon is %g", own.Epsilon, p.MaxEpsilon)
	case p.MaxDelta > 0 && own.Delta > p.MaxDelta:
		return fail("its delta is %g, max_delta is %g", own.Delta, p.MaxDelta)
	}
	if err := p.checkQueries(f); err != nil {
		return err
	}
	if p.MaxEpsilonRound > 0 {
		spent, err := f.Settled.Round().Spent(accounting.ServerView, 1, own.Delta)
		if err != nil {
			return err
		}
		if spent.Upper > p.MaxEpsilonRound {
			return fail("a round spends epsilon %.3g, max_epsilon_round is %g", spent.Upper,
				p.MaxEpsilonRound)
		}
	}
	for _, t := range f.Spec.Tensors {
		for _, pattern := range p.Keep {
			if kept(pattern, t.Name) {
				return fail("it shares %q, which matches keep = %q", t.Name, pattern)
			}
		}
	}
	layout := f.Settled.Layout()
	up := layout.PackedSize()
	if f.Settled.Oneshot() != nil {
		up = f.Up()
	}
	if p.MaxBytesRound > 0 && up > p.MaxBytesRound {
		return fail("a round sends %d bytes, max_bytes_round is %d", up, p.MaxBytesRound)
	}
	return nil
}

// ofTime reports whether the policy bounds epsilon by the month or the year.
func (p *Policy) ofTime() bool { return p.MaxEpsilonMonth > 0 || p.MaxEpsilonYear > 0 }

// checkQueries fails with [ErrPolicy] if a federation asks what the policy does not permit, and
// names the query.
func (p *Policy) checkQueries(f *federation.Federation) error {
	plan := f.Questions()
	if plan == nil {
		return nil
	}
	for i := range f.Job.Query {
		q := &f.Job.Query[i]
		if len(p.QueryKinds) > 0 && !slices.Contains(p.QueryKinds, q.Kind) {
			return fmt.Errorf("%w: query %s is a %s, and query_kinds has %s", ErrPolicy, q.Name, q.Kind,
				strings.Join(p.QueryKinds, ", "))
		}
		for _, column := range f.Job.ColumnsOf(q) {
			if len(p.QueryColumns) > 0 && !slices.Contains(p.QueryColumns, column) {
				return fmt.Errorf("%w: query %s reads the column %s, and query_columns has %s", ErrPolicy,
					q.Name, column, strings.Join(p.QueryColumns, ", "))
			}
		}
	}
	if blur := plan.Blur(); blur < p.SmallestGroup {
		return fmt.Errorf("%w: its answers distinguish groups of %.3g rows from none, smallest_group "+
			"is %g",
			ErrPolicy, blur, p.SmallestGroup)
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

// wait waits for the hours in which the party takes part. A nil policy has no such hours.
func (p *Policy) wait(ctx context.Context, now func() time.Time) error {
	for p != nil && !p.within(now()) {
		if err := sleep(ctx, time.Minute); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) within(t time.Time) bool {
	hour := t.Hour()
	switch {
	case p.From == p.Until:
		return true
	case p.From < p.Until:
		return hour >= p.From && hour < p.Until
	}
	return hour >= p.From || hour < p.Until
}
