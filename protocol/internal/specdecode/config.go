package specdecode

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
)

func u32(x int) []byte    { return binary.BigEndian.AppendUint32(nil, uint32(x)) }
func u64(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }

// hash is H(label, parts…) of §1.
func hash(label string, parts ...[]byte) []byte {
	sum := sha256.Sum256(append([]byte(label), bytes.Join(parts, nil)...))
	return sum[:]
}

// setting is a configuration with the defaults filled in (§3).
type setting struct {
	n, scheduled, degree       int
	recovery                   bool
	threshold, quorum, minimum int
	seed                       []byte
	maxSkip                    uint64
	layout                     []segment
	digest                     []byte
}

// settle fills in the defaults and computes the digests (§2, §3).
func (v *vector) settle() (*setting, error) {
	c := &v.Config
	s := &setting{n: len(v.Parties), scheduled: c.PerRound, seed: c.Seed, maxSkip: c.MaxSkip, layout: c.Layout}
	if s.n < 2 || s.scheduled < 0 || s.scheduled == 1 || s.scheduled > s.n || len(c.Label) > 255 || len(s.seed) != 32 || len(s.layout) == 0 {
		return nil, fail("the configuration is out of range")
	}
	for _, l := range s.layout {
		if l.Bits < 1 || l.Bits > 64 || l.Length < 1 || l.Length > 1<<28 {
			return nil, fail("the layout is out of range")
		}
	}
	roster := [][]byte{u32(s.n)}
	for _, p := range v.Parties {
		roster = append(roster, []byte{byte(len(p.Name))}, []byte(p.Name), p.Public)
	}
	rosterDigest := hash("hushsum/1 roster", roster...)
	if !bytes.Equal(rosterDigest, v.RosterDigest) {
		return nil, fail("roster digest")
	}
	if s.scheduled == 0 {
		s.scheduled = s.n
	}
	if s.maxSkip == 0 {
		s.maxSkip = 1000
	}
	s.degree = s.scheduled - 1
	parts := [][]byte{{byte(len(c.Label))}, []byte(c.Label), rosterDigest, u64(s.maxSkip), u32(s.scheduled), s.seed, u32(len(s.layout))}
	for _, l := range s.layout {
		parts = append(parts, u32(l.Length), []byte{byte(l.Bits)})
	}
	if r := c.Recovery; r == nil {
		s.minimum = s.scheduled
		parts = append(parts, []byte{0})
	} else {
		s.recovery = true
		if r.Degree < 0 || r.Degree >= s.scheduled || r.Degree%2 == 1 && s.scheduled%2 == 1 && r.Degree < s.scheduled-1 || r.Threshold < 0 || r.Colluders < 0 || r.MinSurvivors < 0 || r.Adversary < 0 || r.Adversary > 2 {
			return nil, fail("the recovery is out of range")
		}
		if r.Degree != 0 {
			s.degree = r.Degree
		}
		h := s.degree
		s.threshold = r.Threshold
		if s.threshold == 0 {
			s.threshold = 2*h/3 + 1
			if r.Adversary == 2 {
				s.threshold = h/2 + 1
			}
		}
		s.quorum = s.threshold
		if r.Adversary == 0 {
			s.quorum = (s.scheduled+r.Colluders)/2 + 1
		}
		s.minimum = r.MinSurvivors
		if s.minimum == 0 {
			s.minimum = max(s.threshold+1, s.quorum)
		}
		parts = append(parts, []byte{byte(1 + r.Adversary)}, u32(r.Colluders), u32(s.threshold), u32(s.quorum), u32(s.minimum), u32(h))
	}
	s.digest = hash("hushsum/1 config", parts...)
	if !bytes.Equal(s.digest, v.ConfigDigest) {
		return nil, fail("configuration digest")
	}
	return s, nil
}

// permutation is §7.1.
func permutation(n int, seed []byte) []int {
	var words []uint32
	counter := uint64(0)
	draw := func(m int) int {
		for {
			if len(words) == 0 {
				block := hash("hushsum/graph/permutation/v1", u32(n), seed, u64(counter))
				counter++
				for ; len(block) > 0; block = block[4:] {
					words = append(words, binary.BigEndian.Uint32(block))
				}
			}
			w := words[0]
			words = words[1:]
			if m := uint64(m); uint64(w) < (1<<32)/m*m {
				return int(uint64(w) % m)
			}
		}
	}
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := draw(i + 1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// topologySeed is §7.2.
func (s *setting) topologySeed(session []byte) []byte {
	if bytes.Equal(s.seed, make([]byte, 32)) {
		return session
	}
	return s.seed
}

// schedule returns the parties of a round (§7.3).
func (s *setting) schedule(session []byte, round uint64) []int {
	order := make([]int, s.n)
	for i := range order {
		order[i] = i
	}
	if s.scheduled < s.n {
		order = permutation(s.n, hash("hushsum/1 schedule", s.topologySeed(session), u64(round)))[:s.scheduled]
		slices.Sort(order)
	}
	return order
}

// neighbours returns a party's neighbours in a round, ascending (§7.4).
func (s *setting) neighbours(session []byte, round uint64, party int) []int {
	members := s.schedule(session, round)
	if !slices.Contains(members, party) {
		return nil
	}
	var out []int
	if s.degree == s.scheduled-1 {
		for _, i := range members {
			if i != party {
				out = append(out, i)
			}
		}
		return out
	}
	if s.scheduled == s.n {
		round = 0
	}
	n := len(members)
	ring := permutation(n, hash("hushsum/1 graph", s.topologySeed(session), u64(round)))
	at := slices.Index(ring, slices.Index(members, party))
	for p, rank := range ring {
		d := int(math.Abs(float64(p - at)))
		d = min(d, n-d)
		if d >= 1 && d <= s.degree/2 || s.degree%2 == 1 && 2*d == n {
			out = append(out, members[rank])
		}
	}
	slices.Sort(out)
	return out
}

// next returns a party's next round after the given one (§7.3).
func (s *setting) next(session []byte, round uint64, party int) uint64 {
	for r := round + 1; r <= round+s.maxSkip; r++ {
		if slices.Contains(s.schedule(session, r), party) {
			return r
		}
	}
	return 0
}
