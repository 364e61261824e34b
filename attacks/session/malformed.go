package session

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// documented are the errors that refused messages may have.
var documented = []error{protocol.ErrTruncated, protocol.ErrTrailing, protocol.ErrOversized, protocol.ErrVersion, protocol.ErrType,
	protocol.ErrEncoding, protocol.ErrSession, protocol.ErrSender, protocol.ErrDuplicate, protocol.ErrSignature, protocol.ErrPublicKey,
	protocol.ErrOwnKey, protocol.ErrReplay, protocol.ErrStale, protocol.ErrSkip, protocol.ErrParticipants, protocol.ErrTooFew,
	protocol.ErrSurvivors, protocol.ErrCertificate, protocol.ErrPhase}

// probe delivers messages that should be refused to one receiver after the other,
// and keeps count.
type probe struct {
	config    [32]byte
	first     bool // one accepted message of a delivery is enough
	delivered int
	taken     map[wire.Type]int // messages that were not refused, by type
	panics    int
	changes   int // refusals that changed something
	others    int // refusals with errors that are not documented
	refusals  []error
	exact     int   // rounds among all this that came to the right sum
	err       error // of the probe itself
}

func newProbe(config [32]byte) *probe { return &probe{config: config, taken: make(map[wire.Type]int)} }

func (p *probe) takenAll() int {
	sum := 0
	for _, n := range p.taken {
		sum += n
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
func named(m []byte) int {
	h, _, err := wire.ParseHeader(m)
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
		accepted := p.one(receive, m)
		if err == nil && (each || i == len(messages)-1) {
			var after string
			if after, err = snapshot(object, p.config); after != before {
				p.changes += one(!accepted)
				before = after
			}
		}
		if accepted && p.first {
			break
		}
	}
	p.err = errors.Join(p.err, err)
}

func (p *probe) one(receive func([]byte) error, m []byte) (accepted bool) {
	defer func() {
		if recover() != nil {
			p.panics++
		}
	}()
	p.delivered++
	err := receive(m)
	if err == nil {
		kind := wire.Type(0)
		if len(m) > 1 {
			kind = wire.Type(m[1])
		}
		p.taken[kind]++
		return true
	}
	p.refusals = append(p.refusals, err)
	if !slices.ContainsFunc(documented, func(target error) bool { return errors.Is(err, target) }) {
		p.others++
	}
	return false
}

// malformedLayout has bits to fill up.
var malformedLayout = masking.Layout{{Length: 5, Bits: 3}, {Length: 2, Bits: 64}}

// mutation makes messages of a genuine one, none of which is to be accepted.
type mutation func(m []byte, config *protocol.Config) [][]byte

// lengthened has a byte too many.
func lengthened(m []byte, _ *protocol.Config) [][]byte { return [][]byte{append(slices.Clone(m), 0)} }

// oversized is longer than any message of the session.
func oversized(m []byte, config *protocol.Config) [][]byte {
	out := make([]byte, config.MaxMessage()+1)
	copy(out, m)
	return [][]byte{out}
}

// cut ends too early: at every length up to 100 bytes, and at some more, such as
// one byte less than all. A list that is cut between its entries is a shorter list
// and not among them.
func cut(m []byte, _ *protocol.Config) [][]byte {
	entry := map[wire.Type]int{wire.TypeCertificate: 4 + 64, wire.TypeReveal: 4 + 32}[wire.Type(m[1])]
	var out [][]byte
	for n := len(m) - 1; n >= 0; n-- {
		list := entry > 0 && n >= wire.HeaderSize && (n-wire.HeaderSize)%entry == 0
		if !list && (n < 100 || n > len(m)-4 || n%37 == 0) {
			out = append(out, m[:n])
		}
	}
	return out
}

// flip changes one bit.
func flip(m []byte, bit int) []byte {
	out := slices.Clone(m)
	out[bit/8] ^= 1 << (bit % 8)
	return out
}

// headers changes a bit of the header. The round of Begin and Invite and the
// sender of a party's message are not among them: a server may go ahead, and the
// transport says who a party is.
func headers(m []byte, _ *protocol.Config) [][]byte {
	fromServer := binary.BigEndian.Uint32(m[42:]) == wire.ServerIndex
	ahead := wire.Type(m[1]) == wire.TypeBegin || wire.Type(m[1]) == wire.TypeInvite
	var out [][]byte
	for bit := range 8 * wire.HeaderSize {
		switch at := bit / 8; {
		case at >= 34 && at < 42 && ahead, at >= 42 && !fromServer:
		case at >= 3 && at < 33 && bit%5 != 0: // the middle of the session, sometimes
		default:
			out = append(out, flip(m, bit))
		}
	}
	return out
}

// signedKeys changes a bit of a signed key or its signature, from the end.
func signedKeys(m []byte, _ *protocol.Config) [][]byte {
	return flips(m, wire.TypeAnnounce, wire.TypeKeys)
}

// signedLists changes a bit of a signature on the survivors.
func signedLists(m []byte, _ *protocol.Config) [][]byte {
	return flips(m, wire.TypeSigned, wire.TypeCertificate)
}

// flips changes a bit of the body, from the end, of messages of the given types.
func flips(m []byte, types ...wire.Type) [][]byte {
	if !slices.Contains(types, wire.Type(m[1])) {
		return nil
	}
	var out [][]byte
	for bit := 8*len(m) - 1; bit >= 8*wire.HeaderSize; bit -= 13 {
		out = append(out, flip(m, bit))
	}
	return out
}

// encodings writes the same content in another way, or something out of range:
// bits beyond the roster, bits that fill up a vector, lists in another order,
// scalars beyond the field, material for another round.
func encodings(m []byte, config *protocol.Config) [][]byte {
	const head = wire.HeaderSize
	swapped := func(entry int) [][]byte {
		if len(m) < head+2*entry {
			return nil
		}
		out := slices.Clone(m[:head])
		out = append(out, m[head+entry:head+2*entry]...)
		out = append(out, m[head:head+entry]...)
		return [][]byte{append(out, m[head+2*entry:]...)}
	}
	switch wire.Type(m[1]) {
	case wire.TypeBegin:
		return [][]byte{flip(m, 8*(head+32)+config.Roster.Len())}
	case wire.TypeSurvivors:
		return [][]byte{flip(m, 8*head+config.Roster.Len())}
	case wire.TypeMasked:
		out := [][]byte{flip(m, 8*head+15)} // five coordinates of 3 bits
		if config.Recovery != nil {
			round := len(m) - wire.UploadSize(config.Roster.Len()-1)
			out = append(out, flip(m, 8*(round+7)))
		}
		return out
	case wire.TypeUpload:
		return [][]byte{flip(m, 8*(head+7))}
	case wire.TypeCertificate:
		return swapped(4 + 64)
	case wire.TypeReveal:
		large := slices.Clone(m)
		for i := range 32 {
			large[head+4+i] = 0xff
		}
		return append(swapped(4+32), large)
	}
	return nil
}

// empties says that nobody is in a round, in its sum, or behind it.
func empties(m []byte, config *protocol.Config) [][]byte {
	const head = wire.HeaderSize
	set := make([]byte, (config.Roster.Len()+7)/8)
	switch wire.Type(m[1]) {
	case wire.TypeBegin:
		return [][]byte{append(slices.Clone(m[:head+32]), set...)}
	case wire.TypeSurvivors:
		return [][]byte{append(slices.Clone(m[:head]), set...)}
	case wire.TypeCertificate:
		return [][]byte{slices.Clone(m[:head])}
	}
	return nil
}

// naiveReader reads what it takes to be there. It is what panics.
func naiveReader(parties int) func([]byte) error {
	return func(m []byte) error {
		kind, round, body := wire.Type(m[1]), binary.BigEndian.Uint64(m[34:42]), m[46:]
		seen := byte(round)
		switch kind {
		case wire.TypeAnnounce, wire.TypeSigned:
			seen ^= body[63]
		case wire.TypeKeys:
			for i := range parties {
				seen ^= body[(parties+7)/8+96*i+95]
			}
		case wire.TypeBegin:
			seen ^= body[32]
		}
		if seen == 0 {
			return protocol.ErrEncoding
		}
		return nil
	}
}

// malform runs a session of three rounds, in the second of which one party drops
// out, and delivers mutants of what goes to and from two of its parties before the
// genuine message. A weak target gets them until
// it accepts one.
func malform(t target, recovery *protocol.Recovery, mutate mutation) (*probe, error) {
	const n, dropped = 5, 4
	in := randomInputs(1, malformedLayout, n)
	signers, config := attackConfig(n, recovery, 1)
	config.Layout = malformedLayout
	terms, err := textbook.NewTerms(config, 0)
	if err != nil {
		return nil, err
	}
	p := newProbe(terms.Digest)
	p.first = t.without != 0 // so that the session goes on as well as it can
	s, err := t.session(config, signers)
	if err != nil {
		return nil, err
	}
	naive := naiveReader(n)
	s.Carry = func(from, to int, message []byte) []byte {
		if party := max(from, to); party != 0 && party != dropped {
			return message
		}
		mutants := mutate(message, config)
		if t.lacks(textbook.Strict) {
			beside := newProbe(terms.Digest)
			for _, m := range mutants {
				beside.one(naive, m)
			}
			p.panics += beside.panics
		}
		p.deliver(s, to, mutants, true)
		return message
	}
	if err := s.SetUp(); err != nil {
		return p, p.err
	}
	for round := range 3 {
		here, who := slices.Clone(in), upTo(n)
		if round == 1 && recovery != nil {
			here[dropped], who = nil, except(who, dropped)
		}
		sum, err := s.Round(nil, here)
		p.exact += one(err == nil && equal(sum, sumOf(malformedLayout, in, who)))
	}
	return p, p.err
}

// Messages of every type, cut, lengthened and changed, to both sides. Receivers
// that take what they can read accept them, and those that read what they expect
// panic; the others refuse them with a documented error and are as they were.
// Types are counted in a session with recovery, which has ten, and one without.
func malformed(r *runner) {
	for _, c := range []struct {
		name   string
		mutate mutation
		lacks  textbook.Defence
		taken  span // types, where the defence is lacking
		faults span
	}{
		{"cut", cut, textbook.Strict, atLeast(3), atLeast(1)},
		{"a byte too many", lengthened, textbook.Strict, is(14), none},
		// All but Reveal, of which the zeros are owners out of order.
		{"too long for any", oversized, textbook.Strict, is(13), none},
		{"a bit of the header", headers, textbook.Strict, is(14), none},
		{"a bit of a signed key", signedKeys, textbook.KeySignatures | textbook.OwnKey, is(4), none},
		{"a bit of a signed list", signedLists, textbook.Certificates, is(2), none},
		{"another encoding", encodings, textbook.Strict, atLeast(2), none},
		{"nobody in it", empties, textbook.Participants | textbook.Lists | textbook.Quorum, atLeast(2), none},
	} {
		r.compare(c.name, c.lacks, func(t target) (figures, error) {
			delivered, taken, faults, exact := 0, 0, 0, 0
			for _, recovery := range []*protocol.Recovery{nil, {MinSurvivors: 4}} {
				p, err := malform(t, recovery, c.mutate)
				if err != nil {
					return figures{}, err
				}
				delivered, taken, faults, exact = delivered+p.delivered, taken+len(p.taken), faults+p.faults(), exact+p.exact
				for _, err := range p.refusals {
					// What is too long must be refused before it is read.
					faults += one(c.name == "too long for any" && !errors.Is(err, protocol.ErrOversized))
				}
			}
			return counts(delivered, taken, faults, exact), nil
		}, metric{"types of messages accepted", c.taken, is(0)}, metric{faultyRefusals, c.faults, is(0)},
			metric{"exact sums in the end, of 6", none, is(6)})
	}
}
