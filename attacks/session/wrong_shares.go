package session

import (
	"crypto"
	"encoding/binary"
	"errors"
	"slices"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

var wrongShares = compared(attacks.Attack{
	Name:      "WrongShares",
	Adversary: "colluding clients",
	About:     "reveals wrong shares, so that a wrong mask is removed from the sum",
	Defence: "the owner's commitment; correction of up to ⌊(shares − t)/2⌋ wrong " +
		"shares",
}, wrongShareVariants)

// wrongReveals has colluders add an error to their shares of the owners' secrets. The
// error is the value at the holder's index of a polynomial of the degree of the sharing
// that is zero at the given honest holders: the wrong shares then lie on one polynomial
// with those of the zeros, which is the most that colluders can do without knowing the
// shares.
func wrongReveals(owners, colluders, zeros []int) carry {
	return func(from, _ int, message []byte) []byte {
		h, body, err := wire.ParseHeader(message)
		if err != nil || h.Type != wire.TypeReveal || !slices.Contains(colluders, from) {
			return message
		}
		shares, err := wire.ParseReveal(body, 1<<10)
		if err != nil {
			return message
		}
		for i := range shares {
			if slices.Contains(owners, shares[i].Owner) {
				shares[i].Share = withError(shares[i].Share, from, zeros)
			}
		}
		return shares.Append(h.Append(nil))
	}
}

// smallScalar is a number as a scalar of the field.
func smallScalar(x uint32) *edwards25519.Scalar {
	var encoding [32]byte
	binary.LittleEndian.PutUint32(encoding[:], x)
	s, err := edwards25519.NewScalar().SetCanonicalBytes(encoding[:])
	if err != nil {
		panic("session: " + err.Error()) // below 2^32
	}
	return s
}

// withError adds Π (x − z) over the zeros, x being the holder's index.
func withError(share [32]byte, holder int, zeros []int) [32]byte {
	s, err := edwards25519.NewScalar().SetCanonicalBytes(share[:])
	if err != nil {
		return share
	}
	product := smallScalar(1)
	for _, zero := range zeros {
		x, z := smallScalar(textbook.Index(holder)), smallScalar(textbook.Index(zero))
		product.Multiply(product, x.Subtract(x, z))
	}
	return [32]byte(s.Add(s, product).Bytes())
}

// Of 13 parties 12 hold shares, with t = 8: two wrong shares are corrected. A
// polynomial of degree 7 with seven zeros is not zero at five holders; if three of
// them are liars the other two are in the minority.
const sharesParties, sharesOwner = 13, 4

var (
	liars      = []int{0, 1, 2, 3, 12}
	liarsZeros = []int{5, 6, 7, 8, 9, 10, 11}
)

// wrongSession is a session in which liars reveal wrong shares.
type wrongSession struct {
	signers []crypto.Signer
	config  *protocol.Config
	inputs  []segments
	want    segments // the sum
}

// wrongShareVariants have colluding holders that reveal wrong shares. They garble the sum
// unnoticed if the server believes what it gets, and even if it corrects errors but has no
// commitment: then honest holders get the blame. A server with both corrects up
// to ⌊(shares−t)/2⌋ wrong shares of each secret; beyond that there is no sum, and
// never a wrong one. Package protocol's names the culprits once it is sure of
// them, in more than c wrong pairs, and no honest holder.
func wrongShareVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, sharesParties)
	w := &wrongSession{
		inputs: inputs,
		want:   sumOf(attackLayout, inputs, upTo(sharesParties)),
	}
	recovery := &protocol.Recovery{Threshold: 8}
	w.signers, w.config = attackConfig(sharesParties, recovery, 2)
	return append(w.garbled(), w.corrected(), w.refused(), w.ofRecoveryKeys())
}

// session sets the session up, with that many of the liars lying about the owners.
func (w *wrongSession) session(t target, owners []int, wrong int) (*textbook.Session, error) {
	return t.ready(w.config, w.signers, wrongReveals(owners, liars[:wrong], liarsZeros))
}

// round plays a round, which may end without a sum for want of shares.
func (w *wrongSession) round(s *textbook.Session) (segments, error) {
	sum, err := s.Round(nil, w.inputs)
	if errors.Is(err, protocol.ErrMaterial) {
		err = nil
	}
	return sum, err
}

// blamed returns the parties that a server holds responsible, each once, in order.
func blamed(s *textbook.Session) []int {
	var parties []int
	switch server := s.Server.(type) {
	case *protocol.Server:
		parties = server.Excluded()
	case *textbook.Server:
		parties = server.Blamed
	}
	return slices.Compact(slices.Sorted(slices.Values(parties)))
}

// garbled has one wrong share without any defence, and three without the commitment.
func (w *wrongSession) garbled() []variant {
	var variants []variant
	for _, lie := range []struct {
		name   string
		lacks  textbook.Defence
		wrong  int
		blamed int // honest holders, where the defence is lacking
	}{
		{"one, neither check", textbook.Commitments | textbook.Correction, 1, 0},
		{"three, no commitment", textbook.Commitments, 3, 2},
	} {
		variants = append(variants, variant{
			name:  lie.name,
			lacks: lie.lacks,
			run: func(t target) (outcome, error) {
				s, err := w.session(t, []int{sharesOwner}, lie.wrong)
				if err != nil {
					return outcome{}, err
				}
				sum, err := w.round(s)
				if err != nil {
					return outcome{}, err
				}
				wrong := sum != nil && agreements(sum, w.want) == 0
				honest := except(blamed(s), sharesOwner)
				honest = except(honest, liars[:lie.wrong]...)
				return counts(1, indicator(wrong), len(honest)), nil
			},
			metrics: []metric{
				{"wrong sums given out", exactly(1), exactly(0)},
				{"honest holders blamed", exactly(float64(lie.blamed)), exactly(0)},
			},
		})
	}
	return variants
}

// corrected has up to two wrong shares of one owner or of all. With one owner it could be
// the owner's doing: nobody is named.
func (w *wrongSession) corrected() variant {
	return variant{
		name:  "one or two",
		lacks: textbook.Correction,
		run: func(t target) (outcome, error) {
			exact, named := 0, 0
			for wrong := 1; wrong <= 2; wrong++ {
				s, sum, err := w.lieAbout(t, []int{sharesOwner}, wrong)
				if err != nil {
					return outcome{}, err
				}
				exact += indicator(equal(sum, w.want))
				if t.real {
					named -= len(blamed(s)) // must be nobody
				}
				s, sum, err = w.lieAbout(t, upTo(sharesParties), wrong)
				if err != nil {
					return outcome{}, err
				}
				exact += indicator(equal(sum, w.want))
				for _, party := range blamed(s) {
					named += 2*indicator(slices.Contains(liars[:wrong], party)) - 1
				}
			}
			return counts(4, exact, named), nil
		},
		metrics: []metric{
			{"exact sums, of 4", exactly(0), exactly(4)},
			{"culprits named, less others", exactly(0), exactly(3)},
		},
	}
}

// lieAbout sets a session up and plays a round of it.
func (w *wrongSession) lieAbout(
	t target, owners []int, wrong int,
) (*textbook.Session, segments, error) {
	s, err := w.session(t, owners, wrong)
	if err != nil {
		return nil, nil, err
	}
	sum, err := w.round(s)
	return s, sum, err
}

// refused has three and more wrong shares of one owner: no sum, and the owner is named.
// The session goes on once the colluders have stopped; the owner is let in again, since
// beyond the limit nobody can tell its fault from the holders'.
func (w *wrongSession) refused() variant {
	return variant{
		name:  "three to five",
		lacks: textbook.Commitments | textbook.Correction,
		run: func(t target) (outcome, error) {
			wrongSums, named, after := 0, 0, 0
			for wrong := 3; wrong <= 5; wrong++ {
				s, err := w.session(t, []int{sharesOwner}, wrong)
				if err != nil {
					return outcome{}, err
				}
				sum, err := s.Round(nil, w.inputs)
				var party *protocol.PartyError
				wrongSums += indicator(sum != nil)
				named += indicator(errors.Is(err, protocol.ErrMaterial) &&
					errors.As(err, &party) && party.Party == sharesOwner)
				s.Carry = nil
				if server, ok := s.Server.(*protocol.Server); ok {
					server.Readmit(sharesOwner)
					for _, i := range liars[:wrong] {
						server.Readmit(i)
					}
				}
				sum, err = s.Round(nil, w.inputs)
				after += indicator(err == nil && equal(sum, w.want))
			}
			return counts(3, wrongSums, named, after), nil
		},
		metrics: []metric{
			{"wrong sums given out", exactly(3), exactly(0)},
			{"errors that name the owner", exactly(0), exactly(3)},
			{"exact sums afterwards", exactly(3), exactly(3)},
		},
	}
}

// ofRecoveryKeys has shares of a recovery key among them, of a party that dropped out: of
// 11 shares one can be corrected.
func (w *wrongSession) ofRecoveryKeys() variant {
	const liar = 1
	return variant{
		name:  "of a recovery key too",
		lacks: textbook.Commitments | textbook.Correction,
		run: func(t target) (outcome, error) {
			s, err := t.ready(w.config, w.signers, nil)
			if err != nil {
				return outcome{}, err
			}
			all := upTo(sharesParties)
			s.Carry = wrongReveals(all, []int{liar}, liarsZeros)
			inputs := slices.Clone(w.inputs)
			inputs[sharesOwner] = nil
			sum, err := s.Round(nil, inputs)
			want := sumOf(attackLayout, w.inputs, except(all, sharesOwner))
			exact := err == nil && equal(sum, want)
			culprit := slices.Equal(blamed(s), []int{liar})
			return counts(1, indicator(exact), indicator(culprit)), nil
		},
		metrics: []metric{
			{"exact sums", exactly(0), exactly(1)},
			{"culprits named, and nobody else", exactly(0), exactly(1)},
		},
	}
}
