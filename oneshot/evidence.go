package oneshot

import (
	"bytes"
	"fmt"
	"math/big"

	"golang.org/x/crypto/cryptobyte"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
)

// Evidence proves to anybody that a party of a round with [Terms.Norm] cheated, or that a member
// cheated in the noise that it dealt. It has the message that the cheater signed, with the proof
// that does not hold or with shares that do not fit the proof, and everything else that the check
// needs, including the configuration and the members' keys. A reader compares the key of the party
// or member with the key that the reader knows. [Evidence.AppendBinary] and [ParseEvidence] convert
// it to bytes and back.
type Evidence struct {
	config  *Config
	round   uint64
	opening []byte // body
	claim
}

// Config returns the configuration under which the party signed.
func (e *Evidence) Config() *Config { return e.config }

// Round returns the number of the round.
func (e *Evidence) Round() uint64 { return e.round }

// Party returns the roster index of the party, −1 if a member cheated.
func (e *Evidence) Party() int {
	if _, noise := e.NoiseOf(); noise {
		return -1
	}
	return e.claim.Party
}

// NoiseOf returns the committee index of the member that cheated in noise that it dealt, and
// false if a party cheated.
func (e *Evidence) NoiseOf() (int, bool) {
	k := e.claim.Party - e.config.Roster.Len()
	return k, k >= 0
}

// Member returns the committee index of the member that was dealt shares that do not fit, and false
// if the evidence is a proof that does not hold, or noise that was not drawn.
func (e *Evidence) Member() (int, bool) { return e.claim.Member, e.claim.Member >= 0 }

// Verify returns nil if the evidence shows that the party or member cheated, and otherwise
// [ErrEvidence].
func (e *Evidence) Verify() error {
	s, err := e.config.settle()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEvidence, err)
	}
	if s.scheme == nil {
		return fmt.Errorf("%w: no bound was set", ErrEvidence)
	}
	o, err := s.parseOpening(e.round, e.opening)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEvidence, err)
	}
	context := s.context(e.round, o)
	if !s.convicts(&context, &e.claim) {
		return ErrEvidence
	}
	return nil
}

// The subjects of evidence.
const (
	aboutProof  uint8 = 0
	aboutShares uint8 = 1
	aboutCover  uint8 = 2
	aboutDrawn  uint8 = 3
)

// Flags added to the KEM of evidence: for rounds in which members deal noise, for covered ones, for
// a number of members in league that is not that of faulty ones, and for groups.
const (
	byMembers  uint8 = 1 << 7
	underCover uint8 = 1 << 6
	inLeague   uint8 = 1 << 5
	inGroups   uint8 = 1 << 4
)

// AppendBinary appends the form that [ParseEvidence] reads:
//
//	struct {
//	    opaque label[26] = "hushsum/1 oneshot evidence";
//	    opaque label<0..255>;               // of the configuration, length in uint8
//	    opaque roster<…>, committee<…>;     // as text, lengths in uint32
//	    uint32 length, bits, survivors, colluders, faults, perPolynomial;
//	    opaque noise<1..255>;               // as in the configuration's digest, length in uint8
//	    uint8 kem;                          // plus 128 if members deal noise, 64 if covered,
//	                                        // 32 if t is not f, 16 with groups
//	    uint32 stale;
//	    uint32 inLeague;                    // only if t is not f
//	    uint32 groups;                      // if there are several
//	    uint64 norm, round;
//	    opaque opening<…>;                  // body, length in uint32
//	    uint8 about;                        // 0 the proof, 1 the shares of a member, 2 a cover,
//	                                        // 3 how noise was drawn
//	    uint32 party;                       // of a member that dealt noise, after all parties
//	    opaque signature[64];
//	    opaque extra[…], dealing[…];        // as in Submission; of 3 no extra and C_s alone
//	    select (about) {
//	        case 0: opaque root[32], masked[…], proof[…];
//	        case 1: uint32 member; opaque masked[32], digest[32], path[…][32], plain[…];
//	        case 2: opaque masked[…], proof[…]; Opened opened[f + 1];   // as in Guilty
//	        case 3: opaque masked[32], digests[16][32], coin[32], seeds[15][32];
//	    };
//	} Evidence;
//
// It fails with [ErrConfig] if there is no configuration.
func (e *Evidence) AppendBinary(b []byte) ([]byte, error) {
	s, err := e.config.settle()
	if err != nil {
		return b, err
	}
	w := cryptobyte.NewBuilder(append(b, labels.OneshotEvidence...))
	w.AddUint8LengthPrefixed(func(w *cryptobyte.Builder) { w.AddBytes([]byte(s.Label)) })
	for _, roster := range []*keyexchange.Roster{s.Roster, s.Committee} {
		text, err := roster.MarshalText()
		if err != nil {
			return b, err
		}
		w.AddUint32(uint32(len(text)))
		w.AddBytes(text)
	}
	for _, v := range []int{s.Length, s.Bits, s.MinSurvivors, s.Colluders, s.Faults,
		s.Figures.Disputes, s.Figures.PerPolynomial} {
		w.AddUint32(uint32(v))
	}
	w.AddUint8LengthPrefixed(func(w *cryptobyte.Builder) {
		w.AddBytes([]byte(s.Noise.Scale().RatString()))
	})
	kem := uint8(s.KEM)
	if s.CommitteeNoise {
		kem |= byMembers
	}
	if s.Covered {
		kem |= underCover
	}
	if s.Figures.InLeague != s.Faults {
		kem |= inLeague
	}
	if s.groups() > 1 {
		kem |= inGroups
	}
	w.AddUint8(kem)
	w.AddUint32(uint32(s.Stale))
	if kem&inLeague != 0 {
		w.AddUint32(uint32(s.Figures.InLeague))
	}
	if kem&inGroups != 0 {
		w.AddUint32(uint32(s.Groups))
	}
	w.AddUint64(uint64(s.Norm))
	w.AddUint64(e.round)
	w.AddUint32(uint32(len(e.opening)))
	w.AddBytes(e.opening)
	c := &e.claim
	about := aboutShares
	switch {
	case c.Drawn != nil:
		about = aboutDrawn
	case len(c.Opened) > 0:
		about = aboutCover
	case c.Member < 0:
		about = aboutProof
	}
	w.AddUint8(about)
	w.AddBytes(c.appendSigned(nil))
	switch about {
	case aboutDrawn:
		w.AddBytes(c.Masked[:])
		w.AddBytes(c.Drawn)
		return w.Bytes()
	case aboutCover:
		w.AddBytes(c.appendOpened(nil))
		return w.Bytes()
	case aboutProof:
		w.AddBytes(c.Root[:])
		w.AddBytes(c.Packed)
		w.AddBytes(c.Proof)
		return w.Bytes()
	}
	w.AddUint32(uint32(c.Member))
	w.AddBytes(c.Masked[:])
	w.AddBytes(c.Digest[:])
	for i := range c.Path {
		w.AddBytes(c.Path[i][:])
	}
	w.AddBytes(c.Plain)
	return w.Bytes()
}

// ParseEvidence reads what [Evidence.AppendBinary] wrote. It does not check that the evidence
// holds: see [Evidence.Verify]. It fails with [ErrEncoding], or with [ErrConfig] if the
// configuration is invalid or has no bound.
func ParseEvidence(b []byte) (*Evidence, error) {
	r := reader{cryptobyte.String(b), true}
	if string(r.bytes(len(labels.OneshotEvidence))) != labels.OneshotEvidence {
		return nil, fmt.Errorf("%w: not evidence", ErrEncoding)
	}
	e := &Evidence{config: &Config{Label: string(r.bytes(int(r.uint8())))}}
	for _, roster := range []**keyexchange.Roster{&e.config.Roster, &e.config.Committee} {
		text := r.bytes(int(r.uint32()))
		parsed, err := keyexchange.ParseRoster(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrEncoding, err)
		}
		*roster = parsed
	}
	t := &e.config.Terms
	for _, v := range []*int{&t.Length, &t.Bits, &t.MinSurvivors, &t.Colluders, &t.Faults,
		&t.Disputes, &t.PerPolynomial} {
		*v = int(r.uint32() & (1<<31 - 1))
	}
	var err error
	if t.Noise, err = parseLaw(r.bytes(int(r.uint8()))); err != nil {
		return nil, err
	}
	kem := r.uint8()
	t.KEM, t.CommitteeNoise, t.Covered = KEM(kem&^(byMembers|underCover|inLeague|inGroups)),
		kem&byMembers != 0, kem&underCover != 0
	t.Stale = int(r.uint32() & (1<<31 - 1))
	if kem&inLeague != 0 {
		t.InLeague = int(r.uint32() & (1<<31 - 1))
	}
	if kem&inGroups != 0 {
		t.Groups = int(r.uint32() & (1<<31 - 1))
	}
	t.Norm = int64(r.uint64() & (1<<63 - 1))
	e.round = r.uint64()
	e.opening = r.bytes(int(r.uint32()))
	if !r.ok {
		return nil, fmt.Errorf("%w: evidence ends too early", ErrEncoding)
	}
	s, err := e.config.settle()
	if err != nil {
		return nil, err
	}
	if s.scheme == nil {
		return nil, fmt.Errorf("%w: no bound was set, so there is nothing to prove", ErrConfig)
	}
	o, err := s.parseOpening(e.round, e.opening)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	if err := e.parseClaim(s, o.members, &r); err != nil {
		return nil, err
	}
	if again, err := e.AppendBinary(nil); err != nil || !bytes.Equal(again, b) {
		return nil, fmt.Errorf("%w: evidence has another form", ErrEncoding)
	}
	return e, nil
}

// parseClaim reads what follows the opening.
func (e *Evidence) parseClaim(s *settled, members wire.Set, r *reader) error {
	c := &e.claim
	about := r.uint8()
	if about == aboutDrawn {
		return e.parseDrawn(s, r)
	}
	err := s.parseSigned(c, r)
	switch {
	case err != nil:
	case about == aboutCover:
		err = s.parseOpened(c, members, r)
	case about == aboutProof:
		c.Member = -1
		copy(c.Root[:], r.bytes(32))
		c.Packed, c.Proof = r.bytes(s.packed), r.bytes(s.proofSize())
	default:
		c.Member = int(r.uint32() & (1<<31 - 1))
		copy(c.Masked[:], r.bytes(32))
		copy(c.Digest[:], r.bytes(32))
		c.Path = r.path(s.depth)
		c.Plain = r.bytes(s.partPlainSize())
	}
	switch {
	case err != nil || !r.ok || len(r.rest) != 0 || about > aboutCover ||
		s.Covered != (about == aboutCover) && about != aboutShares ||
		c.Member >= 0 && !(c.Member < s.c && members.Has(c.Member)):
		return fmt.Errorf("%w: of what a party signed", ErrEncoding)
	case about != aboutProof:
		return nil
	case s.ring.CheckPacked(c.Packed, s.length) != nil ||
		s.scheme.CheckEncoding(parseDealing(c.Dealing), c.Proof) != nil:
		return fmt.Errorf("%w: of a vector or its proof", ErrEncoding)
	}
	return nil
}

// parseDrawn reads what there is about how noise was drawn.
func (e *Evidence) parseDrawn(s *settled, r *reader) error {
	c := &e.claim
	c.Member, c.Party = -1, int(r.uint32())
	copy(c.Signature[:], r.bytes(len(c.Signature)))
	c.Dealing = r.bytes(32)
	copy(c.Masked[:], r.bytes(32))
	c.Drawn = r.bytes(drawnSize)
	if !r.ok || len(r.rest) != 0 || !s.audited() || c.Party < s.n || c.Party >= s.dealers() {
		return fmt.Errorf("%w: of how noise was drawn", ErrEncoding)
	}
	return nil
}

// parseLaw reads the variance of a discrete Gaussian law.
func parseLaw(text []byte) (noise.Law, error) {
	for _, b := range text {
		if (b < '0' || b > '9') && b != '/' { // exponents make numbers of any length
			return noise.Law{}, fmt.Errorf("%w: of a variance", ErrEncoding)
		}
	}
	x, ok := new(big.Rat).SetString(string(text))
	if !ok {
		return noise.Law{}, fmt.Errorf("%w: of a variance", ErrEncoding)
	}
	law, err := noise.DiscreteGaussian(x)
	if err != nil {
		return noise.Law{}, fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	return law, nil
}

// reader reads numbers and bytes until there are too few of them.
type reader struct {
	rest cryptobyte.String
	ok   bool
}

func (r *reader) bytes(n int) []byte {
	var out []byte
	r.ok = r.ok && n >= 0 && r.rest.ReadBytes(&out, n)
	return out
}

// path reads n hashes.
func (r *reader) path(n int) (out [][32]byte) {
	for range n {
		var one [32]byte
		copy(one[:], r.bytes(len(one)))
		out = append(out, one)
	}
	return out
}

func (r *reader) uint8() (x uint8)   { r.ok = r.ok && r.rest.ReadUint8(&x); return x }
func (r *reader) uint32() (x uint32) { r.ok = r.ok && r.rest.ReadUint32(&x); return x }
func (r *reader) uint64() (x uint64) { r.ok = r.ok && r.rest.ReadUint64(&x); return x }
