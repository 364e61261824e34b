package job

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
)

// Of a clip in units, with a bound on norms.
const (
	leastUnits           = 14       // log₂: rounding is then below the noise of keys
	unitsByRoot          = 52       // times the root of the length: keys' noise is an eighth of that
	ampleBits            = 48       // in which every noise fits that takes any
	keyNoise             = 6.4      // the least deviation of what hides a key
	fewestBits, mostBits = 8, 64    // of privacy.bits
	sameUnits            = 1 - 1e-9 // what the search for a scale may miss
)

// release settles noise in sums of the given bits.
func (x *settling) release(o releaseOptions) (*privacy.Mechanism, float64, error) {
	release := newRelease(o)
	if release.Noise.Multiplier == 0 {
		var err error
		release.Noise.Multiplier, err = release.Calibrate(x.out.budget, x.charges())
		if err != nil {
			return nil, 0, x.MistakeOf(err)
		}
	}
	m, err := release.Mechanism()
	return m, release.Noise.Multiplier, x.MistakeOf(err)
}

// units returns how many bits a coordinate of a sum has if a job with a bound on norms declares
// none: enough for a clip that is long against its rounding and the noise that hides keys, so that
// the factor by which a cheat may exceed it is small, and not more than proofs have room for.
func (x *settling) units(o releaseOptions) (int, error) {
	o.Noise.Bits = ampleBits
	m, multiplier, err := x.release(o)
	if err != nil {
		return 0, err
	}
	shares := float64(o.Promise.Honest())
	if x.noisyMembers() { // theirs has to hide that of the keys in a sum
		shares = max(shares, float64(o.Parties))
	}
	least := max(math.Exp2(leastUnits), unitsByRoot*math.Sqrt(float64(o.Length)),
		keyNoise*math.Sqrt(shares)/multiplier)
	if x.weights != nil { // the least of them is to be long enough
		least = max(1, least/float64(slices.Min(x.weights)))
	}
	want := math.Exp2(math.Ceil(math.Log2(least)))
	norm, err := unitNorm(m)
	if err != nil {
		return 0, err
	}
	bits := ampleBits - max(0, int(math.Log2(norm/want)))
	o.Noise.Multiplier = multiplier
	for ; bits < ampleBits; bits++ {
		o.Noise.Bits = bits
		if m, _, err = x.release(o); err != nil {
			continue
		}
		if norm, err = unitNorm(m); err == nil && norm >= want*sameUnits {
			break
		}
	}
	for b := bits; b >= fewestBits; b-- {
		if o.Noise.Bits = b; x.hasRoom(o) {
			return b, nil
		}
	}
	return bits, nil // and what is wrong comes out
}

// hasRoom reports whether sums have room for a noise that hides keys, and a proof for a party's
// vector.
func (x *settling) hasRoom(o releaseOptions) bool {
	m, _, err := x.release(o)
	if err != nil {
		return false
	}
	own := *x.out.oneshot
	layout, err := m.Layout()
	if err != nil || Fill(&own, layout, m, x.Sum.Bounded) != nil {
		return false
	}
	_, err = own.Parameters()
	return err == nil
}

// otherBits returns what to write where a clip in units is too long for a proof or a sum, or too
// short for its noise to hide keys.
func (x *settling) otherBits(cause error) error {
	reason := cause.Error()
	var e *fault.Error
	if errors.As(cause, &e) {
		reason = e.Reason
	}
	o, step, than := x.released, -1, "fewer"
	if errors.Is(cause, oneshot.ErrQuiet) {
		step, than = 1, "more"
	}
	instead := "write"
	if x.Sum.Bounded {
		instead = "leave it out, or write"
	}
	o.Noise.Multiplier = x.out.multiplier
	for bits := o.Noise.Bits + step; bits >= fewestBits && bits <= mostBits; bits += step {
		if o.Noise.Bits = bits; x.hasRoom(o) {
			return x.Mistake("privacy.bits", fmt.Sprintf("%s %d or %s", instead, bits, than),
				"%d are not for these sums: %s", x.released.Noise.Bits, reason)
		}
	}
	return x.Mistake("privacy.noise_by", `write "committee": what hides a party is then no part of `+
		"its own vector", "a party's share of the noise does not fit: %s", reason)
}
