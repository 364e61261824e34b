package normproof

import (
	"context"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/pedersen"
)

// A Claim is a proof of a statement.
type Claim struct {
	Statement *Statement
	Dealing   *Dealing
	Proof     []byte
}

// VerifyAll returns what [Scheme.Verify] says of each of n claims, on all cores, but for 2^-40 for
// each that does not hold. Tests are checked by coins that are drawn here, which takes a fifth of
// the time of making them anew, and equations between points as one, or of halves of the claims
// if that does not hold. Whoever makes a proof must not know the coins: all proofs are fixed by
// now. claim(i) is called once, by any goroutine, so that few statements are in memory at a time.
func (s *Scheme) VerifyAll(n int, claim func(i int) *Claim) []error {
	errs, relations := make([]error, n), make([]*relation, n)
	coins := s.newProbe()
	each(n, func(i int) {
		c := claim(i)
		relations[i], errs[i] = s.relate(c.Statement, c.Dealing, c.Proof, coins)
	})
	s.search(relations, errs)
	return errs
}

// search finds the relations that do not hold.
func (s *Scheme) search(relations []*relation, errs []error) {
	switch n := len(relations); {
	case n == 1 && relations[0] == nil, s.together(relations).holds(s):
	case n == 1:
		errs[0] = ErrProof
	default:
		s.search(relations[:n/2], errs[:n/2])
		s.search(relations[n/2:], errs[n/2:])
	}
}

// together returns the sum of relations, nil ones left out, each times a weight made from all of
// their proofs: if one of them does not hold, the sum does for few weights of 2^252 alone.
func (s *Scheme) together(relations []*relation) *relation {
	var digests [][]byte
	for _, r := range relations {
		if r != nil {
			digests = append(digests, r.digest[:])
		}
	}
	all := &relation{digest: hash(labels.OneshotProofBatch, digests...),
		scalars: zeros(firstPoint + s.count)}
	base := challenge(&all.digest, labels.OneshotProofBatch)
	weight := small(1)
	for _, r := range relations {
		if r == nil {
			continue
		}
		for i, c := range r.scalars {
			all.scalars[i].MultiplyAdd(weight, c, all.scalars[i])
		}
		for _, t := range r.terms {
			c := new(edwards25519.Scalar).Multiply(weight, t.Scalar)
			all.terms = append(all.terms, pedersen.Term{Scalar: c, Point: t.Point})
		}
		weight = new(edwards25519.Scalar).Multiply(weight, base)
	}
	return all
}

// each calls work for 0 to n − 1 on all cores.
func each(n int, work func(i int)) {
	err := cores.Each(context.Background(), n, func(i int) error {
		work(i)
		return nil
	}, nil)
	if err != nil {
		panic("normproof: " + err.Error()) // cannot happen: nothing fails and nothing is cancelled
	}
}
