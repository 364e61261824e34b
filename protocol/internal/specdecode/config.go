package specdecode

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"github.com/hushsum/hushsum/internal/labels"
)

func u32(x int) []byte    { return binary.BigEndian.AppendUint32(nil, uint32(x)) }
func u64(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }

// hash is H(label, parts…) of §1.
func hash(label string, parts ...[]byte) []byte {
	sum := sha256.Sum256(append([]byte(label), bytes.Join(parts, nil)...))
	return sum[:]
}

// setting is a configuration (§3), whose numbers follow from how many come.
type setting struct {
	*vector
	n, minMembers int
	hybrid        bool
	recovery      bool
	sparse        bool
	byRound       bool // a schedule chooses who takes part
	maxSkip       uint64
	layout        []segment
	digest        []byte
	rosterDigest  []byte
}

// numbers are those of §3.2.
type numbers struct{ scheduled, degree, threshold, quorum, minimum int }

// settle checks the configuration and its digests (§2, §3).
func (v *vector) settle() (*setting, error) {
	s, err := v.derive()
	switch {
	case err != nil:
		return nil, err
	case !bytes.Equal(s.rosterDigest, v.RosterDigest):
		return nil, fail("roster digest")
	case !bytes.Equal(s.digest, v.ConfigDigest):
		return nil, fail("configuration digest")
	}
	return s, nil
}

// derive checks the configuration and computes the digests.
func (v *vector) derive() (*setting, error) {
	c := &v.Config
	s := &setting{
		vector:     v,
		n:          len(c.Roster),
		minMembers: c.MinMembers,
		hybrid:     !c.Classical,
		recovery:   c.Recovery != nil,
		maxSkip:    c.MaxSkip,
		layout:     c.Layout,
	}
	if s.minMembers == 0 {
		s.minMembers = s.n
	}
	if c.Seed == nil {
		c.Seed = make([]byte, 32)
	}
	if s.n < 2 || len(v.Parties) != s.n || s.minMembers < 2 || s.minMembers > s.n || c.PerRound < 0 ||
		c.PerRound == 1 ||
		c.PerRound > s.n || len(c.Label) > 255 || !utf8.ValidString(c.Label) || len(c.Seed) != 32 ||
		len(s.layout) == 0 || len(s.layout) > 1024 {
		return nil, fail("the configuration is out of range")
	}
	s.byRound = c.PerRound != 0 && c.PerRound < s.n
	coordinates := 0
	for _, l := range s.layout {
		if l.Bits < 1 || l.Bits > 64 || l.Length < 1 || l.Length > 1<<28-coordinates {
			return nil, fail("the layout is out of range")
		}
		coordinates += l.Length
	}
	roster := [][]byte{u32(s.n)}
	for _, p := range c.Roster {
		roster = append(roster, []byte{byte(len(p.Name))}, []byte(p.Name), p.Key)
	}
	rosterDigest := hash(labels.Roster, roster...)
	s.rosterDigest = rosterDigest
	if r := c.Recovery; r != nil {
		if r.Degree < 0 || r.Threshold < 0 || r.MinSurvivors < 0 || r.Adversary < 0 || r.Adversary > 2 {
			return nil, fail("the recovery is out of range")
		}
		s.sparse = r.Degree != 0 && r.Degree < s.scheduledOf(s.n)-1
		if f := r.CorruptNeighbours; f < 0 || f > c.Colluders || f > 0 && !s.sparse {
			return nil, fail("the corrupt neighbours are out of range")
		}
		if r.Degree > s.scheduledOf(s.n)-1 || s.sparse && (r.Degree < 2 || r.Adversary == 0) {
			return nil, fail("the degree is out of range")
		}
	}
	for size := s.minMembers; size <= s.n; size++ {
		if _, err := s.numbers(size); err != nil {
			return nil, err
		}
	}
	peers := uint64(s.peersOf())
	least := uint64(1)
	if s.byRound {
		least = uint64((14*s.n + c.PerRound - 1) / c.PerRound)
	}
	if s.maxSkip == 0 {
		s.maxSkip = min(max(1000, least), 1<<27/peers)
	}
	if s.maxSkip > 1<<27/peers || s.maxSkip < least {
		return nil, fail("MaxSkip is out of range")
	}
	hybrid := byte(0)
	if s.hybrid {
		hybrid = 1
	}
	parts := [][]byte{{byte(len(c.Label))}, []byte(c.Label), u64(c.Number), rosterDigest,
		u32(s.minMembers), u32(c.Colluders),
		{hybrid}, u64(s.maxSkip), u32(s.scheduledOf(s.n)), c.Seed, u32(len(s.layout))}
	for _, l := range s.layout {
		parts = append(parts, u32(l.Length), []byte{byte(l.Bits)})
	}
	if r := c.Recovery; r == nil {
		parts = append(parts, []byte{0})
	} else {
		whole, _ := s.numbers(s.n)
		parts = append(parts, []byte{byte(1 + r.Adversary)}, u32(whole.degree), u32(r.Threshold),
			u32(r.MinSurvivors))
		if r.CorruptNeighbours > 0 {
			parts = append(parts, u32(r.CorruptNeighbours))
		}
	}
	s.digest = hash(labels.Config, parts...)
	return s, nil
}

// peersOf is p, the most peers that a party has (§3.1).
func (s *setting) peersOf() int {
	if s.sparse && !s.byRound {
		return s.Config.Recovery.Degree
	}
	return s.n - 1
}

// longest is MaxMessage (§12).
func (s *setting) longest() int {
	size, _ := s.numbers(s.n)
	set, n, h, p, packed := (s.n+7)/8, s.n, size.degree, s.peersOf(), 0
	for _, l := range s.layout {
		packed += (l.Length*l.Bits + 7) / 8
	}
	out := max(set+96*n, 32+set+72*h, 68*size.scheduled, packed)
	if s.recovery {
		out = max(out, packed+136+128*h)
	}
	if s.hybrid {
		log := 0
		for 1<<log < p {
			log++
		}
		out = max(out, 1280, set+128*n+1184*p, set+(1152+32*log)*p)
	}
	return 46 + out
}

func (s *setting) scheduledOf(size int) int {
	if s.Config.PerRound == 0 {
		return size
	}
	return min(s.Config.PerRound, size)
}

// numbers returns the numbers for a size (§3.2).
func (s *setting) numbers(size int) (numbers, error) {
	scheduled, c := s.scheduledOf(size), s.Config.Colluders
	out := numbers{scheduled: scheduled, degree: scheduled - 1, minimum: scheduled}
	if c < 0 || c > scheduled-2 {
		return numbers{}, fail("too many colluders")
	}
	r := s.Config.Recovery
	if r == nil {
		return out, nil
	}
	if s.sparse {
		out.degree = r.Degree
		if r.Degree >= scheduled-1 || r.Degree%2 == 1 && scheduled%2 == 1 {
			return numbers{}, fail("no graph of that degree")
		}
	}
	h := out.degree
	if s.sparse && r.CorruptNeighbours > 0 {
		c = r.CorruptNeighbours
	}
	out.threshold = r.Threshold
	if out.threshold == 0 {
		out.threshold = 2*h/3 + 1
		if r.Adversary == 2 {
			out.threshold = h/2 + 1
		}
	}
	out.quorum = out.threshold
	if r.Adversary != 2 && !s.sparse {
		out.quorum = (scheduled+c)/2 + 1
	}
	least := max(out.threshold+1, out.quorum)
	out.minimum = r.MinSurvivors
	if out.minimum == 0 {
		out.minimum = least
	}
	if out.threshold > h || out.minimum < least || out.minimum > scheduled ||
		r.Adversary == 2 && out.threshold <= c || r.Adversary != 2 && 2*out.threshold <= h+c {
		return numbers{}, fail("the thresholds do not hold")
	}
	return out, nil
}

// permutation is §7.1.
func permutation(n int, seed []byte) []int {
	var words []uint32
	counter := uint64(0)
	draw := func(m int) int {
		for {
			if len(words) == 0 {
				block := hash(labels.Permutation, u32(n), seed, u64(counter))
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

// seedOr is §7.2.
func (s *setting) seedOr(other []byte) []byte {
	if bytes.Equal(s.Config.Seed, make([]byte, 32)) {
		return other
	}
	return s.Config.Seed
}

// graph returns a party's neighbours in the graph over some parties (§7.4).
func (s *setting) graph(parties []int, seed []byte, number uint64, party int) []int {
	n, degree := len(parties), s.Config.Recovery.Degree
	ring := permutation(n, hash(labels.Graph, seed, u64(number)))
	at := slices.Index(ring, slices.Index(parties, party))
	var out []int
	for p, rank := range ring {
		d := max(p-at, at-p)
		d = min(d, n-d)
		if d >= 1 && d <= degree/2 || degree%2 == 1 && 2*d == n {
			out = append(out, parties[rank])
		}
	}
	slices.Sort(out)
	return out
}

func others(parties []int, party int) []int {
	return slices.DeleteFunc(slices.Clone(parties), func(i int) bool { return i == party })
}

// peers returns with whom a party may share secrets, of those who announced (§4).
func (s *session) peers(party int) []int {
	if s.sparse && !s.byRound {
		return s.graph(s.announcedSet.all(), s.seedOr(s.keysDigest), 0, party)
	}
	return others(s.announcedSet.all(), party)
}

// schedule returns the members of a round (§7.3).
func (s *session) schedule(round uint64) []int {
	members := s.members.all()
	count := s.scheduledOf(len(members))
	if count == len(members) {
		return members
	}
	var out []int
	for _, rank := range permutation(len(members),
		hash(labels.Schedule, s.seedOr(s.id), u64(round)))[:count] {
		out = append(out, members[rank])
	}
	slices.Sort(out)
	return out
}

// neighbours returns a party's neighbours in a round, ascending (§7.4).
func (s *session) neighbours(round uint64, party int) []int {
	if s.sparse && !s.byRound {
		return s.members.of(s.peers(party))
	}
	scheduled := s.schedule(round)
	switch {
	case !slices.Contains(scheduled, party):
		return nil
	case s.sparse:
		return s.graph(scheduled, s.seedOr(s.id), round, party)
	}
	return others(scheduled, party)
}

// next returns a party's next round after the given one (§7.3).
func (s *session) next(round uint64, party int) uint64 {
	for r := round + 1; r <= round+s.maxSkip; r++ {
		if slices.Contains(s.schedule(r), party) {
			return r
		}
	}
	return 0
}
