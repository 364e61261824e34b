package cost

import (
	"crypto/ed25519"
	"errors"
	"math"
	"time"

	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// errMeasure is for an operation that came to something else than it must, by a fault of
// this module.
var errMeasure = errors.New("cost: the units cannot be measured")

// meter times operations.
type meter struct {
	now  func() time.Time
	each time.Duration // how long each is repeated
	err  error
}

// passes is how many times an operation's time is taken, if that is short.
const passes = 20

// per returns the seconds that one of count operations of a call takes: the best of
// [passes] passes, and of three at least. A pass is about as long as a party's round, so that
// garbage is collected in some passes and not in the best one: how long a collection takes is
// a matter of everything else on the heap, and not of the operation.
func (m *meter) per(count int, operation func() error) float64 {
	best := math.Inf(1)
	for pass, start := 0, m.now(); pass < 3 || pass < passes && m.now().Sub(start) < m.each; pass++ {
		calls, begin := 0, m.now()
		for m.err == nil && (calls == 0 || m.now().Sub(begin) < m.each/passes) {
			m.err = operation()
			calls++
		}
		best = min(best, m.now().Sub(begin).Seconds()/float64(calls*count))
	}
	return best
}

// Measure measures the units on this machine, each for a while (0: 20 ms), with the
// given clock, such as time.Now. It fails with the errors of what it measures.
func Measure(now func() time.Time, each time.Duration) (Units, error) {
	if each <= 0 {
		each = 20 * time.Millisecond
	}
	var u Units
	m := &meter{now: now, each: each}
	for _, part := range []func(*Units) error{m.keys, m.pairs, m.secrets, m.vectors, m.lists,
		m.shares, m.training} {
		if err := part(&u); err != nil {
			return u, err
		}
		if m.err != nil {
			return u, m.err
		}
	}
	return u, nil
}

// pair makes a roster of two.
func pair() (*keyexchange.Roster, error) {
	members := []keyexchange.Entry{{Name: "a"}, {Name: "b"}}
	for i := range members {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, err
		}
		members[i].Key = identity.Public().(ed25519.PublicKey)
	}
	return keyexchange.NewRoster(members)
}

// keys measures what set-up and signatures take.
func (m *meter) keys(u *Units) error {
	identity, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		return err
	}
	key := identity.Public().(ed25519.PublicKey)
	roster, err := pair()
	if err != nil {
		return err
	}
	own, err := keyexchange.GenerateKey(nil)
	if err != nil {
		return err
	}
	public, err := own.Public()
	if err != nil {
		return err
	}
	kem, err := keyexchange.GenerateDecapsulationKey(nil)
	if err != nil {
		return err
	}
	text, err := kem.Public()
	if err != nil {
		return err
	}
	u.KeyPair = m.per(1, func() error {
		k, err := keyexchange.GenerateKey(nil)
		if err != nil {
			return err
		}
		if _, err := k.Public(); err != nil {
			return err
		}
		_, err = keyexchange.GenerateDecapsulationKey(nil)
		return err
	})
	var agreed *keyexchange.Agreement
	u.Agree = m.per(1, func() (err error) {
		agreed, err = own.Agree(public)
		return err
	})
	var parsed *keyexchange.EncapsulationKey
	u.ParseKey = m.per(1, func() (err error) {
		parsed, err = keyexchange.ParseEncapsulationKey(text)
		return err
	})
	if m.err != nil {
		return m.err
	}
	var ciphertext []byte
	u.Encapsulate = m.per(1, func() (err error) {
		ciphertext, err = agreed.Encapsulate(parsed, nil)
		return err
	})
	u.Decapsulate = m.per(1, func() error { return agreed.Decapsulate(kem, ciphertext) })
	var chain *keyexchange.Chain
	u.Chain = m.per(1, func() error {
		chain = agreed.Chain([32]byte{}, roster, 0, 1)
		return nil
	})
	u.Channels = m.per(1, func() error { chain.Channels(); return nil })
	statement := make([]byte, 64)
	var signature [64]byte
	u.Sign = m.per(1, func() (err error) {
		signature, err = keyexchange.Sign(identity, "cost", statement)
		return err
	})
	verify := func() float64 {
		return m.per(1, func() error { return keyexchange.Verify(key, "cost", statement, &signature) })
	}
	u.Verify = verify()
	if m.err != nil {
		return m.err
	}
	statement = make([]byte, 1<<15)
	if signature, err = keyexchange.Sign(identity, "cost", statement); err != nil {
		return err
	}
	u.Statement = max(0, verify()-u.Verify) / float64(len(statement))
	return nil
}

// pairs measures what the mask of a pair takes before its first coordinate. Each operation is
// measured where a submission does it: after the others of the same pair, and with another
// pair's chain each time. Repeated alone, one may take nearly twice as long on one processor
// and not on another.
func (m *meter) pairs(u *Units) error {
	own, err := keyexchange.GenerateKey(nil)
	if err != nil {
		return err
	}
	public, err := own.Public()
	if err != nil {
		return err
	}
	agreed, err := own.Agree(public)
	if err != nil {
		return err
	}
	roster, err := pair()
	if err != nil {
		return err
	}
	v, err := masking.NewVector(masking.Layout{{Length: 1, Bits: 24}})
	if err != nil {
		return err
	}
	chains := make([]*keyexchange.Chain, 256)
	for i := range chains {
		chains[i] = agreed.Clone().Chain([32]byte{byte(i)}, roster, 0, 1)
	}
	submit := func(derive, mask bool) float64 {
		return m.per(len(chains), func() error {
			for _, chain := range chains {
				secret := chain.Next()
				if !derive {
					continue
				}
				seed := masking.Seed(secret.MaskSeed([32]byte{}))
				if mask {
					v.AddMask(&seed)
				}
			}
			return nil
		})
	}
	u.Step = submit(false, false)
	derived := submit(true, false)
	u.Derive = max(0, derived-u.Step)
	u.Seed = max(0, submit(true, true)-u.Step-u.Derive)
	return nil
}

// shareData is the length of what is sealed with a share, but not sent.
const shareData = 119

// secrets measures sharing and sealing.
func (m *meter) secrets(u *Units) error {
	var nonce keyexchange.Nonce
	var key keyexchange.SealKey
	secret, err := shamir.GenerateSecret(nil)
	if err != nil {
		return err
	}
	var sealed []byte
	u.Seal = m.per(1, func() (err error) {
		sealed, err = keyexchange.Seal(&nonce, &key, secret[:], make([]byte, shareData))
		return err
	})
	u.Open = m.per(1, func() error {
		share, err := keyexchange.Open(&key, sealed, make([]byte, shareData))
		if err == nil {
			_, err = shamir.ParseSecret(share)
		}
		return err
	})
	const holders, threshold = 100, 51
	indices := make([]uint32, holders)
	for i := range indices {
		indices[i] = uint32(i + 1)
	}
	var shares []shamir.Share
	split := func(among int) float64 {
		return m.per(1, func() (err error) {
			shares, err = shamir.Split(nil, secret, threshold, indices[:among])
			return err
		})
	}
	u.Coefficient = split(threshold) // less what Split is
	all := split(holders)
	u.Split = (all - u.Coefficient) / ((holders - threshold) * threshold)
	u.Coefficient = max(0, all/threshold-holders*u.Split)
	var combiner *shamir.Combiner
	prepare := func(of int) float64 {
		return m.per(1, func() (err error) {
			combiner, err = shamir.NewCombiner(of, indices)
			return err
		})
	}
	u.Combine = prepare(2)
	u.Difference = max(0, prepare(threshold)-u.Combine) / (threshold * threshold)
	if m.err != nil {
		return m.err
	}
	u.Rebuild = m.per(threshold, func() error {
		_, err := combiner.Combine(shares)
		return err
	})
	u.Leave = m.per(threshold, func() error {
		_, err := combiner.Without(1)
		return err
	})
	return nil
}

// vectors measures masks and sums.
func (m *meter) vectors(u *Units) error {
	const long = 1 << 14
	seed := &masking.Seed{}
	v, err := masking.NewVector(masking.Layout{{Length: long, Bits: 24}})
	if err != nil {
		return err
	}
	u.Mask = m.per(long, func() error { v.AddMask(seed); return nil })
	packed := v.AppendPacked(nil)
	u.Pack = m.per(long, func() error { packed = v.AppendPacked(packed[:0]); return nil })
	u.Add = m.per(long, func() error { return v.AddPacked(packed) })
	block := make([]byte, 1<<14)
	u.Hash = m.per(len(block), func() error { keyexchange.EncapsulationDigest(block); return nil })
	m.unmask(u)
	m.tree(u)
	// Messages are many, and none is in a cache when it is put together.
	const messages, size = 512, 1 << 16
	store, held := make([]byte, messages*size), make([][]byte, messages)
	u.Copy = m.per(len(store), func() error {
		for k := range held {
			held[k] = append(make([]byte, 0, size), store[k*size:(k+1)*size]...)
		}
		return nil
	})
	return nil
}

// unmask measures how the server of a one-message sum takes the key off.
func (m *meter) unmask(u *Units) {
	const degree, modulus = 2048, 0x1ffff9001 // of 33 bits
	r := ring.New(degree, modulus)
	public, factor := r.NewExpander(new([32]byte)), r.NewFactor(make([]int64, degree))
	sum, mask := make([]uint64, degree), make([]uint64, degree)
	u.Unmask = m.per(degree, func() error {
		public.Expand(mask, 0)
		r.MulInto(mask, mask, factor)
		r.SubFrom(sum, mask)
		return nil
	})
}

// training measures gradient descent.
func (m *meter) training(u *Units) error {
	rows, _, err := learning.Census(200, 1)
	if err != nil {
		return err
	}
	model := learning.Logistic{Features: rows.Features}
	sgd := learning.SGD{Rate: 1, Steps: 10}
	u.Training = m.per(10*rows.Len()*rows.Features, func() error {
		_, err := sgd.Train(model, model.Init(0), rows, 0)
		return err
	})
	return nil
}
