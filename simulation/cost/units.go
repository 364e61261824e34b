package cost

import (
	"crypto/ed25519"
	"errors"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// Units are the times of single operations on one core, in seconds.
type Units struct {
	KeyPair     float64 `json:"key_pair"`    // X25519 and ML-KEM, of one party
	Agree       float64 `json:"agree"`       // X25519 with one peer
	Encapsulate float64 `json:"encapsulate"` // ML-KEM, with parsing the key
	Decapsulate float64 `json:"decapsulate"`
	Chain       float64 `json:"chain"` // made from what was agreed
	Step        float64 `json:"step"`  // of a chain, with the seed of the mask
	Channels    float64 `json:"channels"`
	Sign        float64 `json:"sign"`
	Verify      float64 `json:"verify"`
	Seal        float64 `json:"seal"`     // a share
	Open        float64 `json:"open"`     // a share
	Split       float64 `json:"split"`    // a secret, for each holder and coefficient
	Combine     float64 `json:"combine"`  // what shares of holders that are new take beside
	Rebuild     float64 `json:"rebuild"`  // a secret, for each share
	Seed        float64 `json:"seed"`     // of a mask, before its first coordinate
	Mask        float64 `json:"mask"`     // a coordinate
	Pack        float64 `json:"pack"`     // a coordinate
	Add         float64 `json:"add"`      // a packed coordinate to a sum
	Hash        float64 `json:"hash"`     // a byte
	Entry       float64 `json:"entry"`    // a party's signed keys in the list of all
	Copy        float64 `json:"copy"`     // a byte of a message that is put together or taken apart
	Training    float64 `json:"training"` // one weight, one row, one step
}

// Reference returns the units of one core of the machine that the project's figures are
// of, a virtual Intel Xeon with AES, SHA and AVX-512: rounded, so that what is simulated
// with them is the same everywhere.
func Reference() Units {
	return Units{
		KeyPair:     90e-6,
		Agree:       36e-6,
		Encapsulate: 53e-6,
		Decapsulate: 52e-6,
		Chain:       1.7e-6,
		Step:        1.9e-6,
		Channels:    1.6e-6,
		Sign:        18e-6,
		Verify:      41e-6,
		Seal:        .6e-6,
		Open:        .6e-6,
		Split:       5.8e-9,
		Combine:     8e-6,
		Rebuild:     .3e-6,
		Seed:        .6e-6,
		Mask:        .52e-9,
		Pack:        1e-9,
		Add:         1.7e-9,
		Hash:        .6e-9,
		Entry:       90e-9,
		Copy:        .62e-9,
		Training:    .5e-9,
	}
}

var errShape = errors.New("cost: the units cannot be measured")

// meter times operations.
type meter struct {
	now  func() time.Time
	each time.Duration // how long each is repeated
	err  error
}

// per returns the seconds that one of count operations of a call takes: the best of
// three passes, so that what else the machine does counts little.
func (m *meter) per(count int, operation func() error) float64 {
	best := 0.
	for range 3 {
		calls, begin := 0, m.now()
		for m.err == nil && (calls == 0 || m.now().Sub(begin) < m.each/3) {
			m.err = operation()
			calls++
		}
		took := m.now().Sub(begin).Seconds() / float64(calls*count)
		if best == 0 || took < best {
			best = took
		}
	}
	return best
}

// Measure measures the units on this machine, each for a while (0: 20 ms), with the
// given clock, such as time.Now.
func Measure(now func() time.Time, each time.Duration) (Units, error) {
	if each <= 0 {
		each = 20 * time.Millisecond
	}
	m := &meter{now: now, each: each}
	u, err := m.keys()
	if err != nil {
		return u, err
	}
	if err := m.secrets(&u); err != nil {
		return u, err
	}
	if err := m.vectors(&u); err != nil {
		return u, err
	}
	return u, m.err
}

// keys measures what set-up and signatures take.
func (m *meter) keys() (u Units, err error) {
	identity, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		return u, err
	}
	other, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		return u, err
	}
	key := identity.Public().(ed25519.PublicKey)
	roster, err := keyexchange.NewRoster([]keyexchange.Member{
		{Name: "a", Key: key},
		{Name: "b", Key: other.Public().(ed25519.PublicKey)},
	})
	if err != nil {
		return u, err
	}
	own, err := keyexchange.GenerateKey(nil)
	if err != nil {
		return u, err
	}
	public, err := own.Public()
	if err != nil {
		return u, err
	}
	kem, err := keyexchange.GenerateDecapsulationKey(nil)
	if err != nil {
		return u, err
	}
	text, err := kem.Public()
	if err != nil {
		return u, err
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
	if m.err != nil {
		return u, m.err
	}
	var ciphertext []byte
	u.Encapsulate = m.per(1, func() error {
		parsed, err := keyexchange.ParseEncapsulationKey(text)
		if err != nil {
			return err
		}
		ciphertext, err = agreed.Encapsulate(parsed, nil)
		return err
	})
	u.Decapsulate = m.per(1, func() error { return agreed.Decapsulate(kem, ciphertext) })
	var chain *keyexchange.Chain
	u.Chain = m.per(1, func() error {
		chain = agreed.Chain([32]byte{}, roster, 0, 1)
		return nil
	})
	u.Step = m.per(1, func() error {
		secret := chain.Next()
		secret.MaskSeed([32]byte{})
		return nil
	})
	u.Channels = m.per(1, func() error { chain.Channels(); return nil })
	statement := make([]byte, 64)
	var signature [64]byte
	u.Sign = m.per(1, func() (err error) {
		signature, err = keyexchange.Sign(identity, "cost", statement)
		return err
	})
	u.Verify = m.per(1, func() error {
		return keyexchange.Verify(key, "cost", statement, &signature)
	})
	return u, m.err
}

// secrets measures sharing and sealing.
func (m *meter) secrets(u *Units) error {
	var nonce keyexchange.Nonce
	var key keyexchange.SealKey
	data, share := make([]byte, 100), make([]byte, 32)
	var sealed []byte
	u.Seal = m.per(1, func() (err error) {
		sealed, err = keyexchange.Seal(&nonce, &key, share, data)
		return err
	})
	u.Open = m.per(1, func() error {
		_, err := keyexchange.Open(&key, sealed, data)
		return err
	})
	secret, err := shamir.GenerateSecret(nil)
	if err != nil {
		return err
	}
	const holders, threshold = 100, 51
	indices := make([]uint32, holders)
	for i := range indices {
		indices[i] = uint32(i + 1)
	}
	var shares []shamir.Share
	u.Split = m.per(holders*threshold, func() (err error) {
		shares, err = shamir.Split(nil, secret, threshold, indices)
		return err
	})
	if m.err != nil {
		return m.err
	}
	rebuild := func(of int) float64 {
		return m.per(1, func() error {
			combiner, err := shamir.NewCombiner(of, indices[:of])
			if err != nil {
				return err
			}
			_, err = combiner.Combine(shares[:of])
			return err
		})
	}
	u.Combine = rebuild(2)
	u.Rebuild = max(0, rebuild(threshold)-u.Combine) / threshold
	return m.err
}

// vectors measures masks and training.
func (m *meter) vectors(u *Units) error {
	const long = 1 << 14
	seed := &masking.Seed{}
	small, err := masking.NewVector(masking.Layout{{Length: 1, Bits: 24}})
	if err != nil {
		return err
	}
	u.Seed = m.per(1, func() error { small.AddMask(seed); return nil })
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
	entry := make([]byte, 128)
	u.Entry = m.per(1000, func() error {
		parsed, found := make([]*[128]byte, 0, 1000), map[int]*[128]byte{}
		for k := range 1000 {
			parsed = append(parsed, (*[128]byte)(append([]byte(nil), entry...)))
			found[k] = parsed[k]
		}
		if len(found) != len(parsed) {
			return errShape
		}
		return nil
	})
	// Messages are many, and none is in a cache when it is put together.
	const messages, size = 128, 1 << 18
	store, held := make([]byte, messages*size), make([][]byte, messages)
	u.Copy = m.per(len(store), func() error {
		for k := range held {
			held[k] = append(make([]byte, 0, size), store[k*size:(k+1)*size]...)
		}
		return nil
	})
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
	return m.err
}
