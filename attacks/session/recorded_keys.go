package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/shamir"
)

// recordedKeys is the attack of a thief who records a session today and breaks one of the
// two key exchanges later: the thief is given all private keys of that exchange.
var recordedKeys = attacks.Attack{
	Name:      "RecordedKeys",
	Adversary: "later thief",
	About:     "reads a recorded session after X25519, or ML-KEM, has fallen",
	Defence:   "hybrid keys: both secrets are in every chain",
	Run: func(_ context.Context, o attacks.Options) (*attacks.Report, error) {
		report := &attacks.Report{}
		for _, c := range []struct {
			name                 string
			undefended, defended fallen
		}{
			{"X25519 has fallen", fallen{classical: true, x25519: true}, fallen{x25519: true}},
			{"ML-KEM has fallen", fallen{x25519: true, mlkem: true}, fallen{mlkem: true}},
		} {
			row := attacks.Row{Case: c.name, Metric: "inputs read, of 4"}
			if c.undefended.mlkem {
				row.Note = "undefended: X25519 has fallen as well"
			}
			for _, side := range []struct {
				measure *attacks.Measure
				of      fallen
				want    float64
			}{{&row.Undefended, c.undefended, recordedParties}, {&row.Defended, c.defended, 0}} {
				read, err := side.of.read(o.Seed)
				if err != nil {
					return nil, fmt.Errorf("session: RecordedKeys: %w", err)
				}
				*side.measure = attacks.Exactly(float64(read), recordedParties, side.want)
			}
			report.Rows = append(report.Rows, row)
		}
		return report, nil
	},
}

const recordedParties, recordedThreshold = 4, 3

// fallen says which keys a session has and which of them the thief.
type fallen struct {
	classical     bool // the session has no ML-KEM
	x25519, mlkem bool
}

// tee keeps what is read from a source of randomness: the private keys first.
type tee struct{ drawn []byte }

func (t *tee) Read(b []byte) (int, error) {
	n, err := rand.Read(b)
	t.drawn = append(t.drawn, b[:n]...)
	return n, err
}

// recordedSession is a session of one round as it was on the wire.
type recordedSession struct {
	fallen
	config  *protocol.Config
	private []*tee // by party
	public  []keyexchange.PublicKey
	session [32]byte
	members [][]byte // by party: the body of Members
	masked  [][]byte // by party: the body of Masked
}

// read runs a session, and counts the inputs that the thief reads.
func (f fallen) read(seed uint64) (int, error) {
	inputs := randomInputs(seed, attackLayout, recordedParties)
	recovery := &protocol.Recovery{Threshold: recordedThreshold}
	signers, config := attackConfig(recordedParties, recovery, 0)
	config.Classical = f.classical
	r := &recordedSession{
		fallen:  f,
		config:  config,
		public:  make([]keyexchange.PublicKey, recordedParties),
		members: make([][]byte, recordedParties),
		masked:  make([][]byte, recordedParties),
	}
	server, err := protocol.NewServer(config)
	if err != nil {
		return 0, err
	}
	var parties []textbook.Party
	for _, signer := range signers {
		random := new(tee)
		client, err := protocol.NewClient(config, signer, random)
		if err != nil {
			return 0, err
		}
		parties, r.private = append(parties, client), append(r.private, random)
	}
	s := textbook.NewSession(config, server, parties)
	s.Carry = r.carry
	if err := s.SetUp(); err != nil {
		return 0, err
	}
	if _, err := s.Round(nil, inputs); err != nil {
		return 0, err
	}
	count := 0
	for victim := range inputs {
		input, err := r.input(victim)
		if err != nil {
			return 0, err
		}
		count += indicator(equal(input, inputs[victim]))
	}
	return count, nil
}

// carry records.
func (r *recordedSession) carry(from, to int, message []byte) []byte {
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return message
	}
	switch h.Type {
	case wire.TypeAnnounce:
		r.public[from] = keyexchange.PublicKey(body[:32])
	case wire.TypeMembers:
		r.members[to] = slices.Clone(body)
	case wire.TypeMasked:
		r.masked[from], r.session = slices.Clone(body), h.Session
	}
	return message
}

// chain returns the thief's guess at the chain of two parties, from the keys that it has.
func (r *recordedSession) chain(low, high int) (*keyexchange.Chain, error) {
	agreed := new(keyexchange.Agreement)
	if r.x25519 {
		key, err := keyexchange.ParseKey(r.private[low].drawn[:keyexchange.KeySize])
		if err == nil {
			agreed, err = key.Agree(r.public[high])
		}
		if err != nil {
			return nil, err
		}
	}
	if !r.classical {
		key, err := r.decapsulationKey(high)
		if err != nil {
			return nil, err
		}
		ciphertext, err := r.ciphertext(low, high)
		if err != nil {
			return nil, err
		}
		if err := agreed.Decapsulate(key, ciphertext); err != nil {
			return nil, err
		}
	}
	return agreed.Chain(r.session, r.config.Roster, low, high), nil
}

// decapsulationKey returns a party's key, or one of the thief's own, which opens the ciphertext to
// another secret: all else that a chain is made from is public.
func (r *recordedSession) decapsulationKey(party int) (*keyexchange.DecapsulationKey, error) {
	if !r.mlkem {
		return keyexchange.GenerateDecapsulationKey(nil)
	}
	seed := r.private[party].drawn[keyexchange.KeySize:]
	return keyexchange.ParseDecapsulationKey(seed[:keyexchange.DecapsulationKeySize])
}

// ciphertext returns the lower party's encapsulation for the higher of two.
func (r *recordedSession) ciphertext(low, high int) ([]byte, error) {
	paths := func(wire.Set) ([]int, error) {
		var lengths []int
		for i := range high {
			// A tree of k leaves has paths of ⌈log₂ k⌉ or fewer nodes: party i has
			// one leaf for each higher party.
			lengths = append(lengths, pathLength(high-i-1, recordedParties-i-1))
		}
		return lengths, nil
	}
	m, err := wire.ParseMembers(r.members[high], recordedParties, paths)
	if err != nil {
		return nil, err
	}
	return m.Lower[low].Ciphertext, nil
}

// pathLength returns the number of nodes next to the path from a leaf to the root (RFC 9162
// §2.1.3.1).
func pathLength(leaf, leaves int) int {
	if leaves <= 1 {
		return 0
	}
	split := 1
	for 2*split < leaves {
		split *= 2
	}
	if leaf < split {
		return 1 + pathLength(leaf, split)
	}
	return 1 + pathLength(leaf-split, leaves-split)
}

// input takes the masks off what a party submitted in round 1; nil where the thief's
// keys open nothing.
func (r *recordedSession) input(victim int) (segments, error) {
	const holders = recordedParties - 1
	m, err := wire.ParseMasked(r.masked[victim], attackLayout.PackedSize(), holders, holders)
	if err != nil {
		return nil, err
	}
	all := wire.FullSet(recordedParties)
	round := textbook.Context(0, r.session, 1, textbook.BroadcastDigest(nil), all, all)
	vector, err := masking.ParsePacked(attackLayout, m.Packed)
	if err != nil {
		return nil, err
	}
	var shares []shamir.Share
	for at, peer := range except(upTo(recordedParties), victim) {
		chain, err := r.chain(min(victim, peer), max(victim, peer))
		if err != nil {
			return nil, err
		}
		channels, pair, err := chain.Ahead(1)
		if err != nil {
			return nil, err
		}
		const purpose = keyexchange.SelfMaskShare
		key := channels.Key(purpose, victim, peer)
		data := textbook.ShareData(purpose, r.session, 1, victim, peer, round)
		share, err := keyexchange.Open(key, m.Shares[at][:], data)
		if err == nil {
			shares = append(shares, shamir.Share{
				Index: textbook.Index(peer),
				Value: [32]byte(share),
			})
		}
		seed := masking.Seed(pair.MaskSeed(round))
		vector.MaskPair(&seed, peer, victim) // as the peer, which takes it away
	}
	if len(shares) < recordedThreshold {
		return nil, nil
	}
	secret, err := shamir.Combine(recordedThreshold, shares)
	if err != nil {
		return nil, err
	}
	seed := textbook.SelfMaskSeed(secret)
	vector.SubMask(&seed)
	return vector.Values(), nil
}
