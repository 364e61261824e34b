package masking

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Errors of packed vectors.
var (
	// ErrPackedSize: the number of bytes is not [Layout.PackedSize].
	ErrPackedSize = errors.New("masking: a packed vector has the wrong size")
	// ErrPadding: the bits that fill the last byte of a segment are not zero.
	ErrPadding = errors.New("masking: a packed vector has bits set in its padding")
)

// AppendPacked appends the vector's canonical bytes to b. Segment after
// segment, coordinate k takes bits kb to (k+1)b − 1 of a bit string that fills
// each byte from its lowest bit; zero bits fill the last byte of a segment.
func (v *Vector) AppendPacked(b []byte) []byte {
	at := len(b)
	b = slices.Grow(b, v.layout.PackedSize())[:at+v.layout.PackedSize()]
	out := b[at:]
	for s, at := range v.segments() {
		s.pack(out[:s.packedSize()], v.words[at:at+s.words()], s.Length*s.Bits)
		out = out[s.packedSize():]
	}
	return b
}

// pack writes the lowest left bits of the words' slots, laid end to end, and
// fills the last byte with zeros.
func (s Segment) pack(packed []byte, words []uint64, left int) {
	wordBits := s.wordBits()
	if wordBits == 64 { // the words are the bit string
		full := len(packed) / 8
		for i, word := range words[:full] {
			binary.LittleEndian.PutUint64(packed[8*i:], word)
		}
		for i := range packed[8*full:] {
			packed[8*full+i] = byte(words[full] >> (8 * i))
		}
		return
	}
	var pending uint64 // the lowest n bits wait to be written
	n := 0
	for _, word := range words {
		size := min(wordBits, left)
		left -= size
		pending |= word << n
		if n+size < 64 {
			n += size
			continue
		}
		binary.LittleEndian.PutUint64(packed, pending)
		packed = packed[8:]
		pending = word >> (64 - n)
		n += size - 64
	}
	for i := range packed {
		packed[i] = byte(pending >> (8 * i))
	}
}

// ParsePacked reads what [Vector.AppendPacked] wrote. It accepts exactly one encoding of each
// vector and fails with [ErrLayout], [ErrPackedSize] or [ErrPadding].
func ParsePacked(layout Layout, b []byte) (*Vector, error) {
	v, err := NewVector(layout)
	if err != nil {
		return nil, err
	}
	if err := v.AddPacked(b); err != nil {
		return nil, err
	}
	return v, nil
}

// AddPacked adds a packed vector of the same layout without unpacking it first. It fails as
// [ParsePacked] does, and then leaves v unchanged.
func (v *Vector) AddPacked(b []byte) error {
	if want := v.layout.PackedSize(); len(b) != want {
		return fmt.Errorf("%w: %d bytes, want %d", ErrPackedSize, len(b), want)
	}
	end := 0
	for i, s := range v.layout {
		end += s.packedSize()
		if !s.padded(b[end-1]) {
			return fmt.Errorf("%w: segment %d", ErrPadding, i)
		}
	}
	block := blocks.Get().(*[blockSize]byte)
	for s, at := range v.segments() {
		top, body := s.masks()
		packed := b[:s.packedSize()]
		b = b[len(packed):]
		words := v.words[at : at+s.words()]
		wordBits := s.wordBits()
		done := 0
		if wordBits == 64 { // the bit string is the words
			done = len(packed) / 8
			addStream(words[:done], packed[:8*done], body, top)
		}
		for done < len(words) {
			n := min(len(words)-done, blockSize/8)
			for i := range n {
				binary.LittleEndian.PutUint64(block[8*i:], readBits(packed, (done+i)*wordBits, wordBits))
			}
			addStream(words[done:done+n], block[:8*n], body, top)
			done += n
		}
	}
	clear(block[:])
	blocks.Put(block)
	return nil
}

// unpack reads words from as many slots, laid end to end, as fill them, or as
// packed has.
func (s Segment) unpack(words []uint64, packed []byte) {
	wordBits := s.wordBits()
	if wordBits == 64 && len(packed) == 8*len(words) {
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(packed[8*i:])
		}
		return
	}
	for i := range words {
		words[i] = readBits(packed, i*wordBits, wordBits)
	}
}

// padded tells whether the bits that fill the last byte of a packed segment are
// zero.
func (s Segment) padded(last byte) bool {
	used := s.Length * s.Bits % 8
	return used == 0 || last>>used == 0
}

// readBits returns n ≤ 64 bits of b from the given position, those beyond the
// end of b as zero.
func readBits(b []byte, position, n int) uint64 {
	i, shift := position/8, position%8
	var word, ninth uint64
	if i+9 <= len(b) {
		word = binary.LittleEndian.Uint64(b[i:])
		ninth = uint64(b[i+8])
	} else {
		for j, c := range b[i:] { // at most eight bytes
			word |= uint64(c) << (8 * j)
		}
	}
	word = word>>shift | ninth<<(64-shift)
	return word & (^uint64(0) >> (64 - n))
}
