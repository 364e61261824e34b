package job

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/strict"
)

// ErrBefore: the text does not encode a [Before].
var ErrBefore = errors.New("job: this is not a record of what was spent earlier")

// Before records what the parties of a job have spent, by their names, in the earlier jobs that the
// job continues. The file that privacy.before names holds a Before.
type Before struct {
	Federation string             // of the last of these jobs, 64 hexadecimal digits
	Study      *accounting.Budget // that the study's first job declared, nil: there is none
	Plan       accounting.Plan    // of the study: how its lines add up
	Ledger     *accounting.Ledger // against the server
}

// beforeFile is its text.
type beforeFile struct {
	Format     int                `json:"format"`
	Federation string             `json:"federation"`
	Study      *accounting.Budget `json:"study,omitempty"`
	Plan       *accounting.Plan   `json:"plan,omitempty"`
	Ledger     *accounting.Ledger `json:"ledger"`
}

const beforeFormat = 2

// MarshalText returns its only textual form.
func (b *Before) MarshalText() ([]byte, error) {
	f := beforeFile{Format: beforeFormat, Federation: b.Federation, Study: b.Study, Ledger: b.Ledger}
	if b.Study != nil {
		f.Plan = &b.Plan
	}
	text, err := json.MarshalIndent(f, "", " ")
	return append(text, '\n'), err
}

// UnmarshalText reads what MarshalText has written, and refuses any other text with [ErrBefore].
func (b *Before) UnmarshalText(text []byte) error {
	var f beforeFile
	if err := strict.JSON(text, &f); err != nil {
		return fmt.Errorf("%w: %w", ErrBefore, err)
	}
	id, err := hex.DecodeString(f.Federation)
	switch {
	case f.Format != beforeFormat:
		return fmt.Errorf("%w: it is of format %d, this program reads %d", ErrBefore, f.Format,
			beforeFormat)
	case err != nil || len(id) != 32:
		return fmt.Errorf("%w: federation is not an identifier of 64 hexadecimal digits", ErrBefore)
	case f.Ledger == nil || f.Ledger.View() != accounting.ServerView:
		return fmt.Errorf("%w: it has no ledger against the server", ErrBefore)
	case (f.Study == nil) != (f.Plan == nil):
		return fmt.Errorf("%w: a study has a budget and a plan", ErrBefore)
	}
	out := Before{Federation: f.Federation, Study: f.Study, Ledger: f.Ledger}
	if f.Plan != nil {
		out.Plan = *f.Plan
	}
	again, err := out.MarshalText()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBefore, err)
	}
	if !bytes.Equal(again, text) {
		return fmt.Errorf("%w: it is not in the form that programs write", ErrBefore)
	}
	*b = out
	return nil
}

// before reads what was spent before, of the parties of the roster.
func (x *settling) before() (*accounting.Ledger, error) {
	text := x.files.Before
	fail := func(advice, reason string, a ...any) error {
		return x.Mistake("privacy.before", advice, reason, a...)
	}
	switch {
	case text == nil && x.Privacy.Before == "":
		return nil, nil
	case text == nil:
		return nil, fail("provide the file", "its content is not given")
	case x.Privacy.Before == "":
		return nil, fail(`write privacy.before = "before.json"`, "nothing names the file that is given")
	}
	b := new(Before)
	if err := b.UnmarshalText(text); err != nil {
		return nil, fail("have it written by 'hushsumd federation after'", "%v", err)
	}
	if was := b.Ledger.Statement().Unit(); was != x.Unit() {
		return nil, fail("declare a federation without it", "epsilon was of %s before, and is now of %s",
			was.Words(), x.Unit().Words())
	}
	if err := x.goesOn(b); err != nil {
		return nil, err
	}
	var names []string
	for i := range x.files.Roster.Len() {
		names = append(names, x.files.Roster.Name(i))
	}
	// The ledger composes lines as if all were fixed ahead. A study's plan needs no such assumption.
	statement := x.out.promise.Statement(x.Unit()).Assuming(x.assumes() | accounting.AssumesAhead)
	budget, err := accounting.NewBudget(statement, x.Privacy.Epsilon, x.Privacy.Delta)
	if err != nil {
		return nil, fail("", "%v", err)
	}
	own, err := accounting.NewLedger(budget)
	if err == nil {
		err = own.Carry(b.Ledger, names...)
	}
	var differ *accounting.StatementError
	if errors.As(err, &differ) {
		return nil, fail("declare a job that continues none", "rounds were counted %s before, and this "+
			"job's epsilon is %s", differ.One, differ.Other)
	}
	if err != nil {
		return nil, fail("", "%v", err)
	}
	who, most, err := own.Most()
	if err != nil {
		return nil, fail("", "%v", err)
	}
	if over := new(accounting.OverBudget); who != "" && errors.As(most.Within(budget), &over) {
		return nil, x.Mistake("privacy.epsilon", "declare a larger one, or a job that continues none",
			"what %s has spent before is more than this job may spend in all: %s", who, over.Words())
	}
	x.out.before = b
	return own, nil
}

// Before returns what the parties have spent in the jobs that this job continues, nil if it
// continues none. The caller must not change the result.
func (s *Settled) Before() *Before { return s.before }

// sayBefore says what counts of what was spent before.
func (s *Settled) sayBefore() string {
	text := fmt.Sprintf("It continues federation %.16s…, and what was spent until then counts: "+
		"epsilon covers both together", s.before.Federation)
	if s.study == nil {
		text += " (with privacy.study it does not assume that they were fixed ahead)"
	}
	who, most, err := s.budget.Before.Most()
	if err != nil || who == "" {
		return text + ", and of these parties none has spent any."
	}
	return text + fmt.Sprintf(". The most was spent by %s: %v.", who, most)
}

// Limits returns what the party with a key of the roster agrees to, for its guard. Without a key it
// assumes a party that has spent nothing before. It fails with errors of the accountant.
func (s *Settled) Limits(key crypto.PublicKey) (drive.Limits, error) {
	ledger, err := s.Ledger()
	name := ""
	if roster := s.Roster(); roster != nil {
		public, _ := key.(ed25519.PublicKey)
		if i, found := roster.Index(public); found {
			name = roster.Name(i)
		}
	}
	return drive.Limits{
		Account:     name,
		Rounds:      uint64(s.Rounds()),
		Submissions: uint64(s.Submissions()),
		Every:       uint64(len(s.Band())),
		Cost:        s.Round(),
		Ledger:      ledger,
	}, err
}
