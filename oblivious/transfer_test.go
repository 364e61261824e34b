package oblivious

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"testing"
	"testing/iotest"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// Every sum of corrections is the sum of the parties' own terms and of one of each
// two candidates, and nothing else: terms are made recognisable.
func TestTransferSum(t *testing.T) {
	const n, d, bits = 4, 300, 33
	parties := session(t, &Config{Parties: n, Length: d, Bits: bits, Noise: scale(2)}, seeded(1))
	for i, p := range parties {
		// Own terms come last. Candidates of choice 0 are drawn first.
		p.terms = &fixed{value: func(call int) int64 {
			switch call %= 2*n - 1; {
			case call == 2*n-2:
				return int64(1000 * (i + 1))
			case call%2 == 0:
				return -1 // choice 0
			}
			return 1 << 20
		}}
	}
	for round := uint64(1); round <= 3; round++ {
		corrections, err := Exchange(parties, round)
		if err != nil {
			t.Fatal(err)
		}
		ones := 0.0
		for k, x := range sum(corrections, bits) {
			// 10,000 of own terms, 12 choices.
			rest := signed(x, bits) - 10000
			c := (rest + 12) / (1<<20 + 1)
			if rest != c<<20-(12-c) || c < 0 || c > 12 {
				t.Fatalf("round %d, coordinate %d: %d is not a sum of chosen terms", round, k, rest)
			}
			ones += float64(c)
		}
		// Bin(12·300, 1/2): σ = 30; 6σ is a false alarm of 2e-9.
		if math.Abs(ones-1800) > 180 {
			t.Errorf("round %d: %g choices of 3600 are 1", round, ones)
		}
		// A correction alone looks uniform: its top bit, in 300 coordinates.
		top := 0.0
		for _, x := range corrections[0] {
			top += float64(x >> (bits - 1))
		}
		if math.Abs(top-150) > 6*math.Sqrt(75) {
			t.Errorf("round %d: %g of 300 corrections have the top bit", round, top)
		}
	}
}

// The sum carries n Laplace variables: variance and kurtosis over many coordinates,
// for all ways of sampling.
func TestTransferLaw(t *testing.T) {
	const n, d, bits = 3, 6000, 24
	for sampling := Exact; sampling <= ReferenceContinuous; sampling++ {
		config := &Config{Parties: n, Length: d, Bits: bits, Noise: Noise{big.NewRat(20, 1), sampling}}
		corrections, err := Exchange(session(t, config, seeded(byte(10+sampling))), 1)
		if err != nil {
			t.Fatal(err)
		}
		var m1, m2 float64
		for _, x := range sum(corrections, bits) {
			v := float64(signed(x, bits))
			m1 += v / d
			m2 += v * v / d
		}
		// A Laplace variable has variance 2λ² (discrete: 1/6 less; rounding each of
		// n² continuous terms: up to 1/12 more) and excess kurtosis 3. Five standard
		// errors, a false alarm of 6e-7 for each of the two.
		want := n * 2 * 20 * 20.
		if se := math.Sqrt(want / d); math.Abs(m1) > 5*se {
			t.Errorf("sampling %d: mean %.3g, standard error %.3g", sampling, m1, se)
		}
		if se := want * math.Sqrt((3./n+2)/d); math.Abs(m2-want) > 5*se {
			t.Errorf("sampling %d: variance %.5g, want %.5g ± %.3g", sampling, m2, want, se)
		}
	}
}

func TestTransferCoins(t *testing.T) {
	const n, d, coins, bits = 3, 40, 9, 10
	config := &Config{Parties: n, Length: d, Bits: bits, Coins: coins}
	corrections, err := Exchange(session(t, config, seeded(20)), 1)
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, x := range sum(corrections, bits) {
		if x > n*(n-1)*coins {
			t.Fatalf("%d coins of %d", x, n*(n-1)*coins)
		}
		total += float64(signed((x-config.Centre())&mask(bits), bits))
	}
	// 2160 coins of variance 1/4; 6σ.
	if math.Abs(total) > 6*math.Sqrt(2160/4) {
		t.Errorf("the recentred coins add up to %g", total)
	}
}

// Without one party's correction the others' masks stay in the sum, which is useless
// and tells nothing.
func TestTransferDropOut(t *testing.T) {
	const n, d, bits = 3, 400, 16
	corrections, err := Exchange(session(t,
		&Config{Parties: n, Length: d, Bits: bits, Noise: scale(2)}, seeded(23)), 1)
	if err != nil {
		t.Fatal(err)
	}
	var cells [16]float64
	for _, x := range sum(corrections[1:], bits) {
		cells[x>>(bits-4)]++
	}
	chi := 0.0
	for _, c := range cells {
		chi += (c - d/16) * (c - d/16) / (d / 16)
	}
	if chi > 56.5 { // χ² with 15 degrees of freedom: a false alarm of 1e-6
		t.Errorf("the sum of those who stayed is not uniform: χ² = %.1f", chi)
	}
}

// A sender whose two candidates are the same knows what was chosen, so the choice
// is never counted; the sum still has the honest party's n terms in it.
func TestTransferEqualCandidates(t *testing.T) {
	const n, bits = 3, 16
	parties := session(t, &Config{Parties: n, Length: 1, Bits: bits, Noise: scale(2)}, seeded(21))
	parties[0].terms = &fixed{value: func(int) int64 { return 100 }}
	for _, p := range parties[1:] {
		p.terms = &fixed{value: func(int) int64 { return 0 }}
	}
	corrections, err := Exchange(parties, 1)
	if err != nil {
		t.Fatal(err)
	}
	if s := sum(corrections, bits)[0]; s != 100*n {
		t.Fatalf("the colluders, who know their terms, are left with %d, want the n terms of party 0", s)
	}
}

func TestTransferClaim(t *testing.T) {
	config := &Config{Parties: 5, Length: 7, Bits: 20, Noise: Noise{Scale: big.NewRat(3, 1)}}
	claim := func() (Claim, error) { return session(t, config, seeded(22))[0].Claim(big.NewRat(1, 1)) }
	got, err := claim()
	if err != nil || got.Delta != 0 || got.Epsilon < 1./3 || got.Epsilon > 1./3+1e-15 {
		t.Errorf("exact: %+v, %v", got, err)
	}
	config.Noise.Sampling = Table
	if got, err = claim(); err != nil || got.Delta <= 0 || got.Delta > 1e-27 {
		t.Errorf("table: %+v, %v", got, err)
	}
	config.Noise.Sampling = ReferenceContinuous
	if _, err = claim(); !errors.Is(err, ErrNoBound) {
		t.Errorf("reference: %v", err)
	}
	config.Noise, config.Coins = Noise{}, 3
	if _, err = claim(); !errors.Is(err, ErrNoBound) {
		t.Errorf("coins: %v", err)
	}
}

func TestConfig(t *testing.T) {
	good := Config{Parties: 3, Length: 2, Bits: 16, Noise: scale(4)}
	if err := good.Validate(); err != nil || good.MaxMessage() == 0 {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"parties":  func(c *Config) { c.Parties = 1 },
		"many":     func(c *Config) { c.Parties = maxParties + 1 },
		"length":   func(c *Config) { c.Length = 0 },
		"long":     func(c *Config) { c.Length = maxTransfers + 1 },
		"bits":     func(c *Config) { c.Bits = 65 },
		"no bits":  func(c *Config) { c.Bits = 0 },
		"narrow":   func(c *Config) { c.Bits = 8 },
		"label":    func(c *Config) { c.Label = string(make([]byte, 256)) },
		"both":     func(c *Config) { c.Coins = 1 },
		"coins":    func(c *Config) { c.Noise, c.Coins = Noise{}, -1 },
		"overflow": func(c *Config) { c.Noise, c.Coins, c.Length = Noise{}, 1<<30, math.MaxInt>>1 },
		"no scale": func(c *Config) { c.Noise.Scale = nil },
		"scale":    func(c *Config) { c.Noise.Scale = new(big.Rat) },
		"sampling": func(c *Config) { c.Noise.Sampling = 3 },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := NewTransfer(&bad, 0, make([]keyexchange.PairSecret, 3), nil); !errors.Is(err,
			ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewTransfer(&good, 0, make([]keyexchange.PairSecret, 3), nil); !errors.Is(err,
		ErrConfig) {
		t.Error("zero secrets:", err)
	}
	wide := Config{Parties: 3, Length: 1, Bits: 60, Noise: scale(1 << 30)}
	if _, err := NewTransfer(&wide, 0, pairSecrets(3)[0], nil); !errors.Is(err, ErrConfig) {
		t.Error("λ = 2^30:", err)
	}
	x := []uint64{5, 65535}
	if err := Add(x, []uint64{1, 1}, 16); err != nil || x[0] != 6 || x[1] != 0 {
		t.Error(x, err)
	}
	for _, bad := range [][]uint64{{1}, {1, 1 << 16}} {
		if err := Add(x, bad, 16); !errors.Is(err, ErrLength) {
			t.Error(err)
		}
	}
}

// The noise bound holds, and is not absurd.
func TestNoiseBound(t *testing.T) {
	for _, n := range []int{2, 10, 100} {
		config := &Config{Parties: n, Length: 1, Bits: 40, Noise: scale(100)}
		bound, err := config.NoiseBound()
		// One Laplace variable of n exceeds λ·40·ln2 with probability 2^-40; the sum
		// of n has a standard deviation of λ·√(2n).
		least, most := 100*40*math.Ln2, 100*(41*math.Ln2+14*math.Sqrt(float64(n)))
		if err != nil || float64(bound) < least || float64(bound) > most {
			t.Errorf("n = %d: %d, %v, want %.0f to %.0f", n, bound, err, least, most)
		}
	}
}

// deliver gives a party messages that must be taken, and returns the answers.
func deliver(t *testing.T, p *Transfer, messages ...[]byte) []protocol.Envelope {
	t.Helper()
	var answers []protocol.Envelope
	for _, m := range messages {
		a, err := p.Receive(m)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a...)
	}
	return answers
}

// Two parties, step by step: what comes out of order, twice, cut, changed, for
// somebody else or from another session is refused, and the sum is the one that it would
// have been.
func TestTransferRefuses(t *testing.T) {
	const bits = 16
	config := &Config{Label: "a", Parties: 2, Length: 2, Bits: bits, Noise: scale(2)}
	parties := session(t, config, seeded(30))
	for _, p := range parties {
		p.terms = &fixed{value: func(int) int64 { return 1 }}
	}
	a, b := parties[0], parties[1]
	refuse := func(p *Transfer, message []byte, want error) {
		t.Helper()
		if _, err := p.Receive(message); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	// Whatever is done to a message on its way.
	changed := func(p *Transfer, message []byte) {
		t.Helper()
		for k := 0; k < len(message); k += 1 + k/10 {
			refuse(p, message[:k], ErrEncoding)
			bad := bytes.Clone(message)
			bad[k] ^= 1
			if _, err := p.Receive(bad); err == nil || errors.Is(err, ErrCheck) {
				t.Errorf("byte %d changed: %v", k, err)
			}
		}
		refuse(p, append(bytes.Clone(message), 0), ErrEncoding)
	}

	if _, err := a.Begin(1); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	fromA, err := a.Setup()
	if err != nil || len(fromA) != 1 || fromA[0].To != 1 {
		t.Fatal(fromA, err)
	}
	refuse(b, fromA[0].Message, ErrPhase)
	fromB, _ := b.Setup()
	if _, err := b.Setup(); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	changed(b, fromA[0].Message)
	if _, err := b.Begin(1); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	refuse(a, fromA[0].Message, ErrSender)
	deliver(t, b, fromA[0].Message)
	deliver(t, a, fromB[0].Message)
	refuse(b, fromA[0].Message, ErrDuplicate)

	if _, err := a.Correction(); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	for _, bad := range []uint64{0, maxSkip + 2, math.MaxUint64} {
		if _, err := a.Begin(bad); !errors.Is(err, ErrRound) {
			t.Errorf("round %d: %v", bad, err)
		}
	}
	fromA, _ = a.Begin(2)
	refuse(b, fromA[0].Message, ErrRound)
	fromB, _ = b.Begin(2)
	changed(b, fromA[0].Message)
	offer := deliver(t, b, fromA[0].Message)
	refuse(b, fromA[0].Message, ErrDuplicate)
	changed(a, offer[0].Message)
	deliver(t, a, offer[0].Message)
	refuse(a, offer[0].Message, ErrDuplicate)
	if _, err := a.Correction(); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	if m := a.Missing(); len(m) != 1 || m[0] != 1 {
		t.Error(m)
	}
	deliver(t, b, deliver(t, a, fromB[0].Message)[0].Message)
	var corrections [][]uint64
	for _, p := range parties {
		c, err := p.Correction()
		if err != nil {
			t.Fatal(err)
		}
		corrections = append(corrections, c)
	}
	if s := sum(corrections, bits); s[0] != 4 || s[1] != 4 {
		t.Fatal(s)
	}
	// Old messages in a new round, and a round given up for another.
	a.Begin(3)
	b.Begin(3)
	refuse(b, fromA[0].Message, ErrRound)
	for _, p := range parties {
		if _, err := p.Begin(3); !errors.Is(err, ErrRound) {
			t.Error(err)
		}
	}
	corrections, err = Exchange(parties, 40)
	if err != nil || sum(corrections, bits)[0] != 4 {
		t.Fatal(corrections, err)
	}
	// Another label is another session.
	other := *config
	other.Label = "b"
	c := session(t, &other, nil)[0]
	fromC, _ := c.Setup()
	refuse(session2(t, config), fromC[0].Message, ErrOpen)

	b.Erase()
	if _, err := b.Begin(50); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	refuse(b, fromA[0].Message, ErrPhase)
}

// session2 is party 1 of a session that waits for set-up messages.
func session2(t *testing.T, config *Config) *Transfer {
	t.Helper()
	p := session(t, config, nil)[1]
	if _, err := p.Setup(); err != nil {
		t.Fatal(err)
	}
	return p
}

// A peer whose choices are inconsistent ends the session for good.
func TestTransferCheck(t *testing.T) {
	config := &Config{Parties: 2, Length: 2, Bits: 16, Noise: scale(2)}
	parties := session(t, config, seeded(31))
	if _, err := Exchange(parties, 1); err != nil {
		t.Fatal(err)
	}
	cheat, victim := parties[0], parties[1]
	if _, err := victim.Begin(2); err != nil {
		t.Fatal(err)
	}
	p := cheat.peers[1]
	body, _, _, err := p.takes.choose(cheat.context(2, 1, 0), 2, cheat.random)
	if err != nil {
		t.Fatal(err)
	}
	body[len(body)-1] ^= 1
	message, err := cheat.seal(p, header{typeChoice, 2, 0, 1}, body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = victim.Receive(message)
	var peer *PeerError
	if !errors.Is(err, ErrCheck) || !errors.As(err, &peer) || peer.Peer != 0 {
		t.Fatal(err)
	}
	if _, err := victim.Begin(3); !errors.Is(err, ErrCheck) {
		t.Error(err)
	}
	if victim.peers[0].chain != [32]byte{} || victim.peers[0].offers.delta != (element{}) ||
		victim.peers[0].takes.seeds[0][0] != [32]byte{} {
		t.Error("secrets are still there")
	}
}

// A source of randomness that fails changes nothing.
func TestTransferRandomness(t *testing.T) {
	config := &Config{Parties: 2, Length: 2, Bits: 16, Noise: scale(2)}
	parties := session(t, config, seeded(32))
	if _, err := Exchange(parties, 1); err != nil {
		t.Fatal(err)
	}
	a, b := parties[0], parties[1]
	good := a.random
	a.random = iotest.ErrReader(errors.New("broken"))
	before := *a.peers[1]
	if _, err := a.Begin(2); !errors.Is(err, ErrRandom) {
		t.Fatal(err)
	}
	if a.round != 1 || a.peers[1].chain != before.chain || a.peers[1].takes != before.takes {
		t.Fatal("the state changed")
	}
	a.random = good
	if _, err := a.Begin(2); err != nil {
		t.Fatal(err)
	}
	fromB, err := b.Begin(2)
	if err != nil {
		t.Fatal(err)
	}
	a.random = iotest.ErrReader(errors.New("broken"))
	if _, err := a.Receive(fromB[0].Message); !errors.Is(err, ErrRandom) || a.peers[1].answered {
		t.Fatal(err)
	}
	a.random = good
	deliver(t, a, fromB[0].Message)
	if _, err := NewTransfer(config, 0, pairSecrets(2)[0],
		iotest.ErrReader(errors.New("broken"))); err != nil {
		t.Fatal(err) // nothing is drawn yet
	}
}

// All messages of a session on fixed randomness: a change of anything on the wire
// shows.
func TestTransferTranscript(t *testing.T) {
	config := &Config{Label: "transcript", Parties: 2, Length: 3, Bits: 20, Noise: scale(5)}
	parties := session(t, config, nil)
	for i, p := range parties {
		p.random = seeded(byte(40 + i))
		p.terms = &fixed{value: func(call int) int64 { return int64(call) }}
	}
	h := sha256.New()
	for round := range uint64(3) {
		var pending []protocol.Envelope
		for _, p := range parties {
			step := func() ([]protocol.Envelope, error) { return p.Begin(round) }
			if round == 0 {
				step = p.Setup
			}
			e, err := step()
			if err != nil {
				t.Fatal(err)
			}
			pending = append(pending, e...)
		}
		for ; len(pending) > 0; pending = pending[1:] {
			h.Write(pending[0].Message)
			if len(pending[0].Message) > config.MaxMessage() {
				t.Error("longer than MaxMessage")
			}
			pending = append(pending, deliver(t, parties[pending[0].To], pending[0].Message)...)
		}
	}
	const want = "df831272f7000a4ddd7df14b553526f84948ddccd93ca987916ba1bc171f3e6b"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("transcript %s, want %s", got, want)
	}
}
