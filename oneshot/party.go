package oneshot

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/shamir"
)

// A Party sends one message a round. It is not safe for concurrent use.
type Party struct {
	config *settled
	signer crypto.Signer
	random io.Reader
	self   int
	last   uint64 // the last round that something was sent in
	output []byte // what was sent in it
}

// NewParty makes the party of the roster to which identity belongs. Keys, noise and shares come
// from random; nil means crypto/rand. (HPKE draws from crypto/rand itself.) It fails with
// [ErrConfig] or [ErrIdentity].
func NewParty(config *Config, identity crypto.Signer, random io.Reader) (*Party, error) {
	s, err := config.settle()
	if err != nil {
		return nil, err
	}
	if identity == nil {
		return nil, ErrIdentity
	}
	self, err := index(s.Roster, identity.Public())
	if err != nil {
		return nil, err
	}
	return &Party{config: s, signer: identity, random: random, self: self}, nil
}

// Index returns the party's place in the roster.
func (p *Party) Index() int { return p.self }

// Round returns the number of the last round in which the party submitted, 0 before the first.
func (p *Party) Round() uint64 { return p.last }

// Output returns the message of the last round, to be sent again after a crash; nil before the
// first.
func (p *Party) Output() []byte { return p.output }

// Submit answers the opening of a round with the party's one message. Values were made from
// broadcast, such as a model; the opening has the digest of broadcast. A party answers a round
// number once, even if another opening asks for it again: save the party, then send, and after a
// crash send [Party.Output] again.
//
// It fails with [ErrReplay] for a round that is not above the last, with [ErrBroadcast],
// [ErrLength] and [ErrRange] for inputs, with [ErrKey], [ErrSignature] or [ErrTooFew] for the
// members' keys in the opening, with [ErrContext] for another configuration, and with
// [ErrRandom]. The party is then unchanged. If the roster has weights, the party
// multiplies the values by its own. With [Terms.Norm] it also fails with [ErrNorm]; and
// with [ErrMissed], after which the round's number is used.
func (p *Party) Submit(opening, broadcast []byte, values []int64) ([]byte, error) {
	return p.SubmitDigest(opening, broadcastDigest(broadcast), 0, values)
}

// SubmitDigest is [Party.Submit] with the digest of the broadcast, by [NewBroadcastHash], and
// with the number of the round from whose broadcast the values were made, as far back as
// [Terms.Stale] allows; 0 is the open round. It also fails with [ErrStale].
func (p *Party) SubmitDigest(
	opening []byte, broadcast [32]byte, made uint64, values []int64,
) ([]byte, error) {
	s := p.config
	h, body, err := s.parse(opening)
	if err != nil {
		return nil, err
	}
	switch {
	case h.Sender != wire.ServerIndex:
		return nil, ErrSender
	case h.Type != typeOpening:
		return nil, fmt.Errorf("%w: %d", ErrType, h.Type)
	case h.Session != s.digest:
		return nil, ErrContext
	case h.Round <= p.last:
		return nil, fmt.Errorf("%w: round %d, and the last was %d", ErrReplay, h.Round, p.last)
	}
	if made == 0 {
		made = h.Round
	}
	if err := s.checkMade(made, h.Round); err != nil {
		return nil, err
	}
	o, err := s.parseOpening(h.Round, body)
	if err != nil {
		return nil, err
	}
	if o.broadcast != broadcast {
		return nil, ErrBroadcast
	}
	if err := s.checkValues(values); err != nil {
		return nil, err
	}
	if w := s.weight(p.self); w > 1 {
		values = slices.Clone(values)
		defer clear(values)
		for i := range values {
			values[i] *= int64(w)
		}
	}
	context := s.context(h.Round, o)
	random := noise.Expand(p.random)
	d := submitter{s, p.signer, random, p.self, s.noise}
	m, err := d.submission(&context, o, made, values, random)
	if errors.Is(err, ErrMissed) {
		p.last, p.output = h.Round, nil
	}
	if err != nil {
		return nil, err
	}
	p.last = h.Round
	header := s.header(typeSubmission, &context, h.Round, uint32(p.self))
	p.output = m.append(slices.Grow(header, s.submissionSize(len(o.keys))))
	return p.output, nil
}

// checkValues takes the same time for all values in range.
func (s *settled) checkValues(values []int64) error {
	if len(values) != s.Length {
		return fmt.Errorf("%w: %d values, want %d", ErrLength, len(values), s.Length)
	}
	out := int64(0)
	for _, v := range values {
		out |= (v + s.limit) | (s.limit - 1 - v) // negative if v is out of range, or overflows
	}
	if out < 0 {
		return fmt.Errorf("%w: want −%d to %d", ErrRange, s.limit, s.limit-1)
	}
	return s.checkNorm(values)
}

// submitter is who sends a submission: a party, or a member that deals noise.
type submitter struct {
	config *settled
	signer crypto.Signer
	random io.Reader // of the key, the noise, the blind of the key and the key of the cover
	self   int       // as in [settled.dealers]
	noise  *noise.Table
}

// submission draws what members share from random, and what they do not know from the submitter's.
func (p *submitter) submission(
	context *[32]byte, o *opening, made uint64, values []int64, random io.Reader,
) (*submission, error) {
	s := p.config
	key := make([]int64, degree)
	defer clear(key)
	if err := s.keys.NewSampler(p.random).Fill(key); err != nil {
		return nil, err
	}
	m := &submission{boxes: make([]byte, 0, len(o.keys)*s.boxSize())}
	var noisy []int64
	if s.scheme != nil {
		noisy = make([]int64, s.length)
		defer clear(noisy)
	}
	var err error
	if m.masked, err = s.mask(p.noise.NewSampler(p.random), context, key, values, noisy); err != nil {
		return nil, err
	}
	indices := make([]uint32, 0, len(o.keys))
	for k := range o.members.All() {
		indices = append(indices, uint32(k)+1)
	}
	var blind shamir.Secret
	if s.scheme != nil {
		if blind, err = shamir.GenerateSecret(p.random); err != nil {
			return nil, err
		}
		defer clear(blind[:])
	}
	parts, witness, err := s.shares(random, key, blind, indices)
	if err != nil {
		return nil, err
	}
	defer erase(witness)
	var y []uint64
	if s.scheme != nil {
		y = s.unpack(m.masked)
	}
	var covers []shamir.Share
	var stream cipher.Stream
	if s.Covered {
		if covers, stream, err = p.cover(context, indices, m, random); err != nil {
			return nil, err
		}
	}
	if s.Stale > 0 {
		m.extra = append(m.extra, uint64Bytes(made)...)
	}
	plain := make([]byte, 0, s.plainSize())
	defer clear(plain[:cap(plain)])
	leaves := make([][32]byte, s.leafPlaces())
	for i, part := range parts {
		member := int(part.Index) - 1
		plain = plain[:0]
		for _, v := range part.Values {
			plain = append(plain, v[:]...)
		}
		clear(part.Values)
		if s.Covered && !s.reduces {
			plain = append(plain, covers[i].Value[:]...)
		}
		if plain, err = appendBlind(random, plain); err != nil {
			return nil, err
		}
		leaves[member] = leaf(context, p.self, member, plain)
		if s.reduces {
			plain = append(plain, covers[i].Value[:]...)
			if plain, err = appendBlind(random, plain); err != nil {
				return nil, err
			}
			at := s.coverPlace(member)
			leaves[at] = coverLeaf(context, p.self, member, plain[s.partPlainSize():])
		}
		if s.Covered {
			covers[i] = shamir.Share{}
		}
		public, err := s.KEM.parseKey(s.key(o.keys[i]))
		if err != nil {
			return nil, s.memberError(member, err)
		}
		box, err := seal(public, boxInfo(context, p.self, member), plain)
		if err != nil {
			return nil, s.memberError(member, err)
		}
		m.boxes = append(m.boxes, box...)
	}
	m.leaves = s.appendLeaves(nil, leaves, o.members)
	root := tree(leaves, s.depth)[s.depth][0]
	var bound []byte
	if s.scheme != nil {
		witness.Noisy = noisy
		if err := s.prove(random, context, p.self, root, m, y, witness); err != nil {
			return nil, err
		}
		if s.Covered {
			stream.XORKeyStream(m.proof, m.proof)
		}
		bound = s.bind(context, p.self, m)
	}
	signed := statement(context, p.self, root, hash(labels.OneshotMasked, m.masked), m.extra, bound)
	if m.signature, err = keyexchange.Sign(p.signer, s.statementLabel(p.self), signed); err != nil {
		return nil, err
	}
	return m, nil
}

// mask returns y_j = a_j·key + T·e_j + v_j, packed, for all blocks j. The last
// block ends where the coordinates do: fewer samples only make it harder. What the key hides goes
// into noisy, if that is not nil.
func (s *settled) mask(
	sampler *noise.Sampler, context *[32]byte, key, values, noisy []int64,
) ([]byte, error) {
	ringKey := hash(labels.OneshotRing, context[:])
	public := s.ring.NewExpander(&ringKey)
	factor := s.ring.NewFactor(key)
	defer clear(factor)
	y, plain := make([]uint64, degree), make([]int64, degree)
	defer clear(plain)
	masked := make([]byte, 0, s.packed)
	for j, done := 0, 0; done < s.length; j++ {
		public.Expand(y, j)
		s.ring.MulInto(y, y, factor)
		size := min(degree, s.length-done)
		if err := sampler.Fill(plain[:size]); err != nil {
			return nil, err
		}
		if s.Scale != 1 {
			for i := range plain[:size] {
				plain[i] *= s.Scale
			}
		}
		if done < s.Length {
			for i, v := range values[done:min(done+size, s.Length)] {
				plain[i] += v
			}
		}
		if noisy != nil {
			copy(noisy[done:], plain[:size])
		}
		s.ring.AddSigned(y[:size], plain[:size])
		masked = s.ring.AppendPacked(masked, y[:size])
		done += size
	}
	clear(y)
	return masked, nil
}

// appendBlind appends random bytes.
func appendBlind(random io.Reader, b []byte) ([]byte, error) {
	b = b[:len(b)+blindSize]
	return b, entropy.Read("oneshot", random, b[len(b)-blindSize:])
}

// cover draws the key of the cover, shares it, commits to it and hides y under it. The rest of
// the stream is for a proof.
func (p *submitter) cover(
	context *[32]byte, indices []uint32, m *submission, random io.Reader,
) ([]shamir.Share, cipher.Stream, error) {
	key, err := shamir.GenerateSecret(p.random)
	if err != nil {
		return nil, nil, err
	}
	defer clear(key[:])
	shares, err := shamir.Split(random, key, p.config.Figures.InLeague+1, indices)
	if err != nil {
		return nil, nil, err
	}
	c := coverCommitment(context, p.self, &key)
	m.extra = c[:]
	stream := coverStream(&key)
	stream.XORKeyStream(m.masked, m.masked)
	return shares, stream, nil
}

// coverCommitment binds a party to the key of its cover, which has 252 bits of
// entropy.
func coverCommitment(context *[32]byte, party int, key *shamir.Secret) [32]byte {
	return hash(labels.OneshotCommitment, context[:], uint32Bytes(party), key[:])
}

// coverStream is the keystream of AES-256-CTR, whose counter begins at zero, under a key derived
// from the cover's: it covers and uncovers.
func coverStream(key *shamir.Secret) cipher.Stream {
	derived, err := hkdf.Key(sha256.New, key[:], nil, labels.OneshotCoverKey, 32)
	if err != nil {
		panic("oneshot: " + err.Error()) // the length is a constant
	}
	block, err := aes.NewCipher(derived)
	clear(derived)
	if err != nil {
		panic("oneshot: " + err.Error()) // an AES-256 key has 32 bytes
	}
	return cipher.NewCTR(block, make([]byte, aes.BlockSize))
}
