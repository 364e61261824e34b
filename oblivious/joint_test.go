package oblivious

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519"
	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
)

// jointIdentities are identities of n parties and their roster, always the same.
func jointIdentities(t testing.TB, n int) ([]ed25519.PrivateKey, *keyexchange.Roster) {
	t.Helper()
	identities, entries := make([]ed25519.PrivateKey, n), make([]keyexchange.Entry, n)
	for i := range identities {
		var err error
		if identities[i], err = keyexchange.GenerateIdentity(seeded(byte(i + 1))); err != nil {
			t.Fatal(err)
		}
		entries[i] = keyexchange.Entry{
			Name: fmt.Sprintf("party%d", i),
			Key:  identities[i].Public().(ed25519.PublicKey),
		}
	}
	roster, err := keyexchange.NewRoster(entries)
	if err != nil {
		t.Fatal(err)
	}
	return identities, roster
}

// jointSession makes all parties of a session; the configuration needs no roster.
func jointSession(
	t testing.TB, config JointConfig, inputs [][]uint64, random io.Reader,
) []*Joint {
	t.Helper()
	identities, roster := jointIdentities(t, len(inputs))
	config.Roster = roster
	parties := make([]*Joint, len(inputs))
	for i, input := range inputs {
		var err error
		if parties[i], err = NewJoint(&config, identities[i], i, input, random); err != nil {
			t.Fatal(err)
		}
	}
	return parties
}

// at says where a session is.
func (j *Joint) at() string { return fmt.Sprint(j.stage, " ", j.turn) }

// jointStep has all parties send what is due in one step, in order, by way of change, which
// returns what to deliver to a party; nil: what was sent. It returns what they refuse.
func jointStep(
	t testing.TB, parties []*Joint, change func(from, to int, message []byte) []byte,
) (refused error) {
	t.Helper()
	at := parties[0].at()
	var messages [][]byte
	for _, from := range parties {
		var message []byte
		if from.at() == at { // it may have gone on: the last of a step does by its own message
			var err error
			if message, err = from.Next(); err != nil {
				t.Fatal(err)
			}
		}
		messages = append(messages, message)
	}
	for i, message := range messages {
		for k, to := range parties {
			if message == nil || k == i {
				continue
			}
			deliver := message
			if change != nil {
				deliver = change(i, k, message)
			}
			refused = errors.Join(refused, to.Receive(deliver))
		}
	}
	return refused
}

// jointUntil carries messages until the parties wait for a stage.
func jointUntil(t testing.TB, parties []*Joint, stage jointStage) {
	t.Helper()
	for parties[0].stage < stage {
		if err := jointStep(t, parties, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// decrypt returns what ciphertexts hold, by all parties' secrets: 0 to 9.
func decrypt(t testing.TB, parties []*Joint, c []ciphertext) []uint64 {
	t.Helper()
	secret := edwards25519.NewScalar()
	for _, j := range parties {
		secret.Add(secret, j.secret)
	}
	points := make([]*edwards25519.Point, len(c))
	for i := range c {
		points[i] = new(edwards25519.Point).ScalarMult(secret, &c[i].a)
		points[i].Subtract(&c[i].b, points[i])
	}
	values, err := logarithms(points, 9)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// The sum is that of the inputs and of what the coins have come to, and all parties have the
// same. After every turn each coin is 0 or 1.
func TestJointSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range suite.Size(6, 6, 200, 2000) {
		n := 2 + r.IntN(2)
		config := JointConfig{
			Label:  fmt.Sprint(r.Uint64()),
			Length: 1 + r.IntN(2),
			Bound:  1 + r.Uint64N(9),
			Coins:  make([]int, 1+r.IntN(3)),
		}
		for j := range config.Coins {
			config.Coins[j] = r.IntN(3)
		}
		config.Coins[len(config.Coins)-1]++
		inputs, want := make([][]uint64, n), make([]uint64, config.Length)
		for i := range inputs {
			for k := range want {
				x := r.Uint64N(config.Bound + 1)
				inputs[i] = append(inputs[i], x)
				want[k] += x
			}
		}
		parties := jointSession(t, config, inputs, seeded(byte(r.Uint32())))
		jointUntil(t, parties, stageTurns)
		for range n {
			if err := jointStep(t, parties, nil); err != nil {
				t.Fatal(err)
			}
			if parties[0].stage == stageTurns {
				if coins := decrypt(t, parties, parties[0].coins); slices.Max(coins) > 1 {
					t.Fatal(coins)
				}
			}
		}
		for k, v := range decryptSums(t, parties) {
			if noise := v - want[k]; v < want[k] || noise > parties[0].config.noiseMax() {
				t.Fatalf("coordinate %d: %d of inputs %d", k, v, want[k])
			}
			want[k] = v
		}
		jointUntil(t, parties, stageSum)
		for _, j := range parties {
			if sum, err := j.Sum(); err != nil || !slices.Equal(sum, want) {
				t.Fatal(sum, want, err)
			}
			if len(j.Missing()) != 0 || !j.Spent() {
				t.Fatal("the session is not over")
			}
		}
	}
}

// decryptSums returns the sums by all parties' secrets.
func decryptSums(t testing.TB, parties []*Joint) []uint64 {
	t.Helper()
	o := parties[0].open
	var shares [][]*edwards25519.Point
	for _, j := range parties {
		var own []*edwards25519.Point
		for k := range o.sums {
			own = append(own, new(edwards25519.Point).ScalarMult(j.secret, &o.sums[k].a))
		}
		shares = append(shares, own)
	}
	values, err := o.open(shares, parties[0].config.inputs()+parties[0].config.noiseMax())
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// forge makes a message of a party with any body, signed.
func (j *Joint) forge(t testing.TB, body []byte) []byte {
	t.Helper()
	m := jointMessage{kind: j.due(), session: j.session, from: uint32(j.party), body: body}
	var err error
	m.signature, err = keyexchange.Sign(j.identity, labels.JointMessage, m.statement(j.before))
	if err != nil {
		t.Fatal(err)
	}
	return m.append(nil)
}

// One honest party among colluders that flip by bits of their choice, before and after it:
// coins are heads in half of the cases whatever these are. Of 256 coins fewer than 88, or more
// than 168, are heads with a probability of 4e-7.
func TestJointOneHonest(t *testing.T) {
	const length, coins = 4, 64
	for honest := range 3 {
		inputs := make([][]uint64, 3)
		for i := range inputs {
			inputs[i] = make([]uint64, length)
		}
		parties := jointSession(t, JointConfig{Length: length, Bound: 1, Coins: []int{coins}}, inputs,
			seeded(byte(40+honest)))
		jointUntil(t, parties, stageTurns)
		for i, from := range parties {
			if i == honest {
				if err := jointStep(t, parties, nil); err != nil {
					t.Fatal(err)
				}
				continue
			}
			chosen := make([]byte, length*coins)
			if i == 1 {
				for k := range chosen {
					chosen[k] = 1
				}
			}
			body, err := from.turnOf(jointTurn, i).make(chosen, seeded(byte(i)))
			if err != nil {
				t.Fatal(err)
			}
			message := from.forge(t, body)
			if err := from.keep(i, body); err != nil {
				t.Fatal(err)
			}
			for k, to := range parties {
				if k != i {
					if err := to.Receive(message); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		heads := uint64(0)
		for _, v := range decryptSums(t, parties) {
			heads += v
		}
		if heads < 88 || heads > 168 {
			t.Errorf("honest party %d: %d of %d coins are heads", honest, heads, length*coins)
		}
	}
}

// Every input up to a bound has its bits, and bits add up to nothing else.
func TestJointInputBits(t *testing.T) {
	for bound := uint64(1); bound <= 130; bound++ {
		c := JointConfig{Bound: bound}
		weights, total := c.inputWeights(), uint64(0)
		for _, w := range weights {
			total += w
		}
		if total != bound || len(weights) != bits.Len64(bound) {
			t.Fatalf("bound %d: weights %v", bound, weights)
		}
		for x := range bound + 1 {
			sum := uint64(0)
			for k, b := range c.inputBits(x) {
				sum += uint64(b) * weights[k]
			}
			if sum != x {
				t.Fatalf("bound %d: %d becomes %d", bound, x, sum)
			}
		}
	}
	c := JointConfig{Bound: maxJointSum - 1}
	if b := c.inputBits(maxJointSum - 1); len(b) != 32 || slices.Contains(b, 0) {
		t.Error(b)
	}
}

func TestLogarithms(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		most := rapid.Uint64Range(0, 5000).Draw(r, "most")
		want := rapid.SliceOfN(rapid.Uint64Range(0, most), 1, 9).Draw(r, "values")
		var points []*edwards25519.Point
		for _, v := range want {
			points = append(points, new(edwards25519.Point).ScalarBaseMult(small(v)))
		}
		if got, err := logarithms(points, most); err != nil || !slices.Equal(got, want) {
			r.Fatal(got, want, err)
		}
		beyond := new(edwards25519.Point).ScalarBaseMult(small(most + 1))
		if _, err := logarithms(append(points, beyond), most); !errors.Is(err, ErrProof) {
			r.Fatal(err)
		}
	})
	want := []uint64{0, 1, maxJointSum - 2, maxJointSum - 1}
	var points []*edwards25519.Point
	for _, v := range want {
		points = append(points, new(edwards25519.Point).ScalarBaseMult(small(v)))
	}
	if got, err := logarithms(points, maxJointSum-1); err != nil || !slices.Equal(got, want) {
		t.Error(got, err)
	}
}

func TestJointRefusesConfigurations(t *testing.T) {
	identities, roster := jointIdentities(t, 2)
	good := JointConfig{Roster: roster, Length: 1, Bound: 1, Coins: []int{1}}
	for name, change := range map[string]func(c *JointConfig){
		"a long label":       func(c *JointConfig) { c.Label = string(make([]byte, 256)) },
		"no roster":          func(c *JointConfig) { c.Roster = nil },
		"65 parties":         func(c *JointConfig) { _, c.Roster = jointIdentities(t, 65) },
		"no coordinate":      func(c *JointConfig) { c.Length = 0 },
		"many coordinates":   func(c *JointConfig) { c.Length = maxJointTurn + 1 },
		"no bound":           func(c *JointConfig) { c.Bound = 0 },
		"a large bound":      func(c *JointConfig) { c.Bound = maxJointSum },
		"a large sum":        func(c *JointConfig) { c.Bound = maxJointSum / 2 },
		"no coins":           func(c *JointConfig) { c.Coins = nil },
		"no coin":            func(c *JointConfig) { c.Coins = []int{1, 0} },
		"a negative number":  func(c *JointConfig) { c.Coins = []int{-1, 1} },
		"many coins":         func(c *JointConfig) { c.Coins = []int{maxJointTurn + 1} },
		"heavy coins":        func(c *JointConfig) { c.Coins = []int{22: 2} },
		"many levels":        func(c *JointConfig) { c.Coins = []int{32: 1} },
		"coins, coordinates": func(c *JointConfig) { c.Length, c.Coins = 3, []int{maxJointTurn / 2} },
		"bits, coordinates":  func(c *JointConfig) { c.Length, c.Bound = maxJointTurn/2, 4 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if c.MaxMessage() != 0 || c.Centre() != 0 || c.Variance() != 0 {
			t.Errorf("%s: it has figures", name)
		}
	}
	for name, try := range map[string]func() (*Joint, error){
		"nil": func() (*Joint, error) { return NewJoint(nil, identities[0], 0, nil, nil) },
		"another identity": func() (*Joint, error) {
			return NewJoint(&good, identities[1], 0, []uint64{0}, nil)
		},
		"no identity": func() (*Joint, error) { return NewJoint(&good, nil, 0, []uint64{0}, nil) },
		"no party": func() (*Joint, error) {
			return NewJoint(&good, identities[0], 2, []uint64{0}, nil)
		},
	} {
		if _, err := try(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, input := range [][]uint64{nil, {0, 0}, {2}} {
		if _, err := NewJoint(&good, identities[0], 0, input, nil); !errors.Is(err, ErrLength) {
			t.Errorf("input %v: %v", input, err)
		}
	}
	if good.Centre() != 0.5 || good.Variance() != 0.25 {
		t.Error(good.Centre(), good.Variance())
	}
}

// A source of randomness that fails stops a step, which can be tried again.
func TestJointRandomness(t *testing.T) {
	parties := jointSession(t, JointConfig{Length: 1, Bound: 1, Coins: []int{2}},
		[][]uint64{{1}, {0}}, seeded(3))
	for stage := stageKeys; stage < stageSum; stage++ {
		jointUntil(t, parties, stage)
		good := parties[0].random
		parties[0].random = io.LimitReader(good, 70)
		_, err := parties[0].Next()
		if (err == nil) != (stage == stageConfirm || stage == stageShares) ||
			err != nil && !errors.Is(err, ErrRandom) {
			t.Fatal(stage, err)
		}
		parties[0].random = good
		if err == nil {
			break // sent
		}
	}
}

// Secrets are gone when they are spent.
func TestJointErases(t *testing.T) {
	config := JointConfig{Length: 1, Bound: 7, Coins: []int{2}}
	parties := jointSession(t, config, [][]uint64{{5}, {6}}, seeded(3))
	jointUntil(t, parties, stageTurns)
	if parties[0].input[0] != 0 {
		t.Error("the input is still there")
	}
	jointUntil(t, parties, stageShares)
	if parties[0].Spent() {
		t.Error("nothing is spent before the share is made")
	}
	secret := parties[0].secret
	if _, err := parties[0].Next(); err != nil || secret.Equal(edwards25519.NewScalar()) != 1 {
		t.Error("the secret is still there", err)
	}
	if !parties[0].Spent() {
		t.Error("it is spent")
	}
	secret = parties[1].secret
	parties[1].Erase()
	if secret.Equal(edwards25519.NewScalar()) != 1 || parties[1].Spent() {
		t.Error("the secret is still there, or spent")
	}
	if _, err := parties[1].Next(); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	if _, err := parties[1].Sum(); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	if err := parties[1].Receive(nil); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	if _, err := parties[0].Sum(); !errors.Is(err, ErrMissing) ||
		!slices.Equal(parties[0].Missing(), []int{1}) {
		t.Error(err)
	}
}
