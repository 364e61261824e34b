package crowd

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// errSignature cannot happen but by a fault of this package: it checks what it signed.
var errSignature = errors.New("crowd: a signature of a party here is not valid")

// batch is how many signatures are checked at once. The multiplication takes a table of
// 1.3 kB for each of two points a signature.
const batch = 64

// maskSelf draws a party's self mask and adds it.
func (w *worker) maskSelf(own []uint64) error {
	var seed masking.Seed
	if _, err := rand.Read(seed[:]); err != nil {
		return err
	}
	w.seeds = append(w.seeds, seed)
	if err := w.expand(&seed); err != nil {
		return err
	}
	addTo(own, w.mask)
	return nil
}

// signSurvivors has everybody in the sum sign who is, and all of it checked.
func (c *Crowd) signSurvivors(ctx context.Context, digest [32]byte, absent []bool) error {
	list := sha256.New()
	for i := range c.options.Parties {
		here := byte(1)
		if absent != nil && absent[i] {
			here = 0
		}
		list.Write([]byte{here})
	}
	statement := list.Sum(digest[:])
	signatures := make([][ed25519.SignatureSize]byte, c.options.Parties)
	err := c.parallel(ctx, -1, func(w *worker, i int) (err error) {
		if absent == nil || !absent[i] {
			signatures[i], err = keyexchange.Sign(c.identities[i], labels.CrowdSurvivors, statement)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.check(ctx, labels.CrowdSurvivors, func(int) []byte { return statement }, signatures,
		absent)
}

// check checks the signatures of all parties, but for those absent, in batches.
func (c *Crowd) check(
	ctx context.Context, label string, statement func(i int) []byte,
	signatures [][ed25519.SignatureSize]byte, absent []bool,
) error {
	var signers []int
	for i := range signatures {
		if absent == nil || !absent[i] {
			signers = append(signers, i)
		}
	}
	c.counts.Signatures += len(signers)
	c.counts.Checks += len(signers)
	c.counts.ChecksApart += len(signers) * c.degree()
	return c.parallel(ctx, -1, func(_ *worker, k int) error {
		if k%batch != 0 || k >= len(signers) {
			return nil
		}
		var b verifier
		for _, i := range signers[k:min(k+batch, len(signers))] {
			key := c.identities[i].Public().(ed25519.PublicKey)
			if err := b.add(key, labelled(label, statement(i)), &signatures[i]); err != nil {
				return err
			}
		}
		return b.verify()
	})
}

// labelled returns what keyexchange.Sign signs.
func labelled(label string, statement []byte) []byte {
	message := make([]byte, 0, 1+len(label)+len(statement))
	message = append(message, byte(len(label)))
	message = append(message, label...)
	return append(message, statement...)
}

// verifier checks signatures of Ed25519 (RFC 8032) together: the sum over all of
// z·(s·B − R − h·A) is the identity, z random numbers of 128 bits (Bernstein 2012 §5). It
// is for signatures made in this process: what single checks and batches say of
// signatures by hostile keys may differ.
type verifier struct {
	scalars []*edwards25519.Scalar
	points  []*edwards25519.Point
	base    *edwards25519.Scalar
}

func (v *verifier) add(key ed25519.PublicKey, message []byte, signature *[64]byte) error {
	a, err := new(edwards25519.Point).SetBytes(key)
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	r, err := new(edwards25519.Point).SetBytes(signature[:32])
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(signature[32:])
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	hash := sha512.New()
	hash.Write(signature[:32])
	hash.Write(key)
	hash.Write(message)
	h, err := new(edwards25519.Scalar).SetUniformBytes(hash.Sum(nil))
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	var random [32]byte
	if _, err := rand.Read(random[:16]); err != nil {
		return err
	}
	z, err := new(edwards25519.Scalar).SetCanonicalBytes(random[:])
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	if v.base == nil {
		v.base = edwards25519.NewScalar()
	}
	v.base.MultiplyAdd(z, s, v.base)
	v.scalars = append(v.scalars, new(edwards25519.Scalar).Negate(z),
		new(edwards25519.Scalar).Negate(new(edwards25519.Scalar).Multiply(z, h)))
	v.points = append(v.points, r, a)
	return nil
}

func (v *verifier) verify() error {
	scalars := append(v.scalars, v.base)
	points := append(v.points, edwards25519.NewGeneratorPoint())
	sum := new(edwards25519.Point).VarTimeMultiScalarMult(scalars, points)
	if sum.MultByCofactor(sum).Equal(edwards25519.NewIdentityPoint()) != 1 {
		return errSignature
	}
	return nil
}
