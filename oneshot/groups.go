package oneshot

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
)

// Groups returns the group of each of n parties in a round with a given context (SPEC-ONESHOT.md
// §17): a permutation of the roster that nobody chooses, dealt to groups in turn, so that their
// sizes differ by one at most. groups is 1 to n.
func Groups(context *[32]byte, n, groups int) []int {
	words := newWords(hash(labels.OneshotGroups, context[:]))
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := words.below(i + 1)
		order[i], order[j] = order[j], order[i]
	}
	out := make([]int, n)
	for place, party := range order {
		out[party] = place % groups
	}
	return out
}

// groups returns how many groups there are.
func (t *Terms) groups() int { return max(1, t.Groups) }

// largest returns how many of n parties are in a group at most.
func (t *Terms) largest(n int) int { return (n + t.groups() - 1) / t.groups() }

// Least returns the fewest parties in a round that has a sum.
func (t *Terms) Least() int { return (t.groups()/2 + 1) * t.MinSurvivors }

// groupsOf returns the group of each party in a round, nil if there is but one.
func (s *settled) groupsOf(context *[32]byte) []int {
	if s.groups() == 1 {
		return nil
	}
	return Groups(context, s.n, s.groups())
}

// groupOf returns the group of a dealer.
func groupOf(groups []int, dealer int) int {
	if groups == nil {
		return 0
	}
	return groups[dealer]
}

// full returns the groups that have a sum, by how many are in each, of whom some are members that
// dealt noise.
func (s *settled) full(counts []int, noises int) []int {
	var out []int
	for g, n := range counts {
		if n-noises >= s.MinSurvivors {
			out = append(out, g)
		}
	}
	return out
}

// enough refuses a round in which too few groups have a sum.
func (s *settled) enough(counts []int, noises int) error {
	switch full := len(s.full(counts, noises)); {
	case full > s.groups()/2:
		return nil
	case s.groups() == 1:
		return fmt.Errorf("%w: %d parties, want %d", ErrTooFew, counts[0]-noises, s.MinSurvivors)
	default:
		return fmt.Errorf("%w: %d groups of %d have %d parties or more, want %d", ErrTooFew, full,
			s.groups(), s.MinSurvivors, s.groups()/2+1)
	}
}

// words are those of the keystream of AES-256-CTR, whose counter begins at zero, of 64 bits with
// the lowest byte first.
type words struct {
	stream cipher.Stream
	buffer [512]byte
	at     int
}

func newWords(key [32]byte) *words {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("oneshot: " + err.Error()) // an AES-256 key has 32 bytes
	}
	w := &words{stream: cipher.NewCTR(block, make([]byte, aes.BlockSize))}
	w.at = len(w.buffer)
	return w
}

// below returns the next word that, cut to as many bits as n − 1 has, is below n.
func (w *words) below(n int) int {
	mask := uint64(1)<<bits.Len(uint(n-1)) - 1
	for {
		if w.at == len(w.buffer) {
			clear(w.buffer[:])
			w.stream.XORKeyStream(w.buffer[:], w.buffer[:])
			w.at = 0
		}
		x := binary.LittleEndian.Uint64(w.buffer[w.at:]) & mask
		w.at += 8
		if x < uint64(n) {
			return int(x)
		}
	}
}

// MedianOfMeans returns, for each coordinate, the median of the groups' means, times the number of
// parties in all groups, as if each party had submitted the median. sums has one sum for each
// group, and parties the number of parties in each, at least one. A mean times the number of all is
// rounded to the nearest integer, halves away from zero, and is below 2^62. The median of an even
// number of groups is the mean of the two in the middle, rounded down.
func MedianOfMeans(sums [][]int64, parties []int) []int64 {
	all := 0
	for _, n := range parties {
		all += n
	}
	out := make([]int64, len(sums[0]))
	scaled := make([]int64, len(sums))
	for k := range out {
		for g, sum := range sums {
			scaled[g] = timesOver(sum[k], all, parties[g])
		}
		slices.Sort(scaled)
		high, low := scaled[len(scaled)/2], scaled[(len(scaled)-1)/2]
		out[k] = low + (high-low)/2 // the difference is not negative
	}
	return out
}

// timesOver returns x·times/over, rounded.
func timesOver(x int64, times, over int) int64 {
	size := uint64((x ^ x>>63) - x>>63)
	high, low := bits.Mul64(size, uint64(times))
	var carry uint64
	low, carry = bits.Add64(low, uint64(over)/2, 0)
	quotient, _ := bits.Div64(high+carry, low, uint64(over))
	if x < 0 {
		return -int64(quotient)
	}
	return int64(quotient)
}
