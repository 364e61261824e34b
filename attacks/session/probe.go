package session

import (
	"errors"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// documented are the errors that refused messages may have.
var documented = []error{
	protocol.ErrTruncated,
	protocol.ErrTrailing,
	protocol.ErrOversized,
	protocol.ErrVersion,
	protocol.ErrType,
	protocol.ErrEncoding,
	protocol.ErrSession,
	protocol.ErrSender,
	protocol.ErrDuplicate,
	protocol.ErrSignature,
	protocol.ErrPublicKey,
	protocol.ErrOwnKey,
	protocol.ErrReplay,
	protocol.ErrStale,
	protocol.ErrSkip,
	protocol.ErrParticipants,
	protocol.ErrTooFew,
	protocol.ErrSurvivors,
	protocol.ErrCertificate,
	protocol.ErrPhase,
}

// isDocumented reports whether a refusal has one of those errors.
func isDocumented(err error) bool {
	return slices.ContainsFunc(documented, func(target error) bool {
		return errors.Is(err, target)
	})
}

// probe delivers messages that should be refused to one receiver after the other,
// and keeps count.
type probe struct {
	config    [32]byte // its digest
	first     bool     // one accepted message of a delivery is enough
	delivered int
	taken     map[wire.Type]int // messages that were not refused, by type
	panics    int
	changes   int // refusals that changed something
	others    int // refusals with errors that are not documented
	refusals  []error
	exact     int   // rounds among all this that came to the right sum
	err       error // of the probe itself
}

// newProbe returns a probe for sessions of a configuration with the given digest.
func newProbe(config [32]byte) *probe {
	return &probe{config: config, taken: make(map[wire.Type]int)}
}

// takenAll counts the messages that were not refused.
func (p *probe) takenAll() int {
	sum := 0
	for _, count := range p.taken {
		sum += count
	}
	return sum
}

// faultyRefusals is the metric of probe.faults: panics, changes of state, errors
// that are not documented.
const faultyRefusals = "faulty refusals"

// faults are refusals as no refusal should be.
func (p *probe) faults() int { return p.panics + p.changes + p.others }

// named is the party that a message names as its sender, or party 0: what comes
// from another is refused for that alone.
func named(message []byte) int {
	h, _, err := wire.ParseHeader(message)
	if err != nil || int32(h.Sender) < 0 {
		return 0
	}
	return int(h.Sender)
}

// receiver is a party of a session, or its server, which is party -1.
func receiver(s *textbook.Session, to int) (any, func([]byte) error) {
	if to < 0 {
		return s.Server, func(m []byte) error { return s.Server.Receive(named(m), m) }
	}
	return s.Clients[to], func(m []byte) error {
		answer, err := s.Clients[to].Receive(m)
		if answer != nil && s.Server != nil {
			_ = s.ToServer(to, answer) // of a party that is taken in; refusals are noted
		}
		return err
	}
}

// deliver gives messages to a receiver of a session. What is refused must leave it
// as it was; that is looked at after each, or after all of them.
func (p *probe) deliver(s *textbook.Session, to int, messages [][]byte, each bool) {
	object, receive := receiver(s, to)
	before, err := snapshot(object, p.config)
	for i, m := range messages {
		accepted := p.deliverOne(receive, m)
		if err == nil && (each || i == len(messages)-1) {
			var after string
			if after, err = snapshot(object, p.config); after != before {
				p.changes += indicator(!accepted)
				before = after
			}
		}
		if accepted && p.first {
			break
		}
	}
	p.err = errors.Join(p.err, err)
}

// deliverOne gives a message to a receiver, and notes what comes of it.
func (p *probe) deliverOne(receive func([]byte) error, message []byte) (accepted bool) {
	defer func() {
		if recover() != nil {
			p.panics++
		}
	}()
	p.delivered++
	err := receive(message)
	if err == nil {
		kind := wire.Type(0)
		if len(message) > 1 {
			kind = wire.Type(message[1])
		}
		p.taken[kind]++
		return true
	}
	p.refusals = append(p.refusals, err)
	p.others += indicator(!isDocumented(err))
	return false
}
