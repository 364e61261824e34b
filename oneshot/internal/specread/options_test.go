package specread

import (
	"encoding/json"
	"math/big"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
)

// options are those of sections 13 to 17.
type options struct {
	Config struct {
		Norm         uint64   `json:"norm"`
		InLeague     int      `json:"in_league"`
		MembersNoise bool     `json:"members_noise"`
		Groups       int      `json:"groups"`
		Weights      []uint64 `json:"weights"`
	} `json:"config"`
	Members []struct {
		Seeds []octets `json:"seeds"`
	} `json:"members"`
}

// TestOptions: the configuration's digest (§2) and bounds (§§14.1, 14.7 and 15.5) of rounds with
// options, and how members' noise is drawn under audit (§15.6), but for what seeds give.
func TestOptions(t *testing.T) {
	for _, name := range []string{"audited.json", "groups.json"} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("..", "..", "testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			c, o := &check{T: t, bodies: make(map[string][]byte)}, new(options)
			for _, into := range []any{&c.file, o} {
				if err := json.Unmarshal(b, into); err != nil {
					t.Fatal(err)
				}
			}
			c.options(o)
			if o.Config.MembersNoise {
				c.headers()
				for k := range c.Members {
					c.drawn(o, k)
				}
			}
		})
	}
}

// root returns ⌈√x⌉.
func root(x uint64) uint64 {
	r := new(big.Int).Sqrt(new(big.Int).SetUint64(x)).Uint64()
	if r*r < x {
		r++
	}
	return r
}

// square is β² of §14.1, for V and A.
func square(v, a uint64, length int) uint64 {
	d := uint64(length) + 64
	return v*v + 15*v*root(a) + a*(d+11*root(d))
}

// options checks the configuration's digest.
func (c *check) options(o *options) {
	f, variance := &c.Config, new(big.Rat)
	if _, ok := variance.SetString(f.Noise); !ok {
		c.Fatalf("noise %q", f.Noise)
	}
	ceil := func(shares int) uint64 {
		x := new(big.Rat).Quo(variance, big.NewRat(int64(shares), 1))
		q, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
		return q.Uint64() + uint64(rest.Sign())
	}
	members, parties, groups := len(c.Members), len(c.Parties), max(1, o.Config.Groups)
	own, dealers := uint64(41), (parties+groups-1)/groups // 6.4² and a little
	if o.Config.MembersNoise {
		dealers += members
	} else {
		own = ceil(f.MinSurvivors - f.Colluders)
	}
	lanes := max(19, 1+bits.Len(uint(973*dealers-1)))
	heaviest := slices.Max(o.Config.Weights)
	tail := slices.Concat([]byte{1}, u64(square(heaviest*o.Config.Norm, own, f.Length)), u32(lanes))
	if o.Config.MembersNoise {
		share := ceil(members - f.Faults - o.Config.InLeague)
		tail = slices.Concat(tail, []byte{2}, u64(square(0, share, f.Length)), u32(16))
	}
	if o.Config.InLeague != f.Faults {
		tail = slices.Concat(tail, []byte{4}, u32(o.Config.InLeague))
	}
	if groups > 1 {
		tail = slices.Concat(tail, []byte{3}, u32(groups))
	}
	c.want("the configuration's digest", c.ConfigDigest,
		h(labels.OneshotConfig, []byte{byte(len(f.Label))}, []byte(f.Label),
			c.RosterDigest, c.CommitteeDigest, u32(f.Length), u32(f.Bits), u32(f.MinSurvivors),
			u32(f.Colluders), u32(f.Faults), u32(f.Disputes), u32(f.PerPolynomial),
			[]byte{byte(len(f.Noise))}, []byte(f.Noise), []byte{0, byte(f.KEM)}, tail))
}

// drawn checks a member's candidates against its noise.
func (c *check) drawn(o *options, k int) {
	var digests, coin, noise []byte
	for _, m := range c.Messages {
		body := m.Message[46:]
		switch mine := m.From == "member "+string(rune('0'+k)); {
		case mine && m.Type == 80:
			digests = body
		case m.Type == 81:
			coin = body
		case mine && m.Type == 67:
			noise = body
		}
	}
	if len(digests) != 16*32 || len(coin) != 32 || len(noise) < 15*32+64 {
		c.Fatalf("member %d: digests of %d bytes, a coin of %d", k, len(digests), len(coin))
	}
	dealer := u32(len(c.Parties) + k)
	at := int(h(labels.OneshotDrawn, c.Context, dealer, coin)[0]) % 16
	wide := bits.Len64(c.Figures.Modulus)
	masked := noise[:(c.Config.Length*wide+7)/8]
	digest, key := h(labels.OneshotMasked, masked), noise[len(masked):][:32]
	c.want("the candidate that is drawn", digests[32*at:][:32],
		h(labels.OneshotCandidate, c.Context, dealer, digest, key))
	tail := noise[len(noise)-15*32-64:]
	var seeds []byte
	for t, seed := range o.Members[k].Seeds {
		if t != at {
			seeds = append(seeds, seed...)
		}
	}
	c.want("seeds", tail[:15*32], seeds)
	c.signed(c.Members[k].Public, labels.OneshotAudit, slices.Concat(c.Context, dealer, digests,
		coin, tail[:15*32], digest, key), tail[15*32:])
}
