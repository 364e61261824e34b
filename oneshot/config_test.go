package oneshot

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/noise"
)

// usual is a configuration for phones: 1,000 values of 8 bits, n = 10,000.
func usual() Terms {
	return Terms{Length: 1000, Bits: 8, MinSurvivors: 9000, Colluders: 100, Faults: 10,
		PerPolynomial: 10, Noise: gaussian(10, 8900)}
}

// TestPrimes: the table has the largest primes of their bits, and tells none that
// is not.
func TestPrimes(t *testing.T) {
	if len(primes) != ring.MaxModulusBits-20+1 {
		t.Fatalf("%d primes", len(primes))
	}
	for i, q := range primes {
		k := 20 + i
		want := uint64(1)<<k - 2*degree + 1
		for !new(big.Int).SetUint64(want).ProbablyPrime(0) {
			want -= 2 * degree
		}
		if q != want {
			t.Errorf("%d bits: %#x, want %#x", k, q, want)
		}
	}
}

// TestParameters: known figures, and what must hold of all.
func TestParameters(t *testing.T) {
	p := must(Parameters(10_000, 40, usual()))
	if p.PerPolynomial != 10 || p.Polynomials != 16 || p.Threshold != 20 || p.Answers != 30 ||
		p.Quorum != 26 || p.Scale != 1 || p.Spare < minSpare || p.Disputes != 100 || p.Spoilers != 100 {
		t.Errorf("%+v", p)
	}
	// By default as many secrets as cost no members, and a sixth of these faulty.
	for _, c := range []struct{ members, faults, per, percent int }{
		{40, 6, 12, 18}, {20, 3, 6, 20}, {8, 1, 3, 30}, {7, 2, 1, 5}, {4, 1, 1, 10},
	} {
		terms := usual()
		terms.Faults, terms.PerPolynomial = c.faults, 0
		p := must(Parameters(10_000, c.members, terms))
		if p.PerPolynomial != c.per || p.Answers > p.Quorum || p.Spoilers/100 != c.percent {
			t.Errorf("%d members, %d faulty: %d secrets, %d of 10,000 parties", c.members, c.faults,
				p.PerPolynomial, p.Spoilers)
		}
	}
	// The design's figures for 33 bits: blocks of 716, 2^209, 67 kB next to y.
	big33 := Terms{Length: 100_000, Bits: 19, MinSurvivors: 9000, Colluders: 100, Faults: 10,
		PerPolynomial: 10, Noise: gaussian(10, 8900)}
	p = must(Parameters(10_000, 40, big33))
	if p.ModulusBits != 33 || p.BlockSize < 716 || p.CoreSVP < 209 || p.Up > 490_000 ||
		p.HintLoss > -100 {
		t.Errorf("%+v", p)
	}
	same := must(Parameters(100, 40,
		Terms{Length: 100_000, Bits: 26, MinSurvivors: 90, Faults: 10, PerPolynomial: 10,
			Noise: gaussian(10, 90)}))
	if p.Up != same.Up {
		t.Errorf("%d and %d bytes: they must not depend on n", p.Up, same.Up)
	}
	for bits := 1; bits <= 30; bits++ {
		for _, n := range []int{2, 3, 64, 65, 1 << 20} {
			for _, law := range []noise.Law{{}, gaussian(7, 2), gaussian(3000, 2)} {
				d, err := derive(n, 7, &Terms{Length: 10, Bits: bits, MinSurvivors: 2, Faults: 2, Noise: law})
				if err != nil {
					continue
				}
				top := float64(n) * float64(d.limit)
				if d.Scale == 1 {
					top += float64(d.tail)
				} else if top > float64(d.Scale)/2 {
					t.Errorf("n = %d, %d bits: sums do not fit %d", n, bits, d.Scale)
				} else {
					top = float64(d.Scale) * (float64(d.tail) + 0.5)
				}
				if 2*top >= float64(d.Modulus) {
					t.Errorf("n = %d, %d bits: sums to %g do not fit %d", n, bits, top, d.Modulus)
				}
				if miss := float64(d.Spare) * math.Log2(float64(d.Modulus)/float64(2*d.tail+1)); miss < 64 {
					t.Errorf("n = %d, %d bits: a false key passes with 2^-%.0f", n, bits, miss)
				}
			}
		}
	}
}

// TestConfigErrors: what a configuration must not have, and what the error says.
func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*Terms)
		says   string
	}{
		{func(t *Terms) { t.Length = 0 }, "Length"},
		{func(t *Terms) { t.Length = maxLength + 1 }, "Length"},
		{func(t *Terms) { t.Bits = 0 }, "Bits"},
		{func(t *Terms) { t.Bits = 41 }, "Bits"},
		{func(t *Terms) { t.MinSurvivors = 10_001 }, "MinSurvivors"},
		{func(t *Terms) { t.MinSurvivors = 1; t.Colluders = 0 }, "MinSurvivors"},
		{func(t *Terms) { t.Colluders = -1 }, "Colluders"},
		{func(t *Terms) { t.Colluders = 8999 }, "MinSurvivors − Colluders is 1"},
		{func(t *Terms) { t.Faults = 0 }, "faulty"},
		{func(t *Terms) { t.Faults = 14 }, "faulty"},
		{func(t *Terms) { t.PerPolynomial = 11 }, "PerPolynomial"},
		{func(t *Terms) { t.PerPolynomial = -1 }, "PerPolynomial"},
		{func(t *Terms) { t.KEM = 2 }, "KEM"},
		{func(t *Terms) { t.Bits = 38 }, "modulus"},
		{func(t *Terms) { t.Noise = noise.Law{}; t.Bits = 24 }, "exact sums"},
		{func(t *Terms) { t.Noise = gaussian(6, 8900) }, "6.4"},
		{func(t *Terms) {
			t.MinSurvivors = 102
			t.Noise = must(noise.DiscreteGaussian(new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 80))))
		}, "too wide"},
		{func(t *Terms) { t.Noise = must(noise.Skellam(big.NewRat(1<<40, 1))) }, "Gaussian"},
	} {
		terms := usual()
		c.change(&terms)
		if _, err := Parameters(10_000, 40, terms); !errors.Is(err, ErrConfig) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want one about %q", err, c.says)
		}
	}
	for _, c := range [][2]int{{1, 40}, {1<<20 + 1, 40}, {10_000, 256}, {10_000, 30}} {
		if _, err := Parameters(c[0], c[1], usual()); !errors.Is(err, ErrConfig) {
			t.Errorf("%d parties, %d members: %v", c[0], c[1], err)
		}
	}
	w := newWorld(5, 4, small(Terms{}))
	for _, change := range []func(*Config){
		func(c *Config) { c.Roster = nil }, func(c *Config) { c.Committee = nil },
		func(c *Config) { c.Label = strings.Repeat("x", 256) }, func(c *Config) { c.Bits = 0 },
	} {
		config := *w.config
		change(&config)
		_, err1 := NewParty(&config, w.keys[0], nil)
		_, err2 := NewMember(&config, w.keys[0], nil)
		_, err3 := NewServer(&config, 0)
		_, err4 := config.Parameters()
		_, err5 := config.Digest()
		for _, err := range []error{err1, err2, err3, err4, err5} {
			if !errors.Is(err, ErrConfig) {
				t.Error(err)
			}
		}
		if config.MaxMessage() != 0 {
			t.Error("MaxMessage of no configuration")
		}
	}
	if _, err := NewServer(nil, 0); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	for _, batch := range []int{-1, maxBatch + 1} {
		if _, err := NewServer(w.config, batch); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
	}
	_, strangers := people("stranger", 2)
	if _, err := NewParty(w.config, strangers[0], nil); !errors.Is(err, ErrIdentity) {
		t.Error(err)
	}
	if _, err := NewMember(w.config, w.keys[0], nil); !errors.Is(err, ErrIdentity) {
		t.Error("a party is no member:", err)
	}
	if _, err := NewParty(w.config, nil, nil); !errors.Is(err, ErrIdentity) {
		t.Error(err)
	}
}

// TestDigest: every number that counts is in the digest.
func TestDigest(t *testing.T) {
	base := *newWorld(6, 8, small(Terms{Noise: gaussian(10, 3)})).config
	others, _ := people("other", 6)
	committee, _ := people("another", 8)
	digests := map[[32]byte]string{must(base.Digest()): "base"}
	for name, change := range map[string]func(*Config){
		"label": func(c *Config) { c.Label = "another" }, "roster": func(c *Config) { c.Roster = others },
		"committee": func(c *Config) { c.Committee = committee },
		"length":    func(c *Config) { c.Length++ },
		"bits":      func(c *Config) { c.Bits++ }, "survivors": func(c *Config) { c.MinSurvivors++ },
		"colluders": func(c *Config) { c.Colluders++ }, "faults": func(c *Config) { c.Faults++ },
		"per":      func(c *Config) { c.PerPolynomial = 2 },
		"disputes": func(c *Config) { c.Disputes = 2 },
		"noise":    func(c *Config) { c.Noise = gaussian(11, 3) },
		"exact":    func(c *Config) { c.Noise = noise.Law{} },
		"covered":  func(c *Config) { c.Covered = true },
		"kem":      func(c *Config) { c.KEM = KEMHybrid },
		"league":   func(c *Config) { c.InLeague, c.PerPolynomial = 2, 1 },
		"groups":   func(c *Config) { c.Groups, c.PerPolynomial = 2, 1 },
	} {
		config := base
		change(&config)
		d := must(config.Digest())
		if before, ok := digests[d]; ok {
			t.Errorf("%s has the digest of %s", name, before)
		}
		digests[d] = name
	}
}

// TestSizes: messages have the lengths that Parameters states.
func TestSizes(t *testing.T) {
	for _, covered := range []bool{false, true} {
		for _, kem := range []KEM{KEMHybrid, KEMX25519} {
			terms := small(Terms{Covered: covered})
			terms.KEM = kem
			w := newWorld(5, 4, terms)
			if err := w.begin(nil); err != nil {
				t.Fatal(err)
			}
			p := must(w.config.Parameters())
			message := must(w.submit(0))
			if len(message) != p.Up || len(w.opening) != p.Down || len(message) > w.config.MaxMessage() {
				t.Errorf("%d and %d bytes, stated are %d and %d", len(message), len(w.opening), p.Up, p.Down)
			}
			if err := w.server.Receive(message); err != nil {
				t.Fatal(err)
			}
			if got := len(must(w.server.Batch())[0].Message) - 46 - 4; got != p.MemberDown {
				t.Errorf("%d bytes a party and member, stated are %d", got, p.MemberDown)
			}
		}
	}
}

// A modulus that leaves an attack too cheap is refused, whatever else fits.
func TestMargin(t *testing.T) {
	for _, c := range []struct {
		bits int
		bad  bool
	}{{33, false}, {50, false}, {60, true}, {62, true}} {
		d := derived{Figures: Figures{Modulus: 1<<c.bits - 1}}
		err := d.margin(1000, 100_000, 6.4)
		if bad := errors.Is(err, ErrConfig); bad != c.bad || !bad && d.Classical < 128 {
			t.Errorf("%d bits: an attack costs 2^%.0f, %v", c.bits, d.Classical, err)
		}
	}
}
