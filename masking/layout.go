package masking

import (
	"errors"
	"fmt"
)

// Limits of a layout.
const (
	maxSegments = 1 << 10 // segments in a layout
	MaxLength   = 1 << 28 // coordinates in a layout, all segments together
)

// ErrLayout: a layout is empty or too large, or has a segment without
// coordinates or with bits outside 1 to 64.
var ErrLayout = errors.New(
	"masking: a layout needs 1 to 1024 segments of 1 to 64 bits and at most 2^28 coordinates")

// Segment is one part of a submission: Length coordinates in Z_{2^Bits}.
type Segment struct {
	Length int // coordinates, at least 1
	Bits   int // b, from 1 to 64
}

// Layout is the list of segments of a submission.
type Layout []Segment

// Validate returns [ErrLayout], with the reason, if the layout is unusable.
func (l Layout) Validate() error {
	if len(l) == 0 || len(l) > maxSegments {
		return fmt.Errorf("%w: it has %d segments", ErrLayout, len(l))
	}
	left := MaxLength
	for i, s := range l {
		if s.Bits < 1 || s.Bits > 64 {
			return fmt.Errorf("%w: segment %d has %d bits", ErrLayout, i, s.Bits)
		}
		if s.Length < 1 || s.Length > left {
			return fmt.Errorf("%w: segment %d has %d coordinates", ErrLayout, i, s.Length)
		}
		left -= s.Length
	}
	return nil
}

// PackedSize returns how many bytes [Vector.AppendPacked] writes: every segment takes Length ×
// Bits bits, rounded up to a byte.
func (l Layout) PackedSize() int {
	size := 0
	for _, s := range l {
		size += s.packedSize()
	}
	return size
}

func (s Segment) packedSize() int { return (s.Length*s.Bits + 7) / 8 }

// slots returns ⌊64/b⌋, the coordinates that share a 64-bit word. Slot j of a
// word is its bits jb to (j+1)b − 1; bits above the last slot are zero.
func (s Segment) slots() int { return 64 / s.Bits }

// wordBits returns how many bits of a word are coordinates.
func (s Segment) wordBits() int { return s.slots() * s.Bits }

// words returns how many words the segment takes.
func (s Segment) words() int { return (s.Length + s.slots() - 1) / s.slots() }

// masks returns, for a word full of slots, the highest bit of every slot and
// all the lower bits.
func (s Segment) masks() (top, body uint64) {
	for range s.slots() {
		top = top<<s.Bits | 1<<(s.Bits-1)
		body = body<<s.Bits | (1<<(s.Bits-1) - 1)
	}
	return top, body
}

// lastWord masks the slots of the segment's last word that hold coordinates.
func (s Segment) lastWord() uint64 {
	used := (s.Length - (s.words()-1)*s.slots()) * s.Bits
	return ^uint64(0) >> (64 - used)
}
