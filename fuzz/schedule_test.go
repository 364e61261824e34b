package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// A schedule is a list of operations, one byte each, with the bytes after it as
// arguments. Missing arguments are 0.
type schedule []byte

// The operations.
const (
	opDeliver   = iota // i: message i in transit
	opFlush            // all messages in transit, and their answers
	opDrop             // i
	opDuplicate        // i
	opDelay            // i: put behind all others
	opReplay           // i: message i of all that were ever sent
	opCorrupt          // i, how, position (2 bytes), value
	opCross            // i, change: message i of the other session
	opMisdirect        // i, to: to another receiver
	opCrash            // party, the server after the last
	opKeys
	opBegin // broadcast
	opSubmit
	opSubmitAll
	opSurvivors
	opCertificate
	opSum
	opInvite
	opSkip
	opReadmit // party
	opForge   // i, party, share: well-formed, with other participants or survivors
	opCertify // party: all signatures on what it has signed
	opRound   // absent, stages: a whole round
	opGather  // present: the next round is among these
	operations
)

// mostOperations bounds the work of one input.
const mostOperations = 200

func (s *schedule) next() int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b)
}

// run makes all operations of a schedule.
func (n *network) run(s schedule) {
	for range mostOperations {
		if len(s) == 0 {
			return
		}
		n.operate(s.next()%operations, &s)
		n.pending = n.pending[max(0, len(n.pending)-100):] // the oldest are lost
	}
}

func (n *network) operate(op int, s *schedule) {
	switch op {
	case opDeliver:
		if p, ok := n.take(s.next()); ok {
			n.deliver(p)
		}
	case opFlush:
		n.flush()
	case opDrop:
		n.take(s.next())
	case opDuplicate:
		if p, ok := n.take(s.next()); ok {
			n.pending = append(n.pending, p, p)
		}
	case opDelay:
		if p, ok := n.take(s.next()); ok {
			n.pending = append(n.pending, p)
		}
	case opReplay:
		if i := s.next(); len(n.archive) > 0 {
			n.deliver(n.archive[i%len(n.archive)])
		}
	case opCorrupt:
		if p, ok := n.take(s.next()); ok {
			p.message, p.forged = corrupt(p.message, s), true
			n.pending = append(n.pending, p)
		}
	case opCross:
		p := n.world.foreign[s.next()%len(n.world.foreign)]
		p.forged = true
		if s.next()%2 == 1 && len(p.message) > 34 {
			p.message = bytes.Clone(p.message)
			copy(p.message[2:], n.session[:])
		}
		n.pending = append(n.pending, p)
	case opMisdirect:
		if p, ok := n.take(s.next()); ok {
			p.to, p.forged = s.next()%(n.world.n+1)-1, true
			n.pending = append(n.pending, p)
		}
	case opCrash:
		if party := s.next() % (n.world.n + 1); party < n.world.n {
			n.crash(party)
		} else {
			n.crash(-1)
		}
	case opSubmit:
		a := s.next()
		party := a & 0x7f % n.world.n
		round, _ := n.clients[party].Due()
		broadcast := n.broadcasts[round]
		if a&0x80 != 0 {
			broadcast = []byte("another")
		}
		n.submit(party, broadcast)
	case opSubmitAll:
		n.submitAll()
	case opForge:
		n.forge(s.next(), s.next(), s.next())
	case opCertify:
		n.certify(s.next() % n.world.n)
	case opRound:
		absent, stages := s.next(), s.next()
		n.round(byte(absent), stages&7, stages>>4&7)
	default:
		n.serverStep(op, s)
	}
}

// serverStep has the server do something, due or not.
func (n *network) serverStep(op int, s *schedule) {
	switch op {
	case opKeys:
		n.keys()
	case opBegin:
		n.begin([]byte{byte(s.next())})
	case opSurvivors:
		n.step("Survivors", n.server.Survivors)
	case opCertificate:
		n.step("Certificate", n.server.Certificate)
	case opSum:
		n.sum()
	case opInvite:
		n.step("Invite", n.server.Invite)
	case opSkip:
		n.step("Skip", func() ([]protocol.Envelope, error) { return nil, n.server.Skip() })
	case opReadmit:
		n.server.Readmit(s.next() % n.world.n)
	case opGather:
		bits := s.next()
		var present []int
		for i := range n.world.n {
			if bits>>i&1 == 1 {
				present = append(present, i)
			}
		}
		n.gather(present)
	}
}

// gather has the server begin anew with some parties.
func (n *network) gather(present []int) {
	before := fingerprint(n.server)
	round := n.server.Round()
	envelopes, err := n.server.Gather(present)
	n.logf("server: Gather %v after round %d: %v", present, round, err)
	switch {
	case errors.Is(err, protocol.ErrConfig) || errors.Is(err, protocol.ErrMembers):
		if before != fingerprint(n.server) {
			n.tb.Fatalf("Gather fails with %v, and the state has changed", err)
		}
	case err != nil:
		n.stepFailed(err, before, fingerprint(n.server), false)
	default:
		holders := n.server.Holders()
		for _, i := range holders {
			if !slices.Contains(present, i) || slices.Contains(n.server.Excluded(), i) {
				n.tb.Fatalf("party %d was gathered, and %v were present", i, present)
			}
		}
		if len(holders) < n.world.fewest {
			n.tb.Fatalf("%d parties were gathered, at least %d", len(holders), n.world.fewest)
		}
		n.serve(envelopes)
	}
}

// take takes message i out of transit.
func (n *network) take(i int) (post, bool) {
	if len(n.pending) == 0 {
		return post{}, false
	}
	i %= len(n.pending)
	p := n.pending[i]
	n.pending = append(n.pending[:i:i], n.pending[i+1:]...)
	return p, true
}

// corrupt returns a message that was changed on its way.
func corrupt(message []byte, s *schedule) []byte {
	how, at, value := s.next(), s.next()<<8|s.next(), s.next()
	message = bytes.Clone(message)
	if len(message) == 0 {
		return []byte{byte(value)}
	}
	at %= len(message)
	switch how % 8 {
	case 0, 1:
		message[at] ^= 1 << (value % 8)
	case 2:
		message = message[:at]
	case 3:
		message = append(message, bytes.Repeat([]byte{byte(value)}, 1+at%100)...)
	case 4: // the round
		if len(message) >= wire.HeaderSize {
			round := binary.BigEndian.Uint64(message[34:])
			binary.BigEndian.PutUint64(message[34:], round+uint64(int64(int8(value))))
		}
	case 5: // the sender
		if len(message) >= wire.HeaderSize {
			binary.BigEndian.PutUint32(message[42:], uint32(value%6))
		}
	case 6: // the type
		if len(message) > 1 {
			message[1] = byte(value % 14)
		}
	case 7:
		for i := at; i < min(len(message), at+32); i++ {
			message[i] = byte(value)
		}
	}
	return message
}

// forge changes the participants or survivors in the first such message in
// transit from i on, and its shares so that their number can be right: what a
// cheating server does to split views.
func (n *network) forge(i, party, share int) {
	party %= n.world.n
	for k := range n.pending {
		p := &n.pending[(i+k)%len(n.pending)]
		h, body, err := wire.ParseHeader(p.message)
		if err != nil || p.from >= 0 || h.Type != wire.TypeBegin && h.Type != wire.TypeSurvivors {
			continue
		}
		at := 0
		if h.Type == wire.TypeBegin {
			at = 32
		}
		end := at + (n.world.n+7)/8
		if len(body) < end {
			continue
		}
		forged := append(h.Append(nil), body[:end]...)
		forged[wire.HeaderSize+at+party/8] ^= 1 << (party % 8)
		shares := body[end:]
		cut := share % 8 * wire.SealedShareSize
		switch {
		case share&0x80 != 0 || cut > len(shares):
			forged = append(forged, shares...)
		case !has(body[at:], party):
			forged = append(forged, shares[:cut]...)
			forged = append(forged, make([]byte, wire.SealedShareSize)...)
			forged = append(forged, shares[cut:]...)
		default:
			forged = append(forged, shares[:cut]...)
			forged = append(forged, shares[min(cut+wire.SealedShareSize, len(shares)):]...)
		}
		p.message, p.forged = forged, true
		return
	}
}

// certify sends a party all signatures that were made on the survivors that it
// has signed itself.
func (n *network) certify(party int) {
	var round uint64
	for s := range n.signed {
		if s.party == party {
			round = max(round, s.round)
		}
	}
	own := statement{party, round}
	if n.signed[own] == nil {
		return
	}
	var certificate wire.Certificate
	for i := range n.world.n {
		this := statement{i, round}
		signature := n.once[once{i, wire.TypeSigned, round}]
		if signature != nil && bytes.Equal(n.signed[this], n.signed[own]) &&
			bytes.Equal(n.begun[this], n.begun[own]) {
			certificate = append(certificate, wire.PartySignature{Party: i, Signature: [64]byte(signature)})
		}
	}
	h := wire.Header{Type: wire.TypeCertificate, Session: n.session, Round: round,
		Sender: wire.ServerIndex}
	n.pending = append(n.pending,
		post{from: -1, to: party, message: certificate.Append(h.Append(nil)), forged: true})
}

// keys has the server go on with set-up, as far as it can.
func (n *network) keys() {
	n.ready = n.step("Keys", n.server.Keys) || n.ready
	n.step("Members", n.server.Members)
}

// exchangeKeys completes the set-up, whatever was lost of it.
func (n *network) exchangeKeys() {
	n.flush()
	for range 3 { // announcements, ciphertexts, and what ends set-up
		if !slices.Contains(n.hasKeys, false) {
			return
		}
		if n.server.Enrolled() == nil {
			for _, i := range n.server.Missing() {
				n.send(i, n.clients[i].Announce())
				n.send(i, n.clients[i].Output())
			}
			n.flush()
		}
		n.keys() // for those who have not been heard of: some may refuse it
		n.flush()
	}
}

// The stages of a round.
const (
	stageInvite = iota
	stageBegin
	stageMasked
	stageSurvivors
	stageCertificate
	stageSum
	lastStage = stageSum
)

// round runs a round up to the last of the given stages. From stage first on,
// the parties whose bit is set in absent neither get nor send anything. It
// reports whether there was a sum.
func (n *network) round(absent byte, first, last int) bool {
	for stage := range min(last, lastStage) + 1 {
		ok := true
		switch stage {
		case stageInvite:
			n.step("Invite", n.server.Invite) // not due while a round is open
		case stageBegin:
			ok = n.begin([]byte{byte(n.server.Round())})
		case stageMasked:
			n.submitAll()
		case stageSurvivors:
			ok = n.world.config.Recovery == nil || n.step("Survivors", n.server.Survivors)
		case stageCertificate:
			ok = n.world.config.Recovery == nil || n.step("Certificate", n.server.Certificate)
		case stageSum:
			return n.sum()
		}
		if !ok {
			return false
		}
		gone := absent
		if stage < first {
			gone = 0
		}
		for len(n.pending) > 0 {
			p, _ := n.take(0)
			if party := max(p.from, p.to); party < 0 || gone>>party&1 == 0 {
				n.deliver(p)
			}
		}
	}
	return false
}

// submitAll has all parties submit that a round waits for.
func (n *network) submitAll() {
	for i, c := range n.clients {
		if round, due := c.Due(); due {
			n.submit(i, n.broadcasts[round])
		}
	}
}

// endRound has the server end the round that is open, if any.
func (n *network) endRound() {
	n.step("Survivors", n.server.Survivors)
	n.step("Certificate", n.server.Certificate)
	n.sum()
}
