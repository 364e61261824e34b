package oneshot

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"pgregory.net/rapid"
)

// must is for what cannot fail in a test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func chacha(seed int) io.Reader {
	return mathrand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
}

// people makes a list of n identities.
func people(kind string, n int) (*keyexchange.Roster, []ed25519.PrivateKey) {
	var members []keyexchange.Entry
	var keys []ed25519.PrivateKey
	for i := range n {
		seed := [32]byte{byte(len(kind)), byte(i), byte(i >> 8), byte(i >> 16)}
		key := ed25519.NewKeyFromSeed(seed[:])
		keys = append(keys, key)
		members = append(members,
			keyexchange.Entry{Name: fmt.Sprintf("%s-%d", kind, i), Key: key.Public().(ed25519.PublicKey)})
	}
	return must(keyexchange.NewRoster(members)), keys
}

// gaussian is the law of σ for m parties together, so that each deviates by sigma.
func gaussian(sigma int64, m int) noise.Law {
	return must(noise.DiscreteGaussian(new(big.Rat).SetInt64(sigma * sigma * int64(m))))
}

// world is a configuration with everybody in it.
type world struct {
	config  *Config
	keys    []ed25519.PrivateKey // the parties'
	members []*Member
	server  *Server
	opening []byte

	convicted []*PartyError  // by the batch that was settled last
	liars     []*MemberError // by the noise that they dealt

	// noise, if it is not nil, changes what a member deals; nil keeps it back. Where it is drawn under
	// audit, candidates, if it is not nil, changes what it was to be drawn from.
	noise      func(k int, message []byte) []byte
	candidates func(k int, message []byte) []byte

	anew bool // nothing is replayed
}

// newWorld makes a world of n parties and c members.
func newWorld(n, c int, t Terms) *world {
	roster, keys := people("party", n)
	committee, memberKeys := people("member", c)
	w := &world{config: &Config{Label: "test", Roster: roster, Committee: committee, Terms: t},
		keys: keys}
	w.server = must(NewServer(w.config, 0))
	for k := range c {
		w.members = append(w.members, must(NewMember(w.config, memberKeys[k], chacha(k))))
	}
	return w
}

func (w *world) party(i int) *Party {
	return must(NewParty(w.config, w.keys[i], chacha(100+i)))
}

// begin opens a round with the keys of the members for which has is true, nil being all.
func (w *world) begin(has func(k int) bool) error {
	invite := w.server.Invite()
	for k, m := range w.members {
		if has == nil || has(k) {
			if err := w.server.Receive(must(m.Receive(invite))); err != nil {
				return err
			}
		}
	}
	var err error
	if w.opening, err = w.server.Open([]byte("model")); err != nil {
		return err
	}
	drawn, err := w.drawn(has)
	if err != nil {
		return err
	}
	for k := range w.members {
		if has == nil || has(k) {
			dealt := drawn[k]
			if w.noise != nil {
				dealt = w.noise(k, dealt)
			}
			if dealt == nil {
				continue
			}
			if err := w.server.Receive(dealt); err != nil {
				return err
			}
		}
	}
	return nil
}

// submit has parties send random values, one every step'th, and returns their sum.
func (w *world) values(i int) []int64 {
	random := mathrand.New(mathrand.NewPCG(uint64(i), 1))
	limit := int64(1) << (w.config.Bits - 1)
	values := make([]int64, w.config.Length)
	for k := range values {
		values[k] = random.Int64N(2*limit) - limit
	}
	return values
}

func (w *world) submit(i int) ([]byte, error) {
	return w.once("honest", i, func() ([]byte, error) {
		model := broadcastDigest([]byte("model"))
		return w.party(i).SubmitDigest(w.opening, model, w.made(i), w.values(i))
	})
}

// made is the round of the broadcast that a party's values are from: as many rounds ago as its
// index says, where that is allowed.
func (w *world) made(i int) uint64 {
	return w.server.round - uint64(i%(w.config.Stale+1))
}

// deliver sends the waiting submissions to the members and settles them. change may
// alter what a member answers, nil what it says.
func (w *world) deliver(change func(k int, disputes []byte) []byte) error {
	envelopes, err := w.server.Batch()
	if err != nil {
		return err
	}
	for _, e := range envelopes {
		answer, err := w.members[e.To].Receive(e.Message)
		if errors.Is(err, ErrLost) {
			continue
		}
		if err != nil {
			return err
		}
		if change != nil {
			answer = change(e.To, answer)
		}
		if answer == nil {
			continue
		}
		if err := w.server.Receive(answer); err != nil && !errors.Is(err, ErrExcluded) {
			return err
		}
	}
	settled, err := w.server.Settle()
	if err != nil {
		return err
	}
	w.convicted, w.liars = nil, nil
	for _, err := range w.server.Convicted() {
		switch named := err.(type) {
		case *PartyError:
			w.convicted = append(w.convicted, named)
		case *MemberError:
			w.liars = append(w.liars, named)
		}
	}
	for _, e := range envelopes {
		if _, err := w.members[e.To].Receive(settled); err != nil && !errors.Is(err, ErrLost) {
			return err
		}
	}
	return nil
}

// finish closes the round and takes the key off. change may alter a member's answer to
// the closing (step 0) and to the certificate (step 1), nil silences it.
func (w *world) finish(change func(step, k int, answer []byte) []byte) ([]int64, error) {
	closing, err := w.server.Close()
	if err != nil {
		return nil, err
	}
	if err := w.ask(0, closing, change); err != nil {
		return nil, err
	}
	certificate, err := w.server.Certificate()
	if err != nil {
		return nil, err
	}
	if err := w.ask(1, certificate, change); err != nil {
		return nil, err
	}
	return w.server.Sum()
}

func (w *world) ask(
	step int, message []byte, change func(step, k int, answer []byte) []byte,
) error {
	for k, m := range w.members {
		if !w.server.open.members.Has(k) {
			continue
		}
		answer, err := m.Receive(message)
		if errors.Is(err, ErrLost) || errors.Is(err, ErrPhase) {
			continue
		}
		if err != nil {
			return err
		}
		if change != nil {
			answer = change(step, k, answer)
		}
		if answer == nil {
			continue
		}
		if err := w.server.Receive(answer); err != nil && !errors.Is(err, ErrExcluded) {
			return err
		}
	}
	return nil
}

// total is the sum of the parties' values.
func (w *world) total(parties ...int) []int64 {
	sum := make([]int64, w.config.Length)
	for _, i := range parties {
		for k, v := range w.values(i) {
			sum[k] += v
		}
	}
	return sum
}

// near checks that a sum is exact, or within the tail of its noise.
func (w *world) near(t rapid.TB, sum, want []int64) {
	t.Helper()
	s := must(w.config.settle())
	if len(sum) != len(want) {
		t.Fatalf("%d values, want %d", len(sum), len(want))
	}
	tail := int64(0)
	if s.Noise.Family() != 0 {
		tail = s.tail
	}
	for k := range sum {
		if d := sum[k] - want[k]; d > tail || d < -tail {
			t.Fatalf("value %d is off by %d", k, d)
		}
	}
}
