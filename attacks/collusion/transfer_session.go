package collusion

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/internal/continuous"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oblivious"
	"github.com/hushsum/hushsum/protocol"
)

// transferSession is a session of oblivious.Transfer whose messages go through an
// adversary that knows the secrets and the random numbers of all parties but 0.
type transferSession struct {
	config  *oblivious.Config
	parties []*oblivious.Transfer
	secrets [][]keyexchange.PairSecret // by party and party
	terms   []*knownTerms              // by party
	made    [][]oblivious.Candidates   // of the round, by sender and receiver

	// carry, if not nil, sees every message and returns what arrives in its place.
	carry func(from, to int, message []byte) ([]byte, error)
}

// knownTerms repeats the noise terms of a party from its random numbers: under
// ReferenceContinuous they are a stream of their own, from a seed that is the first
// thing the party reads.
type knownTerms struct {
	law    continuous.GammaDifference
	source rand.Source
}

func newKnownTerms(parties int, random io.Reader) (*knownTerms, error) {
	var seed [32]byte
	if _, err := io.ReadFull(noise.Expand(random), seed[:]); err != nil {
		return nil, err
	}
	return &knownTerms{
		law:    continuous.GammaDifference{Shape: 1 / float64(parties), Scale: obliviousScale},
		source: rand.NewChaCha8(seed),
	}, nil
}

// draw returns the next terms, in the ring.
func (t *knownTerms) draw(length int) ([]uint64, error) {
	terms := make([]uint64, length)
	for k := range terms {
		x, err := t.law.Sample(t.source)
		if err != nil {
			return nil, err
		}
		terms[k] = uint64(int64(math.RoundToEven(x))) & (1<<obliviousBits - 1)
	}
	return terms, nil
}

func newTransferSession(parties, length int, r *rand.Rand) (*transferSession, error) {
	s := &transferSession{
		config:  obliviousConfig(parties, length),
		secrets: make([][]keyexchange.PairSecret, parties),
	}
	for i := range parties {
		s.secrets[i] = make([]keyexchange.PairSecret, parties)
		for j := range i {
			if _, err := io.ReadFull(chacha(r), s.secrets[i][j][:]); err != nil {
				return nil, err
			}
			s.secrets[j][i] = s.secrets[i][j]
		}
	}
	for i := range parties {
		var seed [32]byte
		draw.Bytes(seed[:], r)
		party, err := oblivious.NewTransfer(s.config, i, s.secrets[i], rand.NewChaCha8(seed))
		if err != nil {
			return nil, err
		}
		terms, err := newKnownTerms(parties, rand.NewChaCha8(seed))
		if err != nil {
			return nil, err
		}
		s.parties = append(s.parties, party)
		s.terms = append(s.terms, terms)
	}
	return s, s.exchange((*oblivious.Transfer).Setup)
}

// The types of messages of oblivious, in their second byte, and the lengths of the
// header and of the nonce that follows it.
const (
	transferChoice = 2
	transferOffer  = 3
	transferHeader = 18
	sealNonce      = 24
)

// exchange has every party make its messages, and carries them and the answers.
func (s *transferSession) exchange(
	begin func(*oblivious.Transfer) ([]protocol.Envelope, error),
) error {
	type sent struct {
		from int
		protocol.Envelope
	}
	var pending []sent
	for i, party := range s.parties {
		envelopes, err := begin(party)
		if err != nil {
			return err
		}
		for _, e := range envelopes {
			pending = append(pending, sent{i, e})
		}
	}
	for ; len(pending) > 0; pending = pending[1:] {
		m := pending[0]
		if m.Message[1] == transferChoice { // which the receiver answers with an offer
			offer := &s.made[m.To][m.from]
			for c := range offer {
				var err error
				if offer[c], err = s.terms[m.To].draw(s.config.Length); err != nil {
					return err
				}
			}
		}
		if s.carry != nil {
			var err error
			if m.Message, err = s.carry(m.from, m.To, m.Message); err != nil {
				return err
			}
		}
		answer, err := s.parties[m.To].Receive(m.Message)
		if err != nil {
			return fmt.Errorf("party %d: %w", m.To, err)
		}
		for _, e := range answer {
			pending = append(pending, sent{m.To, e})
		}
	}
	return nil
}

// round plays a round and returns the corrections, and what each party's own term is
// in them.
func (s *transferSession) round(round uint64) (corrections, own [][]uint64, err error) {
	s.made = make([][]oblivious.Candidates, len(s.parties))
	for i := range s.made {
		s.made[i] = make([]oblivious.Candidates, len(s.parties))
	}
	err = s.exchange(func(party *oblivious.Transfer) ([]protocol.Envelope, error) {
		return party.Begin(round)
	})
	if err != nil {
		return nil, nil, err
	}
	for i, party := range s.parties {
		correction, err := party.Correction()
		if err != nil {
			return nil, nil, err
		}
		terms, err := s.terms[i].draw(s.config.Length)
		if err != nil {
			return nil, nil, err
		}
		corrections = append(corrections, correction)
		own = append(own, terms)
	}
	return corrections, own, nil
}

// rewrite opens an offer that a colluder sealed, changes its second candidates and
// seals it again. All keys follow from the secret of the pair, as the package has
// it; a mistake here ends in oblivious.ErrOpen.
func (s *transferSession) rewrite(
	from, to int, round uint64, message []byte, change func(second []uint64),
) ([]byte, error) {
	digest := s.digest()
	key, err := s.sealKey(from, to, round, message)
	if err != nil {
		return nil, err
	}
	header := message[:transferHeader:transferHeader]
	associated := append(header, digest[:]...)
	body, err := keyexchange.Open(&key, message[transferHeader:], associated)
	if err != nil {
		return nil, err
	}
	segment := masking.Segment{Length: s.config.Length, Bits: s.config.Bits}
	layout := masking.Layout{segment, segment}
	vector, err := masking.ParsePacked(layout, body)
	if err != nil {
		return nil, err
	}
	values := vector.Values()
	change(values[1])
	for k := range values[1] {
		values[1][k] &= 1<<obliviousBits - 1
	}
	if vector, err = masking.FromValues(layout, values...); err != nil {
		return nil, err
	}
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return nil, err
	}
	sealed, err := keyexchange.Seal(&nonce, &key, vector.AppendPacked(nil), associated)
	return append(header, sealed...), err
}

// sealKey derives the key that a message of a colluder is sealed with.
func (s *transferSession) sealKey(
	from, to int, round uint64, message []byte,
) (keyexchange.SealKey, error) {
	digest := s.digest()
	chain, err := hkdf.Extract(sha256.New, s.secrets[from][to][:], digest[:])
	if err != nil {
		return keyexchange.SealKey{}, err
	}
	for range round {
		chain, err = hkdf.Expand(sha256.New, chain, labels.ObliviousRatchet, sha256.Size)
		if err != nil {
			return keyexchange.SealKey{}, err
		}
	}
	info := append([]byte(labels.ObliviousChannel), message[1])
	info = append(info, message[transferHeader-8:transferHeader]...) // from and to
	key, err := hkdf.Expand(sha256.New, chain, string(info), sha256.Size)
	if err != nil {
		return keyexchange.SealKey{}, err
	}
	return keyexchange.SealKey(key), nil
}

// equalise makes both candidates of an offer the first one.
func (s *transferSession) equalise(
	from, to int, round uint64, message []byte,
) ([]byte, error) {
	sent := s.made[from][to]
	return s.rewrite(from, to, round, message, func(second []uint64) {
		for k := range second {
			second[k] += sent[0][k] - sent[1][k]
		}
	})
}

// digest returns the digest of the configuration, to which the keys are bound.
func (s *transferSession) digest() [32]byte {
	b := []byte(labels.ObliviousConfig)
	for _, v := range []int{
		s.config.Parties,
		s.config.Length,
		s.config.Bits,
		s.config.Coins,
		int(s.config.Noise.Sampling),
		len(s.config.Label),
	} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = append(b, s.config.Label...)
	return sha256.Sum256(append(b, s.config.Noise.Scale.RatString()...))
}
