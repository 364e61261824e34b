package protocol

import (
	"bytes"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// The attack tests run every attack twice: against parties that lack one named
// defence, where it has to succeed, and against the real ones. The attackers,
// here and in the other attack files, know messages and what colluders hold, and
// are written without *testing.T so that they can be used elsewhere.

// defence names one thing that stops an attack. A set of them says what a
// weakened party lacks.
type defence uint

const (
	// keySignatures: VerifyKey in Client.receiveKeys.
	keySignatures defence = 1 << iota
	// ownThresholds: that the numbers of the configuration are the party's own,
	// and pass Config.Validate. The test fills in what the server would have.
	ownThresholds
	// everybodyTakesPart: checkParticipants in Client.receiveBegin.
	everybodyTakesPart
	// participantsAgreed: Participants in roundContext.
	participantsAgreed
	// broadcastAgreed: Broadcast in roundContext.
	broadcastAgreed
	// certified: the quorum in Client.receiveCertificate.
	certified
	// majorityQuorum: the quorum in Config.terms; without it t signatures certify,
	// as they would if only thresholds mattered.
	majorityQuorum
	// selfMasked: AddMask of the self mask in Client.Submit.
	selfMasked
	// ratcheted: that a chain key is erased when the chain moves on.
	ratcheted
	// singleUse: that Client.receiveBegin refuses a round that is not ahead.
	singleUse
	// current: that messages of other rounds and sessions are refused
	// (Client.Receive, Client.receiveBegin, Server.receive, Server.checkRound).
	current
)

// attackParty is a party as attackers see it.
type attackParty interface {
	Announce() []byte
	Receive(message []byte) ([]byte, error)
	Submit(broadcast []byte, values ...[]uint64) ([]byte, error)
}

// weakClient is a Client that lacks some defences and is otherwise the real code.
type weakClient struct {
	*Client
	without defence
	kept    map[int][40]byte // without ratchet: every chain as it was after set-up
	drawn   *drawTee         // what the client drew since the last Submit began
}

func (w *weakClient) lacks(d defence) bool { return w.without&d != 0 }

// weaken takes defences out of a client that is not set up yet. Numbers of the
// configuration are changed in a copy, and its digest stays what it was.
func weaken(c *Client, without defence) *weakClient {
	own := *c.config
	c.config = &own
	if without&certified != 0 {
		own.quorum = 0 // len(certificate) < quorum is never true
	}
	if without&majorityQuorum != 0 {
		own.quorum = own.threshold
	}
	if without&ownThresholds != 0 {
		own.threshold, own.quorum, own.minSurvivors = 1, 1, 2
	}
	w := &weakClient{Client: c, without: without, drawn: &drawTee{from: c.random}}
	c.random = w.drawn
	return w
}

func (w *weakClient) Receive(message []byte) ([]byte, error) {
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return nil, err
	}
	switch {
	case h.Type == wire.TypeKeys && w.lacks(keySignatures):
		return w.receiveUnsignedKeys(h, body)
	case h.Type == wire.TypeBegin:
		return nil, w.receiveBegin(message)
	}
	answer, err := w.Client.Receive(message)
	if h.Type == wire.TypeKeys && err == nil {
		w.kept = make(map[int][40]byte)
		for peer, chain := range w.chains {
			w.kept[peer] = chain.Bytes()
		}
	}
	w.unratchet()
	return answer, err
}

// receiveUnsignedKeys is Client.receiveKeys but for the line with VerifyKey.
func (w *weakClient) receiveUnsignedKeys(h wire.Header, body []byte) ([]byte, error) {
	c := w.Client
	keys, err := wire.ParseKeys(body, c.config.parties)
	if err != nil {
		return nil, err
	}
	if keys[c.self] != c.announce {
		return nil, ErrOwnKey
	}
	session := sessionID(h.Session, body)
	topology := newTopology(c.config, session, c.self)
	chains := make(map[int]*keyexchange.Chain)
	for _, i := range topology.peers(c.self) {
		key, err := keyexchange.ParsePublicKey(keys[i].Key[:])
		if err != nil {
			return nil, err
		}
		if chains[i], err = c.key.NewChain(session, c.config.Roster, c.self, i, key); err != nil {
			return nil, err
		}
	}
	c.session, c.topology, c.chains = session, topology, chains
	return c.uploadAfter(0)
}

// receiveBegin lets the client receive a Begin without the checks that it lacks.
func (w *weakClient) receiveBegin(message []byte) error {
	c := w.Client
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return err
	}
	if w.lacks(current) {
		// Whatever the message says, it is taken for the next round of the session.
		h.Session, h.Round = c.session, c.last+1
		message = append(h.Append(nil), body...)
	}
	if w.lacks(singleUse) && h.Round <= c.last {
		c.last = h.Round - 1 // the first two cases of Client.receiveBegin never hold
	}
	w.unratchet()
	begin, err := wire.ParseBegin(body, c.config.parties, func(participants wire.Set) int {
		if !c.config.recovery {
			return 0
		}
		return len(participants.Of(c.topology.neighbours(h.Round, c.self)))
	})
	if err != nil {
		return err
	}
	if w.lacks(everybodyTakesPart) {
		// Client.receiveBegin without checkParticipants, for a session without recovery.
		neighbours := c.topology.neighbours(h.Round, c.self)
		for _, chain := range c.chains {
			if err := chain.Skip(h.Round); err != nil {
				return err
			}
		}
		c.last = h.Round
		c.open = &clientRound{broadcast: begin.Broadcast, participants: begin.Participants,
			context: roundContext(c.session, h.Round, begin), neighbours: begin.Participants.Of(neighbours)}
		return nil
	}
	if _, err := c.Receive(message); err != nil {
		return err
	}
	c.open.context = contextWithout(w.without, c.session, h.Round, begin)
	return nil
}

// contextWithout is roundContext without what is not agreed on.
func contextWithout(without defence, session [32]byte, round uint64, begin *wire.Begin) [32]byte {
	seen := *begin
	if without&broadcastAgreed != 0 {
		seen.Broadcast = [32]byte{}
	}
	if without&participantsAgreed != 0 {
		seen.Participants = wire.NewSet(len(begin.Participants.Bytes()) * 8)
	}
	return roundContext(session, round, &seen)
}

// unratchet puts the chains back to where they began: a client without ratchet
// keeps that key and derives every round's from it.
func (w *weakClient) unratchet() {
	if !w.lacks(ratcheted) {
		return
	}
	for peer, chain := range w.kept {
		w.chains[peer] = keyexchange.RestoreChain(chain)
	}
}

func (w *weakClient) Submit(broadcast []byte, values ...[]uint64) ([]byte, error) {
	w.drawn.bytes = nil
	message, err := w.Client.Submit(broadcast, values...)
	w.unratchet()
	if err != nil || !w.lacks(selfMasked) {
		return message, err
	}
	// The secret of the self mask is the first that Submit draws. Taking its mask
	// off again undoes v.AddMask(&seed) and nothing else.
	secret, err := shamir.RandomSecret(bytes.NewReader(w.drawn.bytes))
	if err != nil {
		return nil, err
	}
	layout := w.config.Layout
	v, err := masking.ParsePacked(layout, message[wire.HeaderSize:wire.HeaderSize+layout.PackedSize()])
	if err != nil {
		return nil, err
	}
	seed := selfMask(secret)
	v.SubMask(&seed)
	rest := message[wire.HeaderSize+layout.PackedSize():]
	return append(v.AppendPacked(message[:wire.HeaderSize:wire.HeaderSize]), rest...), nil
}

// drawTee keeps what is read through it.
type drawTee struct {
	from  io.Reader
	bytes []byte
}

func (r *drawTee) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.bytes = append(r.bytes, b[:n]...)
	return n, err
}

// attackSeed is HUSHSUM_ATTACK_SEED, or 1.
func attackSeed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("HUSHSUM_ATTACK_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("HUSHSUM_ATTACK_SEED: %v", err)
	}
	return seed
}

// attackRandom is a stream from the attack seed, for tests only.
func attackRandom(t testing.TB) io.Reader {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], attackSeed(t))
	return rand.NewChaCha8(seed)
}

// attackLayout has 256·32 + 32·64 = 10,240 bits: unrelated vectors are equal with
// probability 2^-10240, and one 64-bit value of them with 2^-64.
var attackLayout = masking.Layout{{Length: 256, Bits: 32}, {Length: 32, Bits: 64}}

// attackConfig is a session of n parties; recovery may be nil.
func attackConfig(t testing.TB, n int, recovery *Recovery) ([]crypto.Signer, *Config) {
	t.Helper()
	signers, roster := parties(t, n)
	return signers, &Config{Label: "attack", Roster: roster, Layout: attackLayout, Recovery: recovery}
}

// attackTarget makes the parties of a session: real ones, or without a defence.
func attackTarget(t testing.TB, config *Config, signers []crypto.Signer, without defence) []attackParty {
	t.Helper()
	random := attackRandom(t)
	out := make([]attackParty, len(signers))
	for i, signer := range signers {
		c, err := NewClient(config, signer, random)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = c
		if without != 0 {
			out[i] = weaken(c, without)
		}
	}
	return out
}

// insideOf is all that a party holds, which its own colluders and thieves see.
func insideOf(p attackParty) *Client {
	if w, ok := p.(*weakClient); ok {
		return w.Client
	}
	return p.(*Client)
}

// attackResult is what an attacker comes away with.
type attackResult struct {
	of        []int      // whose inputs sum is claimed to be the sum of
	sum       [][]uint64 // nil if nothing came out
	refusals  []error    // of honest parties, in order
	obstacle  error      // why nothing came out
	signatory int        // parties that signed the best supported list of survivors
}

// exact reports whether the claim is true, bit for bit, and of how many values.
func (r *attackResult) exact(layout masking.Layout, in [][][]uint64) (bool, int) {
	values := 0
	for _, s := range layout {
		values += s.Length
	}
	return r.sum != nil && equal(r.sum, sumOf(layout, in, r.of)), values
}

// refusedWith reports whether an honest party refused with the given error.
func (r *attackResult) refusedWith(target error) bool {
	return errors.Is(errors.Join(r.refusals...), target)
}

// mustRecover fails the test unless the sum of the wanted parties came out.
func (r *attackResult) mustRecover(t *testing.T, target string, layout masking.Layout, in [][][]uint64, of ...int) {
	t.Helper()
	exact, values := r.exact(layout, in)
	if !exact || !slices.Equal(r.of, of) {
		t.Fatalf("%s: the attack fails where it has to succeed: %v, refusals %v", target, r.obstacle, r.refusals)
	}
	t.Logf("%s: the inputs of %v recovered exactly (%d of %d values)", target, of, values, values)
}

// mustFail fails the test if anything came out. Nothing is estimated: the
// attacker is a procedure that names what it lacks, so there are no false alarms.
func (r *attackResult) mustFail(t *testing.T, target string, refusal error) {
	t.Helper()
	if r.sum != nil {
		t.Fatalf("%s: the attack gets something", target)
	}
	if refusal != nil && !r.refusedWith(refusal) {
		t.Fatalf("%s: refusals %v, want %v", target, r.refusals, refusal)
	}
	t.Logf("%s: nothing; %s", target, firstLine(r.obstacle, r.refusals))
}

func firstLine(obstacle error, refusals []error) string {
	text := fmt.Sprint(obstacle)
	if len(refusals) > 0 {
		text = fmt.Sprintf("%v; %d refusals, the first: %v", obstacle, len(refusals), refusals[0])
	}
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// looksUniform reports whether the 32-bit segment of a vector is free of
// structure: χ² over the 16 values of its half bytes, 15 degrees of freedom, at
// most 80. A uniform vector fails with probability below 1e-10.
func looksUniform(values []uint64) bool {
	var count [16]float64
	n := 0.0
	for _, x := range values {
		for shift := 0; shift < 32; shift += 4 {
			count[x>>shift&15]++
			n++
		}
	}
	chi := 0.0
	for _, c := range count {
		chi += (c - n/16) * (c - n/16) / (n / 16)
	}
	return chi <= 80
}

// difference is a − b modulo 2^32, over the first segment.
func difference(a, b [][]uint64) []uint64 {
	out := make([]uint64, len(a[0]))
	for i := range out {
		out[i] = (a[0][i] - b[0][i]) & (1<<32 - 1)
	}
	return out
}

// agreements counts equal 64-bit values, over the second segment. Of unrelated
// vectors, any agree with probability 32·2^-64.
func agreements(a, b [][]uint64) int {
	n := 0
	for i := range a[1] {
		if a[1][i] == b[1][i] {
			n++
		}
	}
	return n
}
