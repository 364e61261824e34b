package job

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/accounting"
)

// ErrBefore: the text is not that of a [Before].
var ErrBefore = errors.New("job: this is not a record of what was spent earlier")

// Before records what the parties of a job have spent in jobs that it continues, by their names.
// The file that privacy.before names holds it.
type Before struct {
	Federation string             // of the last of these jobs, 64 hexadecimal digits
	Unit       string             // whom epsilon protects there, as [Job.Protects] has it
	Study      float64            // privacy.study there, 0: none
	Ledger     *accounting.Ledger // against the server
}

// beforeFile is its text.
type beforeFile struct {
	Format     int                `json:"format"`
	Federation string             `json:"federation"`
	Unit       string             `json:"unit"`
	Study      float64            `json:"study,omitempty"`
	Ledger     *accounting.Ledger `json:"ledger"`
}

const beforeFormat = 1

// MarshalText returns its only textual form.
func (b *Before) MarshalText() ([]byte, error) {
	text, err := json.MarshalIndent(beforeFile{beforeFormat, b.Federation, b.Unit,
		b.Study, b.Ledger}, "", " ")
	return append(text, '\n'), err
}

// UnmarshalText reads what MarshalText has written, and refuses any other text with [ErrBefore].
func (b *Before) UnmarshalText(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var f beforeFile
	if err := decoder.Decode(&f); err != nil {
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
	}
	out := Before{f.Federation, f.Unit, f.Study, f.Ledger}
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
	if b.Unit != x.Protects() {
		return nil, fail("declare a federation without it", "epsilon was of %s before, and is now of %s",
			b.Unit, x.Protects())
	}
	if b.Study != 0 && b.Study != x.Privacy.Study {
		return nil, x.Mistake("privacy.study",
			fmt.Sprintf("write %v, as it was, or declare a federation that continues none", b.Study),
			"the study's budget was %v, and here it is %v", b.Study, x.Privacy.Study)
	}
	if c, ok := b.Ledger.Colluders(); ok && c < x.Parties.Colluders {
		return nil, x.Mistake("parties.colluders",
			fmt.Sprintf("write %d or less, or declare a federation that continues none", c),
			"what was spent before was counted against %s, and against %d it was more",
			count(c, "colluder", "colluders"), x.Parties.Colluders)
	}
	var names []string
	for i := range x.files.Roster.Len() {
		names = append(names, x.files.Roster.Name(i))
	}
	target := accounting.Target{Epsilon: x.Privacy.Epsilon, Delta: x.Privacy.Delta}
	own, err := accounting.NewLedger(b.Ledger.View(), target)
	if err == nil {
		err = own.Carry(b.Ledger, names...)
	}
	if err != nil {
		return nil, fail("", "%v", err)
	}
	x.out.before = b
	return own, nil
}

// Before returns what the parties have spent in jobs that this one continues, nil if there are
// none. It is not to be changed.
func (s *Settled) Before() *Before { return s.before }

// sayBefore says what counts of what was spent before.
func (s *Settled) sayBefore() string {
	text := fmt.Sprintf("It continues federation %.16s…, and what was spent until then counts: "+
		"epsilon covers both together", s.before.Federation)
	most, who := 0.0, ""
	ledger := s.budget.Before
	for _, party := range ledger.Clients() {
		if spent, err := ledger.Spent(party); err == nil && spent.Upper > most {
			most, who = spent.Upper, party
		}
	}
	if who == "" {
		return text + ", and of these parties none has spent any."
	}
	return text + fmt.Sprintf(". The most was spent by %s: %v.", who, math.Ceil(1e4*most)/1e4)
}
