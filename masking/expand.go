package masking

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"iter"
	"runtime"
	"sync"

	"github.com/hushsum/hushsum/internal/cores"
)

// Seed holds the key from which a mask is expanded: an AES-128 key (16 bytes) and a nonce (12
// bytes), both uniform and secret. A seed masks one vector, once.
type Seed [28]byte

// blockSize is how many bytes of keystream are made at a time: few enough to
// stay in the first-level cache until they are added.
const blockSize = 4096

// batchMasks is how many masks go over a part of the vector in turn.
const batchMasks = 32

var (
	blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}
	zeros  [blockSize]byte
)

// AddMask adds the mask expanded from seed.
//
// Segment i has its own stream: AES-128 in counter mode (SP 800-38A §6.5), the
// first counter block being the nonce, with i as a 32-bit big-endian number
// XORed into its last four bytes, followed by four zero bytes. The stream is cut
// into little-endian 64-bit words of ⌊64/b⌋ masks each; the mask of coordinate k
// is bits jb to (j+1)b − 1 of word ⌊k/⌊64/b⌋⌋, for j = k mod ⌊64/b⌋. At most
// 2^31 bytes of a segment's stream are used, so that its 32-bit block counter
// does not wrap.
func (v *Vector) AddMask(seed *Seed) { v.applyOne(mask{*seed, false}) }

// SubMask subtracts the mask that [Vector.AddMask] adds.
func (v *Vector) SubMask(seed *Seed) { v.applyOne(mask{*seed, true}) }

// MaskPair applies the mask that two parties share: the lower of the two adds it, the higher
// subtracts it, and it cancels in the sum of both. self and peer are the parties' indices, and
// not the same.
func (v *Vector) MaskPair(seed *Seed, self, peer int) {
	if self < peer {
		v.AddMask(seed)
	} else {
		v.SubMask(seed)
	}
}

// A mask is one that is to be applied.
type mask struct {
	seed     Seed
	subtract bool
}

// maxGathered is how many masks wait at most: more would not be faster.
const maxGathered = 8 * batchMasks

// Masks applies masks to a vector, many at a time, so that a long vector is read from memory once
// for all of them. The vector must not be touched until [Masks.Apply].
type Masks struct {
	v    *Vector
	list []mask
}

// NewMasks returns Masks that are applied to v.
func NewMasks(v *Vector) *Masks { return &Masks{v, make([]mask, 0, maxGathered)} }

// Add is [Vector.AddMask].
func (m *Masks) Add(seed *Seed) { m.gather(mask{*seed, false}) }

// Sub is [Vector.SubMask].
func (m *Masks) Sub(seed *Seed) { m.gather(mask{*seed, true}) }

// Pair is [Vector.MaskPair].
func (m *Masks) Pair(seed *Seed, self, peer int) { m.gather(mask{*seed, self >= peer}) }

func (m *Masks) gather(one mask) {
	if m.list = append(m.list, one); len(m.list) == cap(m.list) {
		m.Apply()
	}
}

// Apply applies the masks that are not applied yet, and erases their seeds.
func (m *Masks) Apply() {
	m.v.apply(m.list)
	clear(m.list)
	m.list = m.list[:0]
}

func (v *Vector) applyOne(m mask) {
	list := [1]mask{m}
	v.apply(list[:])
	clear(list[:])
}

// apply applies masks by the fastest path that the processor has. If there is enough to do, the
// cores each take a part of the vector.
func (v *Vector) apply(masks []mask) {
	parts := runtime.GOMAXPROCS(0)
	if parts == 1 || uint64(len(masks))*uint64(len(v.words)) < shareWork {
		v.applyPart(masks, 0, len(v.words))
		return
	}
	v.applyParts(masks, parts)
}

// shareWork is how many words of mask are worth more than one core: some 50 µs of one.
const shareWork = 1 << 17

// windowWords is how much of the vector masks go over in turn: it stays in the first-level cache.
const windowWords = 2048

// applyParts applies masks in at most the given number of parts, in parallel. A part begins where
// a window of a segment does.
func (v *Vector) applyParts(masks []mask, parts int) {
	cuts := make([]int, 0, parts+1)
	for s, at := range v.segments() {
		for from := 0; from < s.words(); from += windowWords {
			if uint64(at+from)*uint64(parts) >= uint64(len(cuts))*uint64(len(v.words)) {
				cuts = append(cuts, at+from)
			}
		}
	}
	cuts = append(cuts, len(v.words))
	// Nothing fails, and the context does not end.
	_ = cores.Each(context.Background(), len(cuts)-1, func(i int) error {
		v.applyPart(masks, cuts[i], cuts[i+1])
		return nil
	}, nil)
}

// applyPart applies masks to the words of the vector from one to another.
func (v *Vector) applyPart(masks []mask, from, to int) {
	if v.fuse(masks, from, to) {
		return
	}
	for i := range masks {
		op := addStream
		if masks[i].subtract {
			op = subStream
		}
		v.stream(&masks[i].seed, from, to, op)
	}
}

// A slice is the words of a segment that lie in a part of the vector.
type slice struct {
	Segment
	number uint32 // of the segment
	first  int    // which word of the segment the words begin with
	words  []uint64
}

// slices yields what there is of the segments from one word of the vector to another.
func (v *Vector) slices(from, to int) iter.Seq[slice] {
	return func(yield func(slice) bool) {
		number := uint32(0)
		for s, at := range v.segments() {
			low, high := max(from, at), min(to, at+s.words())
			if low < high && !yield(slice{s, number, low - at, v.words[low:high]}) {
				return
			}
			number++
		}
	}
}

// end clears what lies behind the last coordinate of the segment, if the words go so far.
func (s slice) end() {
	if s.first+len(s.words) == s.Segment.words() {
		s.words[len(s.words)-1] &= s.lastWord()
	}
}

// stream applies a mask by the standard library's keystream.
func (v *Vector) stream(
	seed *Seed, from, to int, op func(dst []uint64, src []byte, body, top uint64),
) {
	key, err := aes.NewCipher(seed[:16])
	if err != nil {
		panic("masking: " + err.Error()) // an AES-128 key has 16 bytes
	}
	block := blocks.Get().(*[blockSize]byte)
	used := 0
	for s := range v.slices(from, to) {
		var counter [16]byte
		copy(counter[:], seed[16:])
		binary.BigEndian.PutUint32(counter[8:], binary.BigEndian.Uint32(counter[8:])^s.number)
		binary.BigEndian.PutUint32(counter[12:], uint32(s.first/2)) // two words a block
		stream := cipher.NewCTR(key, counter[:])
		top, body := s.masks()
		for words := s.words; len(words) > 0; {
			n := min(len(words), blockSize/8)
			used = max(used, 8*n)
			stream.XORKeyStream(block[:8*n], zeros[:8*n])
			op(words[:n], block[:8*n], body, top)
			words = words[n:]
		}
		s.end()
	}
	clear(block[:used]) // the mask is as secret as what it hides
	blocks.Put(block)
}
