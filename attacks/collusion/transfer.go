package collusion

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/internal/continuous"
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
	secrets [][]keyexchange.PairSecret
	terms   []*knownTerms
	made    [][]oblivious.Candidates // of the round, by sender and receiver

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

func newKnownTerms(n int, random io.Reader) (*knownTerms, error) {
	var seed [32]byte
	if _, err := io.ReadFull(noise.Expand(random), seed[:]); err != nil {
		return nil, err
	}
	return &knownTerms{continuous.GammaDifference{Shape: 1 / float64(n), Scale: obliviousScale}, rand.NewChaCha8(seed)}, nil
}

// draw returns the next d terms, in the ring.
func (t *knownTerms) draw(d int) ([]uint64, error) {
	terms := make([]uint64, d)
	for k := range terms {
		x, err := t.law.Sample(t.source)
		if err != nil {
			return nil, err
		}
		terms[k] = uint64(int64(math.RoundToEven(x))) & (1<<obliviousBits - 1)
	}
	return terms, nil
}

func newTransferSession(n, d int, r *rand.Rand) (*transferSession, error) {
	s := &transferSession{config: obliviousConfig(n, d), secrets: make([][]keyexchange.PairSecret, n)}
	for i := range n {
		s.secrets[i] = make([]keyexchange.PairSecret, n)
		for j := range i {
			if _, err := io.ReadFull(chacha(r), s.secrets[i][j][:]); err != nil {
				return nil, err
			}
			s.secrets[j][i] = s.secrets[i][j]
		}
	}
	for i := range n {
		var seed [32]byte
		draw.Bytes(seed[:], r)
		party, err := oblivious.NewTransfer(s.config, i, s.secrets[i], rand.NewChaCha8(seed))
		if err != nil {
			return nil, err
		}
		terms, err := newKnownTerms(n, rand.NewChaCha8(seed))
		if err != nil {
			return nil, err
		}
		s.parties, s.terms = append(s.parties, party), append(s.terms, terms)
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
func (s *transferSession) exchange(begin func(*oblivious.Transfer) ([]protocol.Envelope, error)) error {
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
			for c := range s.made[m.To][m.from] {
				var err error
				if s.made[m.To][m.from][c], err = s.terms[m.To].draw(s.config.Length); err != nil {
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
	err = s.exchange(func(t *oblivious.Transfer) ([]protocol.Envelope, error) { return t.Begin(round) })
	for i, party := range s.parties {
		var correction, terms []uint64
		if err == nil {
			correction, err = party.Correction()
		}
		if err == nil {
			terms, err = s.terms[i].draw(s.config.Length)
		}
		corrections, own = append(corrections, correction), append(own, terms)
	}
	return corrections, own, err
}

// rewrite opens an offer that a colluder sealed, changes its second candidates and
// seals it again. All keys follow from the secret of the pair, as the package has
// it; a mistake here ends in oblivious.ErrOpen.
func (s *transferSession) rewrite(from, to int, round uint64, message []byte, change func(second []uint64)) ([]byte, error) {
	digest := s.digest()
	chain, err := hkdf.Extract(sha256.New, s.secrets[from][to][:], digest[:])
	for range round {
		if err == nil {
			chain, err = hkdf.Expand(sha256.New, chain, "hushsum/1 oblivious ratchet", sha256.Size)
		}
	}
	if err != nil {
		return nil, err
	}
	info := append([]byte("hushsum/1 oblivious channel"), message[1])
	info = append(info, message[transferHeader-8:transferHeader]...) // from and to
	expanded, err := hkdf.Expand(sha256.New, chain, string(info), sha256.Size)
	if err != nil {
		return nil, err
	}
	key := keyexchange.SealKey(expanded)
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

// equalise makes both candidates of an offer the first one.
func (s *transferSession) equalise(from, to int, round uint64, message []byte) ([]byte, error) {
	return s.rewrite(from, to, round, message, func(second []uint64) {
		for k := range second {
			second[k] += s.made[from][to][0][k] - s.made[from][to][1][k]
		}
	})
}

// digest is that of the configuration, which the keys are bound to.
func (s *transferSession) digest() [32]byte {
	b := []byte("hushsum/1 oblivious config")
	for _, v := range []int{s.config.Parties, s.config.Length, s.config.Bits, s.config.Coins, int(s.config.Noise.Sampling), len(s.config.Label)} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = append(b, s.config.Label...)
	return sha256.Sum256(append(b, s.config.Noise.Scale.RatString()...))
}

// transferEstimates plays rounds of the real exchange, and has the colluders
// estimate the inputs of party 0: of the sum they subtract their own terms, those
// that they sent one another, and of what they sent to party 0 the mean of the two
// candidates. That is all that the estimate can use, since what they received comes
// under a mask each. With equal they send party 0 the first of their candidates
// twice.
//
// Which candidate a colluder took from another is in the receiver's memory, out of
// reach here; so the colluders send one another the same one twice in any case.
func transferEstimates(o attacks.Options, n, d, rounds int, equal bool) (inputs, estimates []float64, err error) {
	part := uint64(302)
	if equal {
		part++
	}
	r := o.Rand(part)
	s, err := newTransferSession(n, d, r)
	if err != nil {
		return nil, nil, err
	}
	for round := uint64(1); round <= uint64(rounds); round++ {
		s.carry = func(from, to int, message []byte) ([]byte, error) {
			if message[1] != transferOffer || from == 0 || to == 0 && !equal {
				return message, nil
			}
			return s.equalise(from, to, round, message)
		}
		corrections, own, err := s.round(round)
		if err != nil {
			return nil, nil, err
		}
		drawn, sum := drawInputs(d, r)
		half := make([]float64, d)
		for i, correction := range corrections {
			for k := range sum {
				sum[k] += correction[k]
				if i == 0 {
					continue
				}
				sum[k] -= own[i][k]
				for j := range n {
					if j == i {
						continue
					}
					sum[k] -= s.made[i][j][0][k]
					if j == 0 && !equal {
						half[k] += centred(s.made[i][j][0][k]-s.made[i][j][1][k], obliviousBits) / 2
					}
				}
			}
		}
		for k, x := range sum {
			inputs = append(inputs, drawn[k])
			estimates = append(estimates, (centred(x, obliviousBits)+half[k])/obliviousScale)
		}
	}
	return inputs, estimates, nil
}

// transferSeen is what a server sees of an exchange of two parties, with what
// it would like to know of party 0.
type transferSeen struct {
	inputs, submitted []float64
	choices           []byte   // of party 0, in the one offer that it gets
	sent              [][]byte // bits: in each, one place for each coordinate
}

// transferTranscript plays a round of d coordinates, a multiple of 8. To tell the
// choices, a mark is added to all second candidates, after the server has seen the
// offer: it comes out in the sum.
func transferTranscript(o attacks.Options, d int) (*transferSeen, error) {
	const mark = 1 << (obliviousBits - 2)
	r := o.Rand(305)
	s, err := newTransferSession(2, d, r)
	if err != nil {
		return nil, err
	}
	seen := &transferSeen{}
	// bits adds one series for each bit of a width, of values that lie side by side.
	bits := func(b []byte, first, stride, width int) {
		for i := range width {
			series := make([]byte, d)
			for k := range series {
				at := first + k*stride + i
				series[k] = b[at/8] >> (at % 8) & 1
			}
			seen.sent = append(seen.sent, series)
		}
	}
	s.carry = func(from, to int, message []byte) ([]byte, error) {
		body := message[transferHeader+sealNonce:]
		switch {
		case from == 0 && message[1] == transferChoice:
			// 128 columns of a bit for each transfer, and a whole block of padding each.
			column := ((d+127)/128 + 1) * 128
			for i := range 128 {
				bits(body, i*column, 1, 1)
			}
		case to == 0 && message[1] == transferOffer:
			bits(body, 0, obliviousBits, obliviousBits)
			bits(body, d*obliviousBits, obliviousBits, obliviousBits)
			return s.rewrite(from, to, 1, message, func(second []uint64) {
				for k := range second {
					second[k] += mark
				}
			})
		}
		return message, nil
	}
	corrections, _, err := s.round(1)
	if err != nil {
		return nil, err
	}
	var packed []byte
	inputs, sum := drawInputs(d, r)
	seen.inputs = inputs
	for k := range sum {
		sum[k] += corrections[0][k]
		seen.submitted = append(seen.submitted, centred(sum[k], obliviousBits))
		packed = binary.LittleEndian.AppendUint64(packed, sum[k])
		// The noise is far from half the mark.
		total := centred(sum[k]+corrections[1][k], obliviousBits)
		choice := byte(0)
		if total > mark/2 {
			choice = 1
		}
		seen.choices = append(seen.choices, choice)
	}
	bits(packed, 0, 64, obliviousBits)
	return seen, nil
}
