package masking

import "fmt"

// Load copies len(dst) values of a segment, from the given coordinate on, to dst. It fails with
// [ErrLength] if the segment is too short for them.
func (v *Vector) Load(dst []uint64, segment, from int) error {
	s, words, err := v.window(segment, from, len(dst))
	if err != nil {
		return err
	}
	slots, bits := s.slots(), s.Bits
	low := ^uint64(0) >> (64 - bits)
	at := from / slots
	if slots == 2 && from%2 == 0 { // the usual case
		for i, word := range words[at:][:len(dst)/2] {
			dst[2*i], dst[2*i+1] = word&low, word>>bits
		}
		at += len(dst) / 2
		dst = dst[len(dst)&^1:]
	}
	shift := from % slots * bits
	for i := range dst {
		dst[i] = words[at] >> shift & low
		if shift += bits; shift > 64-bits {
			shift = 0
			at++
		}
	}
	return nil
}

// Store sets as many coordinates of a segment as there are values, from the given coordinate on. It
// fails with [ErrLength] if the segment is too short for them, and with [ErrRange] if a value is
// 2^b or more; v is then zero.
//
// Load and Store serve vectors too long to have all their values in memory at once,
// at eight bytes each.
func (v *Vector) Store(segment, from int, values []uint64) error {
	s, words, err := v.window(segment, from, len(values))
	if err != nil {
		return err
	}
	slots := s.slots()
	head := min((slots-from%slots)%slots, len(values)) // fill a word that is begun
	tail := head + (len(values)-head)/slots*slots      // begin one that is not filled
	all := s.replace(words, from, values[:head])
	all |= s.replace(words, from+tail, values[tail:])
	fits := s.store(words[(from+head)/slots:], values[head:tail])
	if !fits || s.Bits < 64 && all>>s.Bits != 0 {
		v.Erase()
		return fmt.Errorf("%w: segment %d holds values below 2^%d", ErrRange, segment, s.Bits)
	}
	return nil
}

// replace stores values one by one, into words that hold others too, and returns
// all bits that are set in them.
func (s Segment) replace(words []uint64, from int, values []uint64) (all uint64) {
	low := ^uint64(0) >> (64 - s.Bits)
	for i, x := range values {
		all |= x
		at := &words[(from+i)/s.slots()]
		shift := (from + i) % s.slots() * s.Bits
		*at = *at&^(low<<shift) | x&low<<shift
	}
	return all
}

// window returns a segment and its words, or [ErrLength] if it does not have n
// coordinates from the given one on.
func (v *Vector) window(segment, from, n int) (Segment, []uint64, error) {
	if segment < 0 || segment >= len(v.layout) {
		return Segment{}, nil, fmt.Errorf("%w: no segment %d", ErrLength, segment)
	}
	at := 0
	for _, s := range v.layout[:segment] {
		at += s.words()
	}
	s := v.layout[segment]
	if from < 0 || from > s.Length || n > s.Length-from {
		return Segment{}, nil, fmt.Errorf("%w: segment %d has %d coordinates, not %d from %d on",
			ErrLength, segment, s.Length, n, from)
	}
	return s, v.words[at : at+s.words()], nil
}
