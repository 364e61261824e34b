package drive

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

// member is one member of a committee.
type member struct {
	common
	of *oneshot.Member
}

var _ Part = (*member)(nil)

// newMember makes a member that has helped in no round. It fails with oneshot.ErrConfig and
// oneshot.ErrIdentity.
func newMember(c PartSettings) (*member, error) {
	of, err := oneshot.NewMember(c.Sums, c.Identity, c.Random)
	if err != nil {
		return nil, err
	}
	return &member{begun(c), of}, nil
}

// memberState is the saved form of a member.
type memberState struct {
	Format int
	Spent  uint64
	Member []byte // of oneshot.Member.Save
}

const memberFormat = 1

// loadMember restores the member that Save saved under key. It fails with [ErrState], and with the
// errors of oneshot.LoadMember.
func loadMember(c PartSettings, key *keyexchange.SealKey, state []byte) (*member, error) {
	var in memberState
	if err := gob.NewDecoder(bytes.NewReader(state)).Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if in.Format != memberFormat {
		return nil, fmt.Errorf("%w: it is of format %d, want %d", ErrState, in.Format, memberFormat)
	}
	of, err := oneshot.LoadMember(c.Sums, c.Identity, c.Random, key, in.Member)
	if err != nil {
		return nil, err
	}
	m := &member{common{config: c}, of}
	m.config.Spent = max(c.Spent, in.Spent)
	m.unsaved = c.Spent > in.Spent
	return m, nil
}

// Save is described with [Part].
func (m *member) Save(key *keyexchange.SealKey) (out Saved, err error) {
	member, err := m.of.Save(key)
	if err != nil {
		return out, err
	}
	out.State, err = encoded(memberState{memberFormat, m.config.Spent, member})
	return out, err
}

// Hello is described with [Part]. Told is the last round that was opened to the member, or may have
// been.
func (m *member) Hello() Hello {
	told := max(m.of.Opened(), m.config.Spent)
	return Hello{Least: told + 1, Told: told}
}

// Connected is described with [Part].
func (m *member) Connected() {
	m.shown = false
	m.again()
}

// again sends the last answer once more: who has had it refuses the copy.
func (m *member) again() {
	last := m.of.Output()
	send := m.out.Send
	if last != nil && (len(send) == 0 || !bytes.Equal(send[len(send)-1].Bytes, last)) {
		m.out.Send = append(send, Message{Bytes: last})
	}
}

// Receive is described with [Part]. Once the job is over the keys of an open round are forgotten.
func (m *member) Receive(in Item) error {
	m.shown = false
	switch in.Kind {
	case Carry:
		m.receive(in.Message())
	case Last:
		m.of.Abandon()
		m.unsaved, m.over, m.out.Send = true, true, nil
	default:
		return errItem(in)
	}
	return nil
}

// receive takes a message of the coordinator. A message that is refused is reported, and changes
// nothing.
func (m *member) receive(message []byte) {
	h, _, err := wire.ParseHeader(message)
	if err == nil && h.Round > m.config.Limits.Rounds {
		err = fmt.Errorf("%w: %d of %d", ErrRound, h.Round, m.config.Limits.Rounds)
	} else if err == nil && h.Round <= m.config.Spent {
		err = fmt.Errorf("%w: %d, and rounds up to %d are spent", ErrRepeated, h.Round, m.config.Spent)
	}
	var answer []byte
	if err == nil {
		answer, err = m.of.Receive(message)
	}
	switch {
	case errors.Is(err, oneshot.ErrDuplicate), errors.Is(err, oneshot.ErrPhase):
		// It comes again after a break, and the answer to it may not have arrived.
		m.again()
		return
	case errors.Is(err, oneshot.ErrLost):
		return
	case err != nil:
		m.report(Refused, 0, h.Round, err)
		return
	}
	m.unsaved = true
	if answer != nil {
		m.out.Send = append(m.out.Send, Message{Bytes: answer})
	}
}

// The program of a member is asked for nothing.

// Answer is described with [Part].
func (m *member) Answer(Answer) error { return nil }

// Instant is described with [Part].
func (m *member) Instant(Answer) error { return nil }

// Finished is described with [Part].
func (m *member) Finished(AskID) {}

// Absent is described with [Part].
func (m *member) Absent(AskID, uint64, error) {}

// Ready is described with [Part].
func (m *member) Ready() (Ready, bool) { return m.prepare(nil) }

// Advance is described with [Part].
func (m *member) Advance() Out { return m.advance() }

// Object is described with [Part].
func (m *member) Object(string) io.WriterTo { return nil }

// Guard is described with [Part].
func (m *member) Guard() *Guard { return nil }

// Erase is described with [Part].
func (m *member) Erase() { m.of.Abandon() }
