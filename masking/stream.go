package masking

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// pieceWords is how many words go through a buffer at a time. Eight words of a
// segment are a whole number of bytes in its bit string, whatever b is, so that
// every piece but a segment's last ends with a byte.
const pieceWords = 4096

// pieces holds buffers for one piece each.
var pieces = sync.Pool{New: func() any { return new([8 * pieceWords]byte) }}

// piece is up to pieceWords words of a segment, from the given one on.
type piece struct {
	Segment
	words []uint64
	last  bool // the segment ends with it
}

// piece returns what follows the first words of the segment whose words are given.
func (s Segment) piece(words []uint64, done int) piece {
	n := min(len(words)-done, pieceWords)
	return piece{s, words[done : done+n], done+n == len(words)}
}

// bits returns how many bits of the segment's bit string the piece takes.
func (p piece) bits() int {
	if p.last {
		before := (p.Segment.words() - len(p.words)) * p.wordBits()
		return p.Length*p.Bits - before
	}
	return len(p.words) * p.wordBits()
}

// size returns how many bytes the piece packs to.
func (p piece) size() int { return (p.bits() + 7) / 8 }

// WriteTo writes the bytes that [Vector.AppendPacked] appends, through a buffer of 32 KiB. It
// returns the number of bytes written and the error of w, which may have taken a part of the bytes:
// v is unchanged and can be written again.
func (v *Vector) WriteTo(w io.Writer) (written int64, err error) {
	buffer := pieces.Get().(*[8 * pieceWords]byte)
	defer pieces.Put(buffer)
	defer clear(buffer[:])
	for s, at := range v.segments() {
		words := v.words[at : at+s.words()]
		for done := 0; done < len(words); done += pieceWords {
			p := s.piece(words, done)
			packed := buffer[:p.size()]
			s.pack(packed, p.words, p.bits())
			n, err := w.Write(packed)
			written += int64(n)
			if err == nil && n < len(packed) {
				err = io.ErrShortWrite
			}
			if err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// Intake is an [io.Writer] that takes one packed vector after another in pieces of any size, such
// as pieces from a network, without holding the bytes. [Intake.AddTo] adds a vector to a sum once
// the vector is complete and nothing that its sender may still say can make it void; a vector that
// breaks off changes nothing. An Intake has room for one vector. A server that lets many parties
// send at once and has room for few Intakes can make the other parties wait, or write their vectors
// to files and copy these to an Intake one by one.
//
// An Intake is not safe for concurrent use.
type Intake struct {
	room    *Vector
	segment int // where the next piece goes: its segment,
	base    int // the segment's first word
	done    int // and how many of the segment's words are there
	buffer  [8 * pieceWords]byte
	n       int   // bytes in buffer, fewer than the next piece has
	taken   int   // all bytes so far
	err     error // what Write says until Reset
}

// NewIntake returns an Intake for vectors of the layout. It fails with [ErrLayout].
func NewIntake(layout Layout) (*Intake, error) {
	room, err := NewVector(layout)
	if err != nil {
		return nil, err
	}
	return &Intake{room: room}, nil
}

// Write takes the next bytes of the vector. It fails with [ErrPackedSize] if there are more bytes
// than the vector has, and then takes none of them, and with [ErrPadding]; after an error it takes
// nothing until [Intake.Reset].
func (t *Intake) Write(b []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	if size := t.room.layout.PackedSize(); len(b) > size-t.taken {
		t.err = fmt.Errorf("%w: more than %d bytes", ErrPackedSize, size)
		return 0, t.err
	}
	t.taken += len(b)
	for rest := b; len(rest) > 0; {
		s := t.room.layout[t.segment]
		p := s.piece(t.room.words[t.base:t.base+s.words()], t.done)
		n := copy(t.buffer[t.n:p.size()], rest)
		rest = rest[n:]
		if t.n += n; t.n < p.size() {
			break
		}
		if p.last && !s.padded(t.buffer[t.n-1]) {
			t.err = fmt.Errorf("%w: segment %d", ErrPadding, t.segment)
			return len(b) - len(rest), t.err
		}
		s.unpack(p.words, t.buffer[:t.n])
		t.n = 0
		if t.done += len(p.words); p.last {
			t.base += t.done
			t.segment, t.done = t.segment+1, 0
		}
	}
	return len(b), nil
}

// AddTo adds the vector that was written to sum, and makes t ready for the next. It fails with the
// last error of [Intake.Write], with [ErrPackedSize] if bytes are missing, which can then still be
// written, and with [ErrLayoutMismatch]; after any error sum is unchanged.
func (t *Intake) AddTo(sum *Vector) error {
	if t.err != nil {
		return t.err
	}
	if size := t.room.layout.PackedSize(); t.taken < size {
		return fmt.Errorf("%w: %d bytes of %d", ErrPackedSize, t.taken, size)
	}
	if err := sum.Add(t.room); err != nil {
		return err
	}
	t.Reset()
	return nil
}

// Vector gives away the vector that was written; t must not be used afterwards. It fails as
// [Intake.AddTo] does.
func (t *Intake) Vector() (*Vector, error) {
	if t.err != nil {
		return nil, t.err
	}
	if size := t.room.layout.PackedSize(); t.taken < size {
		return nil, fmt.Errorf("%w: %d bytes of %d", ErrPackedSize, t.taken, size)
	}
	v := t.room
	t.room, t.err = nil, errGiven
	return v, nil
}

// errGiven: the intake has given its room away.
var errGiven = errors.New("masking: the intake has already given its vector away")

// Reset discards what was written, and makes t ready for another vector.
func (t *Intake) Reset() {
	if t.room == nil {
		return
	}
	t.segment, t.base, t.done, t.n, t.taken, t.err = 0, 0, 0, 0, 0, nil
}
