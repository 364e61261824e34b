package oblivious

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/protocol"
)

// maxSkip is how many rounds [Transfer.Begin] may pass over, one derivation each.
const maxSkip = 1000

// Transfer is one party's side of the option: a deterministic state machine, bytes in and bytes
// out. Once per session, [Transfer.Setup] makes a message for every peer; in each round,
// [Transfer.Begin] makes one for every peer, [Transfer.Receive] answers those of the peers, and
// [Transfer.Correction] returns what the party adds to its input. The caller carries the
// messages, over any channel.
//
// It is not safe for concurrent use and cannot be saved: a party that loses it
// starts a new session.
type Transfer struct {
	config Config
	digest [32]byte
	party  int
	random io.Reader
	terms  filler // nil for coins
	peers  []*peer

	stage stage
	round uint64 // the open round, or the last one
	at    uint64 // the round that the keys are of
	sum   []uint64
	dead  error // why the session is over
}

type stage int

const (
	stageNew   stage = iota // before Setup
	stageSetup              // set-up messages of peers are missing
	stageIdle               // between rounds
	stageRound              // a round is open
)

// peer holds all that a party shares with another.
type peer struct {
	chain [32]byte // replaced every round

	// During set-up.
	base  *baseReceiver // of the transfers to the peer
	other *baseSender   // of the transfers from it
	ready bool          // the peer's set-up message came

	offers extSender   // transfers to the peer
	takes  extReceiver // transfers from it

	// In a round.
	answered bool     // its choices came and were answered
	taken    bool     // its offer came
	choices  []byte   // bits
	pads     []uint64 // of the chosen terms
}

// channel is the key of a message. Each key seals only one message.
func (p *peer) channel(h header) *keyexchange.SealKey {
	info := append([]byte(labels.ObliviousChannel), byte(h.kind))
	key := keyexchange.SealKey(expand(p.chain, append(info, direction(int(h.from), int(h.to))...)))
	return &key
}

// advance moves the keys to the next round.
func (p *peer) advance() {
	p.chain = expand(p.chain, []byte(labels.ObliviousRatchet))
	p.offers.ratchet()
	p.takes.ratchet()
}

// close forgets what belongs to one round.
func (p *peer) close() {
	clear(p.choices)
	clear(p.pads)
	p.answered, p.taken, p.choices, p.pads = false, false, nil, nil
}

func (p *peer) erase() {
	p.close()
	p.eraseSetup()
	clear(p.chain[:])
	p.offers.erase()
	p.takes.erase()
}

func (p *peer) eraseSetup() {
	if p.base != nil {
		p.base.erase()
		p.other.erase()
	}
	p.base, p.other = nil, nil
}

// NewTransfer begins a session. party is this party's index, 0 to n−1. secrets has n entries: the
// secret that the party shares with each peer and nobody else, uniform, made for this session
// (such as keyexchange.Chain.Next of a chain that is used for nothing else); the party's own
// entry is not used. Randomness comes from random (nil: crypto/rand). It fails with [ErrConfig].
//
// Preparing exact samples takes a while for large λ, once: 0.1 s at λ = 100, 1.3 s
// at 1,000, half a minute at 8,000.
func NewTransfer(
	config *Config, party int, secrets []keyexchange.PairSecret, random io.Reader,
) (*Transfer, error) {
	return newTransfer(config, party, secrets, random, nil)
}

// newTransfer draws terms from the given filler, or makes one.
func newTransfer(
	config *Config, party int, secrets []keyexchange.PairSecret, random io.Reader, terms filler,
) (*Transfer, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if party < 0 || party >= config.Parties {
		return nil, configError("there is no party %d of %d", party, config.Parties)
	}
	if len(secrets) != config.Parties {
		return nil, configError("%d pair secrets, want one per party, %d", len(secrets), config.Parties)
	}
	t := &Transfer{
		config: config.copy(),
		digest: config.digest(),
		party:  party,
		random: noise.Expand(random),
		terms:  terms,
	}
	t.peers = make([]*peer, config.Parties)
	for i := range t.peers {
		if i == party {
			continue
		}
		if secrets[i] == (keyexchange.PairSecret{}) {
			return nil, configError("the secret shared with party %d is zero", i)
		}
		chain, err := hkdf.Extract(sha256.New, secrets[i][:], t.digest[:])
		if err != nil {
			return nil, configError("%w", err)
		}
		t.peers[i] = &peer{chain: [32]byte(chain)}
	}
	if config.Coins == 0 && terms == nil {
		var err error
		if t.terms, err = t.config.Noise.sampler(config.Parties, t.random); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Setup makes the set-up messages, one for every peer, about 8 kB each: 128
// transfers by public-key operations in each direction, from which all rounds are
// extended. It is called once, before messages are received; it fails with
// [ErrPhase] or [ErrRandom].
func (t *Transfer) Setup() ([]protocol.Envelope, error) {
	if t.dead != nil {
		return nil, t.dead
	}
	if t.stage != stageNew {
		return nil, ErrPhase
	}
	bases, others := make([]*baseReceiver, len(t.peers)), make([]*baseSender, len(t.peers))
	envelopes, err := t.toAll(typeSetup, 0, t.peers, func(i int, _ *peer) (body []byte, err error) {
		if bases[i], err = newBaseReceiver(t.context(0, t.party, i), t.random); err != nil {
			return nil, err
		}
		if others[i], err = newBaseSender(t.random); err != nil {
			return nil, err
		}
		return append(others[i].message[:], bases[i].r[:]...), nil
	})
	if err != nil {
		return nil, err
	}
	for i, p := range t.peers {
		if p != nil {
			p.base, p.other = bases[i], others[i]
		}
	}
	t.stage = stageSetup
	return envelopes, nil
}

// Begin opens a round and makes the party's choices, one message for every peer. Round numbers go
// up from 1, are used once, and may skip up to 1,000; anything that an earlier round left
// unfinished is given up. It fails with [ErrMissing] before set-up is complete, with [ErrRound]
// and [ErrRandom].
func (t *Transfer) Begin(round uint64) ([]protocol.Envelope, error) {
	switch {
	case t.dead != nil:
		return nil, t.dead
	case t.stage == stageNew:
		return nil, ErrPhase
	case t.stage == stageSetup:
		return nil, t.missingError()
	case round <= t.round || round > t.at+maxSkip:
		return nil, ErrRound
	}
	// The new keys replace the old ones only when nothing can fail any more.
	next := make([]*peer, len(t.peers))
	for i, p := range t.peers {
		if p == nil {
			continue
		}
		next[i] = &peer{chain: p.chain, ready: true, offers: p.offers, takes: p.takes}
		for range round - t.at {
			next[i].advance()
		}
	}
	envelopes, err := t.toAll(typeChoice, round, next,
		func(i int, p *peer) (message []byte, err error) {
			message, p.choices, p.pads, err = p.takes.choose(t.context(round, i, t.party),
				t.config.transfers(), t.random)
			return message, err
		})
	if err != nil {
		erase(next)
		return nil, err
	}
	erase(t.peers)
	clear(t.sum) // of a round that was given up
	t.peers, t.round, t.at, t.stage = next, round, round, stageRound
	t.sum = make([]uint64, t.config.Length)
	return envelopes, nil
}

func erase(peers []*peer) {
	for _, p := range peers {
		if p != nil {
			p.erase()
		}
	}
}

// toAll seals a body for every peer.
func (t *Transfer) toAll(
	kind messageType, round uint64, peers []*peer, body func(int, *peer) ([]byte, error),
) ([]protocol.Envelope, error) {
	var envelopes []protocol.Envelope
	for i, p := range peers {
		if p == nil {
			continue
		}
		b, err := body(i, p)
		if err != nil {
			return nil, err
		}
		message, err := t.seal(p, header{kind, round, uint32(t.party), uint32(i)}, b)
		if err != nil {
			return nil, err
		}
		envelopes = append(envelopes, protocol.Envelope{To: i, Message: message})
	}
	return envelopes, nil
}

// context binds transfers from one party to another to session and round, 0 for
// the base transfers.
func (t *Transfer) context(round uint64, from, to int) [32]byte {
	if round == 0 {
		return digest(labels.ObliviousBaseTransfer, t.digest[:], direction(from, to))
	}
	return digest(labels.ObliviousExtend, t.digest[:], binary.BigEndian.AppendUint64(nil, round),
		direction(from, to))
}

// Missing returns the peers whose messages the set-up or the open round waits for,
// in ascending order.
func (t *Transfer) Missing() []int {
	var missing []int
	for i, p := range t.peers {
		if p == nil || t.dead != nil {
			continue
		}
		if t.stage <= stageSetup && !p.ready || t.stage == stageRound && !(p.answered && p.taken) {
			missing = append(missing, i)
		}
	}
	return missing
}

func (t *Transfer) missingError() error {
	missing := t.Missing()
	return fmt.Errorf("%w: %d of %d, the first of them party %d", ErrMissing, len(missing),
		t.config.Parties-1, missing[0])
}

// Correction ends the round and returns what the party adds to its input, Length values of the
// ring: its own noise term, less the masks of the terms that it offered, and the terms that it
// chose. It is uniform to anyone who does not know what the party exchanged with all others. It
// fails with [ErrMissing] until all peers' messages have arrived. Then the round is over, and its
// secrets are erased.
func (t *Transfer) Correction() ([]uint64, error) {
	if t.dead != nil {
		return nil, t.dead
	}
	if t.stage != stageRound {
		return nil, ErrPhase
	}
	if len(t.Missing()) > 0 {
		return nil, t.missingError()
	}
	if t.terms != nil {
		own, err := drawTerms(t.terms, t.config.Length, t.config.Bits)
		if err != nil {
			return nil, err
		}
		for k, x := range own {
			t.sum[k] = (t.sum[k] + x) & mask(t.config.Bits)
		}
		clear(own)
	}
	correction := t.sum
	t.sum, t.stage, t.at = nil, stageIdle, t.round+1
	for _, p := range t.peers {
		if p != nil {
			p.close()
			p.advance()
		}
	}
	return correction, nil
}

// Claim returns the privacy of one round against all n − 1 other parties together with the
// server: ε = Δ₁/λ for inputs that differ by at most delta1 in L1 norm, in units of the ring,
// with δ = 0 under [Exact] sampling. The n terms that a party made (its own, and for each pair
// the offered one that the peer chose) are unknown to everyone else and add up to exactly one
// Laplace variable. Nothing more is claimed: that nobody knows which candidate was chosen is not
// counted, since colluding senders can offer two equal ones. It fails with [ErrConfig] or
// [ErrNoBound].
func (t *Transfer) Claim(delta1 *big.Rat) (Claim, error) { return t.config.claim(delta1) }

// Erase forgets all secrets, as far as Go allows. The session is over; every later
// call fails with [ErrPhase].
func (t *Transfer) Erase() {
	erase(t.peers)
	clear(t.sum)
	if e, ok := t.terms.(*noise.Exact); ok {
		e.Erase()
	}
	t.dead = ErrPhase
}
