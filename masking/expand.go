package masking

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"sync"
)

// Seed is what a mask is expanded from: an AES-128 key (16 bytes) and a nonce
// (12 bytes), both uniform and secret. A seed masks one vector, once.
type Seed [28]byte

// blockSize is how many bytes of keystream are made at a time: few enough to
// stay in the first-level cache until they are added.
const blockSize = 4096

var (
	blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}
	zeros  [blockSize]byte
)

// AddMask adds the mask that seed expands to.
//
// Segment i has its own stream: AES-128 in counter mode (SP 800-38A §6.5), the
// first counter block being the nonce, with i as a 32-bit big-endian number
// XORed into its last four bytes, followed by four zero bytes. The stream is cut
// into little-endian 64-bit words of ⌊64/b⌋ masks each; the mask of coordinate k
// is bits jb to (j+1)b − 1 of word ⌊k/⌊64/b⌋⌋, for j = k mod ⌊64/b⌋. At most
// 2^31 bytes of a segment's stream are used, so that its 32-bit block counter
// does not wrap.
func (v *Vector) AddMask(seed *Seed) { v.mask(seed, addStream) }

// SubMask subtracts the mask that [Vector.AddMask] adds.
func (v *Vector) SubMask(seed *Seed) { v.mask(seed, subStream) }

// MaskPair applies the mask that two parties share: the lower of the two adds
// it, the higher subtracts it, and in the sum of both nothing of it is left.
// self and peer are the parties' indices, and not the same.
func (v *Vector) MaskPair(seed *Seed, self, peer int) {
	if self < peer {
		v.AddMask(seed)
	} else {
		v.SubMask(seed)
	}
}

func (v *Vector) mask(seed *Seed, op func(dst []uint64, src []byte, body, top uint64)) {
	key, err := aes.NewCipher(seed[:16])
	if err != nil {
		panic("masking: " + err.Error()) // an AES-128 key has 16 bytes
	}
	block := blocks.Get().(*[blockSize]byte)
	used := 0
	rest := v.words
	for i, s := range v.layout {
		var counter [16]byte
		copy(counter[:], seed[16:])
		binary.BigEndian.PutUint32(counter[8:], binary.BigEndian.Uint32(counter[8:])^uint32(i))
		stream := cipher.NewCTR(key, counter[:])
		top, body := s.masks()
		words := rest[:s.words()]
		rest = rest[len(words):]
		last := &words[len(words)-1]
		for len(words) > 0 {
			n := min(len(words), blockSize/8)
			used = max(used, 8*n)
			stream.XORKeyStream(block[:8*n], zeros[:8*n])
			op(words[:n], block[:8*n], body, top)
			words = words[n:]
		}
		*last &= s.lastWord()
	}
	clear(block[:used]) // the mask is as secret as what it hides
	blocks.Put(block)
}
