package fuzz

import (
	"bytes"
	"errors"
	"math/bits"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// What must hold throughout a session, whatever is done to its messages:
//
//   - no call panics, and every error is one of the documented;
//   - a message that is refused, and a call that is not due, change nothing;
//   - a client takes part only with enough others and signs only survivors who
//     took part, enough of them, and itself;
//   - a client masks once a round, signs one statement a round, reveals one set
//     of shares a round, and makes one recovery upload for a round;
//   - of no party are both secrets of a round revealed by a threshold of holders
//     each; under a cheating server's thresholds, all who reveal in a round
//     reveal for the same survivors in the same context;
//   - a sum is that of the inputs of Included, exactly, with the exceptions at
//     [network.summed];
//   - who crashes comes back the same;
//   - as long as nothing forged was accepted, nobody is excluded and the session
//     can go on: see [network.recover].

// record holds what the checks remember of a session.
type record struct {
	ready      bool   // the server has sent the keys
	hasKeys    []bool // by party
	session    [32]byte
	tampered   bool // something forged was accepted
	broadcasts map[uint64][]byte
	heads      map[uint64][]byte     // the server's own Begin: broadcast and participants
	divergent  map[uint64]bool       // a client accepted another
	garbled    map[uint64]bool       // a packed vector was accepted that its sender did not make
	once       map[once][]byte       // what may be sent only once
	begun      map[statement][]byte  // the head of the Begin that a party accepted
	signed     map[statement][]byte  // the survivors that it signed
	revealers  map[uint64][]revealer // by round
}

type once struct {
	party int
	kind  wire.Type
	round uint64
}

type statement struct {
	party int
	round uint64
}

// revealer is a party that has revealed, and what of.
type revealer struct {
	party           int
	head, survivors []byte
	owners          []int
}

func newRecord(w *world) record {
	return record{
		hasKeys: make([]bool, w.n), broadcasts: map[uint64][]byte{}, heads: map[uint64][]byte{},
		divergent: map[uint64]bool{}, garbled: map[uint64]bool{}, once: map[once][]byte{},
		begun: map[statement][]byte{}, signed: map[statement][]byte{}, revealers: map[uint64][]revealer{},
	}
}

// documented lists the errors that Receive, Submit and the server's steps may
// answer with.
var documented = []error{
	protocol.ErrTruncated, protocol.ErrTrailing, protocol.ErrOversized, protocol.ErrVersion,
	protocol.ErrType, protocol.ErrEncoding, protocol.ErrSession, protocol.ErrSender,
	protocol.ErrDuplicate, protocol.ErrSignature, protocol.ErrPublicKey, protocol.ErrOwnKey,
	protocol.ErrReplay, protocol.ErrStale, protocol.ErrSkip, protocol.ErrParticipants,
	protocol.ErrTooFew, protocol.ErrMembers, protocol.ErrEncapsulationKey, protocol.ErrSurvivors,
	protocol.ErrCertificate, protocol.ErrPhase,
}

// documentedSteps lists those of the server's steps and of Submit.
var documentedSteps = []error{
	protocol.ErrPhase, protocol.ErrTooFew, protocol.ErrMissing, protocol.ErrMaterial,
	protocol.ErrBroadcast,
}

// refused is called after a message was refused.
func (n *network) refused(p post, err error, before, after string) {
	n.tb.Helper()
	if !isOneOf(err, documented) {
		n.tb.Fatalf("%d answers with an undocumented error: %v", p.to, err)
	}
	if before != after {
		n.tb.Fatalf("%d refuses a message with %v, and its state has changed", p.to, err)
	}
	var party *protocol.PartyError
	if p.to < 0 && p.from >= 0 && (!errors.As(err, &party) || party.Party != p.from) {
		n.tb.Fatalf("the server does not name party %d: %v", p.from, err)
	}
}

// stepFailed is called after a call failed. Calls that are not due, and all of a
// client's, change nothing.
func (n *network) stepFailed(err error, before, after string, client bool) {
	n.tb.Helper()
	if !isOneOf(err, documentedSteps) {
		n.tb.Fatalf("a step fails with an undocumented error: %v", err)
	}
	if before != after && (client || errors.Is(err, protocol.ErrPhase)) {
		n.tb.Fatalf("a step fails with %v, and the state has changed", err)
	}
	if errors.Is(err, protocol.ErrMaterial) && !n.tampered {
		n.tb.Fatalf("nothing was forged: %v", err)
	}
}

// served is called for every message that the server makes.
func (n *network) served(e protocol.Envelope) {
	h, body, err := wire.ParseHeader(e.Message)
	if err != nil || h.Sender != wire.ServerIndex || len(e.Message) > n.world.config.MaxMessage() {
		n.tb.Fatalf("the server sends %d bytes that no client would take: %v", len(e.Message), err)
	}
	if !h.Type.SetUp() {
		n.session = h.Session
	}
	if h.Type == wire.TypeBegin {
		n.heads[h.Round] = n.head(body)
	}
}

// head returns what all participants of a round are told alike.
func (n *network) head(begin []byte) []byte { return bytes.Clone(begin[:32+(n.world.n+7)/8]) }

// sent is called for every message that a party makes.
func (n *network) sent(party int, message []byte) {
	n.tb.Helper()
	h, body, err := wire.ParseHeader(message)
	if err != nil || h.Sender != uint32(party) || len(message) > n.world.config.MaxMessage() {
		n.tb.Fatalf("party %d sends %d bytes that the server would not take: %v", party, len(message),
			err)
	}
	this := once{party, h.Type, h.Round}
	content := body
	if h.Type == wire.TypeUpload {
		n.uploaded(party, body)
		return
	}
	if before, again := n.once[this]; again {
		if !bytes.Equal(before, content) {
			n.tb.Fatalf("party %d sends two different messages of type %d in round %d", party, h.Type,
				h.Round)
		}
		return
	}
	n.once[this] = bytes.Clone(content)
	switch h.Type {
	case wire.TypeMasked:
		if n.world.config.Recovery != nil {
			n.uploaded(party, n.upload(party, body))
		}
	case wire.TypeReveal:
		n.reveals(party, h.Round, body)
	}
}

// upload checks what a submission ends with, for as many neighbours as were gathered last;
// before it are shares for those of them who take part. No two such have one length.
func (n *network) upload(party int, masked []byte) []byte {
	n.tb.Helper()
	size := n.world.config.Layout.PackedSize()
	for next := n.world.degree; next > 0; next-- {
		for shares := range n.world.degree + 1 {
			if wire.MaskedSize(size, shares, next) == len(masked) {
				return masked[len(masked)-wire.UploadSize(next):]
			}
		}
	}
	n.tb.Fatalf("party %d submits %d bytes", party, len(masked))
	return nil
}

// uploaded checks that a party makes one upload for a round.
func (n *network) uploaded(party int, body []byte) {
	n.tb.Helper()
	degree := 1 // that of a round of as many parties as were gathered
	for degree < n.world.degree && wire.UploadSize(degree) < len(body) {
		degree++
	}
	if degree != n.world.degree && degree < n.world.fewest-1 {
		n.tb.Fatalf("party %d makes an upload for %d neighbours", party, degree)
	}
	m, err := wire.ParseUpload(body, degree)
	if err != nil {
		n.tb.Fatalf("party %d makes an upload that does not parse: %v", party, err)
	}
	this := once{party, wire.TypeUpload, m.Round}
	if before, again := n.once[this]; again && !bytes.Equal(before, body) {
		n.tb.Fatalf("party %d makes two uploads for round %d", party, m.Round)
	}
	n.once[this] = bytes.Clone(body)
}

// reveals checks what a party reveals for the first time in a round.
func (n *network) reveals(party int, round uint64, body []byte) {
	n.tb.Helper()
	w := n.world
	this := statement{party, round}
	shares, err := wire.ParseReveal(body, w.n)
	if err != nil {
		n.tb.Fatalf("party %d reveals what does not parse: %v", party, err)
	}
	if n.begun[this] == nil || n.signed[this] == nil {
		n.tb.Fatalf("party %d reveals in round %d, of which it has no participants or survivors", party,
			round)
	}
	if n.once[once{party, wire.TypeMasked, round}] == nil ||
		n.once[once{party, wire.TypeSigned, round}] == nil {
		n.tb.Fatalf("party %d reveals in round %d, in which it did not submit and sign", party, round)
	}
	r := revealer{party: party, head: n.begun[this], survivors: n.signed[this]}
	for _, share := range shares {
		if share.Owner == party || !has(r.head[32:], share.Owner) {
			n.tb.Fatalf("party %d reveals a share of party %d, which is itself or did not take part", party,
				share.Owner)
		}
		r.owners = append(r.owners, share.Owner)
	}
	n.revealers[round] = append(n.revealers[round], r)
	recovery := w.config.Recovery
	if recovery.Adversary == protocol.CheatingServer {
		first := n.revealers[round][0]
		if !bytes.Equal(first.head, r.head) || !bytes.Equal(first.survivors, r.survivors) {
			n.tb.Fatalf("parties %d and %d reveal in round %d for different survivors or contexts",
				first.party, party, round)
		}
	}
	if 2*recovery.Threshold <= w.degree {
		return // not made for messages that are forged
	}
	for owner := range w.n {
		var self, pair int
		for _, r := range n.revealers[round] {
			switch {
			case !slices.Contains(r.owners, owner):
			case has(r.survivors, owner):
				self++
			default:
				pair++
			}
		}
		if self >= recovery.Threshold && pair >= recovery.Threshold {
			n.tb.Fatalf("in round %d both secrets of party %d are revealed, by %d and %d holders", round,
				owner, self, pair)
		}
	}
}

func has(set []byte, party int) bool { return set[party/8]>>(party%8)&1 == 1 }

// members counts a set.
func members(set []byte) int {
	sum := 0
	for _, b := range set {
		sum += bits.OnesCount8(b)
	}
	return sum
}

// clientTook is called after a client accepted a message.
func (n *network) clientTook(p post) {
	h, body, err := wire.ParseHeader(p.message)
	if err != nil {
		n.tb.Fatalf("party %d takes a message without a header", p.to)
	}
	if n.isForged(p) {
		n.tampered = true
	}
	this := statement{p.to, h.Round}
	switch h.Type {
	case wire.TypeKeys:
		n.hasKeys[p.to] = n.world.config.Classical
	case wire.TypeMembers:
		n.hasKeys[p.to] = true
	case wire.TypeBegin:
		if n.begun[this] != nil {
			n.tb.Fatalf("party %d begins round %d twice", p.to, h.Round)
		}
		head := n.head(body)
		if !has(head[32:], p.to) || members(head[32:]) < n.least() {
			n.tb.Fatalf("party %d begins round %d with %d participants, at least %d and itself", p.to,
				h.Round, members(head[32:]), n.least())
		}
		n.begun[this] = head
	case wire.TypeSurvivors:
		if n.signed[this] != nil {
			n.tb.Fatalf("party %d takes two lists of survivors in round %d", p.to, h.Round)
		}
		survivors := bytes.Clone(body[:(n.world.n+7)/8])
		if !has(survivors, p.to) || members(survivors) < n.least() {
			n.tb.Fatalf("party %d signs %d survivors, at least %d and itself", p.to, members(survivors),
				n.least())
		}
		for i := range n.world.n {
			if has(survivors, i) && !has(n.begun[this][32:], i) {
				n.tb.Fatalf("party %d signs survivors with party %d, who did not take part", p.to, i)
			}
		}
		n.signed[this] = survivors
	}
}

// isForged reports whether the receiver was sent anything else than this.
func (n *network) isForged(p post) bool {
	return p.forged && !slices.ContainsFunc(n.archive, func(a post) bool {
		return a.to == p.to && bytes.Equal(a.message, p.message)
	})
}

// serverTook is called after the server accepted a message.
func (n *network) serverTook(p post) {
	h, body, err := wire.ParseHeader(p.message)
	if err != nil {
		n.tb.Fatal("the server takes a message without a header")
	}
	if n.isForged(p) {
		n.tampered = true
	}
	if h.Type != wire.TypeMasked {
		return
	}
	if int(h.Sender) != p.from {
		n.tb.Fatalf("the server takes from party %d what names party %d", p.from, h.Sender)
	}
	party, size := int(h.Sender), n.world.config.Layout.PackedSize()
	own := n.once[once{party, wire.TypeMasked, h.Round}]
	if own == nil || !bytes.Equal(own[:size], body[:size]) {
		n.garbled[h.Round] = true
	}
	if !bytes.Equal(n.begun[statement{party, h.Round}], n.heads[h.Round]) {
		n.divergent[h.Round] = true
	}
}

// input returns what a party submits for a round.
func (n *network) input(party int, round uint64) [][]uint64 {
	values := make([][]uint64, len(n.world.config.Layout))
	for j, s := range n.world.config.Layout {
		for k := range s.Length {
			x := (uint64(party)*0x9e3779b97f4a7c15 + round*0xd1342543de82ef95 +
				uint64(k+1)) * 0xbf58476d1ce4e5b9
			values[j] = append(values[j], x>>(64-s.Bits))
		}
	}
	return values
}

// least is the fewest parties that there may be in a sum.
func (n *network) least() int {
	r := n.world.config.Recovery
	switch {
	case r == nil:
		return n.world.fewest
	case r.Adversary == protocol.CheatingServer: // a quorum, without colluders
		return max(r.Threshold+1, r.MinSurvivors, n.world.fewest/2+1)
	}
	return max(r.Threshold+1, r.MinSurvivors)
}

// summed checks a sum. A sum can be wrong without anybody noticing if a packed
// vector was changed on its way; and if parties were told different things in a
// session that is not made for a cheating server.
func (n *network) summed(sum [][]uint64) {
	n.tb.Helper()
	round, included := n.server.Round(), n.server.Included()
	config := n.world.config
	if len(included) < n.least() {
		n.tb.Fatalf("a sum of %d parties, of at least %d", len(included), n.least())
	}
	cheating := config.Recovery != nil && config.Recovery.Adversary == protocol.CheatingServer
	if n.garbled[round] || n.divergent[round] && !cheating {
		return
	}
	want, err := masking.NewVector(config.Layout)
	if err != nil {
		n.tb.Fatal(err)
	}
	for _, party := range included {
		v, err := masking.FromValues(config.Layout, n.input(party, round)...)
		if err != nil {
			n.tb.Fatal(err)
		}
		if err := want.AddPacked(v.AppendPacked(nil)); err != nil {
			n.tb.Fatal(err)
		}
	}
	if !slices.EqualFunc(sum, want.Values(), slices.Equal) {
		n.tb.Fatalf("round %d: a wrong sum of %v was accepted: %v, want %v", round, included, sum,
			want.Values())
	}
}

// recover is the end of every session in which nothing forged was accepted:
// however messages were lost, reordered and refused, and whoever crashed, the
// next round has everybody in it whom the session is among.
func (n *network) recover() {
	if e := n.server.Excluded(); n.tampered || len(e) != 0 {
		if !n.tampered {
			n.tb.Fatalf("honest parties are excluded: %v", e)
		}
		return
	}
	n.logf("from here on all is well")
	n.pending = nil
	n.exchangeKeys()
	n.endRound()
	n.pending = nil
	want := n.world.scheduled
	if n.world.fewest < want {
		want = len(n.server.Enrolled()) // who came late is not in the session
		if n.world.config.Recovery != nil {
			n.gather(n.server.Enrolled())
			n.flush()
		}
	}
	if !n.round(0, 0, lastStage) {
		n.tb.Fatal("the session does not recover")
	}
	if got := len(n.server.Included()); got != want {
		n.tb.Fatalf("after the session recovers a sum is of %d parties, want %d", got, want)
	}
}
