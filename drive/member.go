package drive

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

// MemberConfig holds what a member of a committee knows before it helps.
type MemberConfig struct {
	Sums     *oneshot.Config
	Rounds   uint64        // of the job: none above is answered
	Spent    uint64        // the last that a member which has lost its state may have helped in
	Identity crypto.Signer // Ed25519, of the committee
	Random   io.Reader     // nil: crypto/rand
}

// Member is one member of a committee. As with a [Party], the consequences of events come out in
// two steps: Ready says what has to be durable first, and Advance hands out the messages that
// leave.
type Member struct {
	config  MemberConfig
	of      *oneshot.Member
	unsaved bool
	shown   bool
	send    [][]byte
	reports []Report
}

// NewMember makes a member that has helped in no round. It fails with oneshot.ErrConfig and
// oneshot.ErrIdentity.
func NewMember(c MemberConfig) (*Member, error) {
	of, err := oneshot.NewMember(c.Sums, c.Identity, c.Random)
	if err != nil {
		return nil, err
	}
	return &Member{config: c, of: of}, nil
}

// LoadMember restores the member that [Member.State] saved under key. It fails with the errors of
// oneshot.LoadMember.
func LoadMember(c MemberConfig, key *keyexchange.SealKey, state []byte) (*Member, error) {
	of, err := oneshot.LoadMember(c.Sums, c.Identity, c.Random, key, state)
	if err != nil {
		return nil, err
	}
	return &Member{config: c, of: of}, nil
}

// State returns the bytes from which LoadMember restores the member.
func (m *Member) State(key *keyexchange.SealKey) ([]byte, error) { return m.of.Save(key) }

// Told returns the last round that was opened to the member, or may have been. Its carrier reports
// that number on connecting.
func (m *Member) Told() uint64 { return max(m.of.Opened(), m.config.Spent) }

// Connected has the last answer sent again, because it may never have arrived.
func (m *Member) Connected() {
	m.shown = false
	m.again()
}

// again sends the last answer once more: who has had it refuses the copy.
func (m *Member) again() {
	last := m.of.Output()
	if last != nil && (len(m.send) == 0 || !bytes.Equal(m.send[len(m.send)-1], last)) {
		m.send = append(m.send, last)
	}
}

// Receive takes a message of the coordinator. A message that is refused is reported, and changes
// nothing.
func (m *Member) Receive(message []byte) {
	m.shown = false
	h, _, err := wire.ParseHeader(message)
	if err == nil && h.Round > m.config.Rounds {
		err = fmt.Errorf("%w: %d of %d", ErrRound, h.Round, m.config.Rounds)
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
		m.reports = append(m.reports, Report{Kind: Refused, Round: h.Round, Err: err})
		return
	}
	m.unsaved = true
	if answer != nil {
		m.send = append(m.send, answer)
	}
}

// Finish forgets the keys of an open round, because the job is over.
func (m *Member) Finish() {
	m.of.Abandon()
	m.unsaved, m.shown, m.send = true, false, nil
}

// Ready returns what has to be done before anything leaves, and whether there is anything at all.
func (m *Member) Ready() (Ready, bool) {
	m.shown = true
	r := Ready{Save: m.unsaved, Reports: m.reports}
	return r, m.unsaved || len(m.reports) > 0 || len(m.send) > 0
}

// Advance is called when the state is durable, if Ready reported that it is new. It returns what
// may leave now: nothing, if there was an event since.
func (m *Member) Advance() (send [][]byte) {
	if !m.shown {
		return nil
	}
	send = m.send
	m.send, m.reports, m.unsaved, m.shown = nil, nil, false, false
	return send
}
