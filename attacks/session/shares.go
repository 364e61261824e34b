package session

import (
	"crypto"
	"errors"
	"slices"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// wrongReveals returns a Carry for which colluders add an error to their shares
// of the owners' secrets. The error is the value at the holder's index of a
// polynomial of the degree of the sharing that is zero at the given honest
// holders: the wrong shares then lie on one polynomial with those of the zeros,
// which is the most that colluders can do without knowing the shares.
func wrongReveals(owners, colluders, zeros []int) func(from, to int, message []byte) []byte {
	return func(from, _ int, message []byte) []byte {
		h, body, err := wire.ParseHeader(message)
		if err != nil || h.Type != wire.TypeReveal || !slices.Contains(colluders, from) {
			return message
		}
		m, err := wire.ParseReveal(body, 1<<10)
		if err != nil {
			return message
		}
		for i := range m {
			if slices.Contains(owners, m[i].Owner) {
				m[i].Share = withError(m[i].Share, from, zeros)
			}
		}
		return m.Append(h.Append(nil))
	}
}

func smallScalar(x uint32) *edwards25519.Scalar {
	var b [32]byte
	for i := range 4 {
		b[i] = byte(x >> (8 * i))
	}
	s, err := edwards25519.NewScalar().SetCanonicalBytes(b[:])
	if err != nil {
		panic(err) // below 2^32
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
	for _, z := range zeros {
		x, zero := smallScalar(textbook.Index(holder)), smallScalar(textbook.Index(z))
		product.Multiply(product, x.Subtract(x, zero))
	}
	return [32]byte(s.Add(s, product).Bytes())
}

// Colluding holders that reveal wrong shares garble the sum unnoticed if the
// server believes what it gets, and even if it corrects errors but has no
// commitment: then honest holders get the blame. A server with both corrects up
// to ⌊(shares−t)/2⌋ wrong shares of each secret; beyond that there is no sum, and
// never a wrong one. Package protocol's names the culprits once it is sure of
// them, in more than c wrong pairs, and no honest holder.
func wrongShares(r *runner) {
	in := randomInputs(r.o.Seed, attackLayout, 13)
	w := wrongSession{in: in, want: sumOf(attackLayout, in, upTo(len(in)))}
	w.signers, w.config = attackConfig(len(in), &protocol.Recovery{Threshold: 8}, 2)
	w.garbled(r)
	w.corrected(r)
	w.refused(r)
	w.ofRecoveryKeys(r)
}

// Of 13 parties 12 hold shares, with t = 8: two wrong shares are corrected. A
// polynomial of degree 7 with seven zeros is not zero at five holders; if three of
// them are liars the other two are in the minority.
const sharesOwner = 4

var (
	liars      = []int{0, 1, 2, 3, 12}
	liarsZeros = []int{5, 6, 7, 8, 9, 10, 11}
)

// wrongSession is a session in which liars reveal wrong shares.
type wrongSession struct {
	signers []crypto.Signer
	config  *protocol.Config
	in      [][][]uint64
	want    [][]uint64 // the sum
}

// session sets the session up, with that many of the liars lying about the owners.
func (w *wrongSession) session(t target, owners []int, wrong int) (*textbook.Session, error) {
	return t.ready(w.config, w.signers, wrongReveals(owners, liars[:wrong], liarsZeros))
}

// blamed are the parties that a server holds responsible.
func blamed(s *textbook.Session) []int {
	if real, ok := s.Server.(*protocol.Server); ok {
		return real.Excluded()
	}
	return s.Server.(*textbook.Server).Blamed
}

func (w *wrongSession) garbled(r *runner) {
	for _, c := range []struct {
		name   string
		lacks  textbook.Defence
		wrong  int
		blamed []int // honest holders, where the defence is lacking
	}{
		{"one, neither check", textbook.Commitments | textbook.Correction, 1, nil},
		{"three, no commitment", textbook.Commitments, 3, []int{3, 12}},
	} {
		r.compare(c.name, c.lacks, func(t target) (figures, error) {
			s, err := w.session(t, []int{sharesOwner}, c.wrong)
			if err != nil {
				return figures{}, err
			}
			sum, err := s.Round(nil, w.in)
			if err != nil && !errors.Is(err, protocol.ErrMaterial) {
				return figures{}, err
			}
			honest := except(blamed(s), append([]int{sharesOwner}, liars[:c.wrong]...)...)
			return counts(1, one(sum != nil && agreements(sum, w.want) == 0), len(honest)), nil
		}, metric{"wrong sums given out", is(1), is(0)}, metric{"honest holders blamed", is(float64(len(c.blamed))), is(0)})
	}
}

// Up to two wrong shares of one owner or of all. Of one owner it could be the
// owner's doing: nobody is named.
func (w *wrongSession) corrected(r *runner) {
	r.compare("one or two", textbook.Correction, func(t target) (figures, error) {
		exact, named := 0, 0
		for wrong := 1; wrong <= 2; wrong++ {
			for _, owners := range [][]int{{sharesOwner}, upTo(len(w.in))} {
				s, err := w.session(t, owners, wrong)
				if err != nil {
					return figures{}, err
				}
				sum, err := s.Round(nil, w.in)
				if err != nil && !errors.Is(err, protocol.ErrMaterial) {
					return figures{}, err
				}
				exact += one(equal(sum, w.want))
				if t.real && len(owners) == 1 {
					named -= len(blamed(s)) // must be nobody
				} else if len(owners) > 1 {
					for _, party := range slices.Compact(slices.Sorted(slices.Values(blamed(s)))) {
						named += 2*one(slices.Contains(liars[:wrong], party)) - 1
					}
				}
			}
		}
		return counts(4, exact, named), nil
	}, metric{"exact sums, of 4", is(0), is(4)}, metric{"culprits named, less others", is(0), is(3)})
}

// Three and more of one owner: no sum, and the owner is named. The session goes
// on once the colluders have stopped; the owner is let in again, since beyond
// the limit nobody can tell its fault from the holders'.
func (w *wrongSession) refused(r *runner) {
	r.compare("three to five", textbook.Commitments|textbook.Correction, func(t target) (figures, error) {
		wrongSums, named, after := 0, 0, 0
		for wrong := 3; wrong <= 5; wrong++ {
			s, err := w.session(t, []int{sharesOwner}, wrong)
			if err != nil {
				return figures{}, err
			}
			sum, err := s.Round(nil, w.in)
			var party *protocol.PartyError
			wrongSums += one(sum != nil)
			named += one(errors.Is(err, protocol.ErrMaterial) && errors.As(err, &party) && party.Party == sharesOwner)
			s.Carry = nil
			if real, ok := s.Server.(*protocol.Server); ok {
				real.Readmit(sharesOwner)
				for _, i := range liars[:wrong] {
					real.Readmit(i)
				}
			}
			sum, err = s.Round(nil, w.in)
			after += one(err == nil && equal(sum, w.want))
		}
		return counts(3, wrongSums, named, after), nil
	}, metric{"wrong sums given out", is(3), is(0)}, metric{"errors that name the owner", is(0), is(3)}, metric{"exact sums afterwards", is(3), is(3)})
}

// Shares of a recovery key among them, of a party that dropped out: of 11 shares
// one can be corrected.
func (w *wrongSession) ofRecoveryKeys(r *runner) {
	r.compare("of a recovery key too", textbook.Commitments|textbook.Correction, func(t target) (figures, error) {
		s, err := t.ready(w.config, w.signers, nil)
		if err != nil {
			return figures{}, err
		}
		all := upTo(len(w.in))
		s.Carry = wrongReveals(all, []int{1}, liarsZeros)
		short := slices.Clone(w.in)
		short[sharesOwner] = nil
		sum, err := s.Round(nil, short)
		exact := err == nil && equal(sum, sumOf(attackLayout, w.in, except(all, sharesOwner)))
		culprits := slices.Compact(slices.Sorted(slices.Values(blamed(s))))
		return counts(1, one(exact), one(slices.Equal(culprits, []int{1}))), nil
	}, metric{"exact sums", is(0), is(1)}, metric{"culprits named, and nobody else", is(0), is(1)})
}
