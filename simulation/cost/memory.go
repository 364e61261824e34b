package cost

import "math/bits"

// Sizes in memory, in bytes, by what the structures of package protocol hold. What the
// allocator adds, some percent, is not counted.
const (
	word      = 8
	slice     = 24  // its header
	keys      = 128 // channel keys of a pair and round: two purposes, two directions
	share     = 32
	chain     = 48 // a key and a round
	announced = 128 + kemKey
	material  = 96 // an upload, but for its shares
	fixed     = 4 << 10
)

// tabled returns what a table of entries takes, each with a key of a word: room for a
// power of two, of which seven eighths may be used, and a byte for each place.
func tabled(n, value int64) int64 {
	room := int64(8)
	for 7*room < 8*n {
		room *= 2
	}
	return room * (1 + word + value)
}

// grown is the room of a list of numbers that grew to n one by one.
func grown(n int) int64 {
	if n <= 256 {
		return word << bits.Len(uint(max(0, n-1)))
	}
	return word * int64(n) * 9 / 8 // by a quarter at a time
}

// words returns what a vector takes.
func (s *Session) words() int64 {
	slots := 64 / s.Bits
	return word * int64((s.Length+slots-1)/slots)
}

// PartyMemory returns what a party keeps once it has submitted, in bytes: chains, a
// vector, its last message, and with recovery the shares and keys of the round.
func (s Session) PartyMemory() int64 {
	s = s.settled()
	n, h := s.Parties, s.Neighbours
	memory := int64(fixed) + grown(n) + 4*int64(set(n)) + 2*grown(h)
	memory += int64(h)*chain + tabled(int64(h), word)
	memory += s.words() + s.Wire().RoundSent
	if s.Recovery {
		// The next round's material, and of this one the channels and what they opened.
		memory += material + int64(blob(h)+h*sealed) + int64(h)*(word+keys+word+share)
	}
	return memory
}

// ServerMemory returns what the server keeps once all have submitted, in bytes: the sum,
// everybody's keys, and with recovery the material and shares of the round and of the
// next.
func (s Session) ServerMemory() int64 {
	s = s.settled()
	n, h := int64(s.Parties), s.Neighbours
	memory := int64(fixed) + s.words() + n*(announced+2*word) + tabled(n, slice) +
		grown(s.Parties) + 6*int64(set(s.Parties))
	if s.sparse() {
		memory += 2 * word * n // the graph
	}
	if s.Recovery {
		memory += n * (2*(material+word+int64(blob(h)+h*sealed)) + slice + int64(h*sealed) +
			share + 2*(slice+grown(h)) + slice)
	}
	return memory
}

// SetUpMemory returns what the server has in set-up when the messages that fix the
// members are made, apart from everybody's keys: the ciphertexts and these messages, until
// parties answer.
func (s Session) SetUpMemory() int64 {
	s = s.settled()
	if s.Classical {
		return 0
	}
	n, half := int64(s.Parties), float64(s.Neighbours)/2
	return n*int64(set(s.Parties)+header) +
		int64(float64(n)*half*(2*kemText+signature+treeNode*s.path()))
}
