package protocol

import (
	"bytes"
	"io"

	"github.com/hushsum/hushsum/masking"
)

// This file is for vectors of which there is no room for a second copy: submissions that
// are written and read in pieces.

// Submission is a message that carries a masked input, not yet encoded as bytes.
type Submission struct {
	head   []byte
	vector *masking.Vector
	tail   []byte
}

// Size returns the length of the message.
func (s *Submission) Size() int64 {
	return int64(len(s.head) + s.vector.Layout().PackedSize() + len(s.tail))
}

// WriteTo writes the message, in pieces of at most 32 KiB, and fails with the error of w. WriteTo
// may be called again, and writes the same bytes.
func (s *Submission) WriteTo(w io.Writer) (written int64, err error) {
	for _, part := range []io.WriterTo{bytes.NewReader(s.head), s.vector, bytes.NewReader(s.tail)} {
		n, err := part.WriteTo(w)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (s *Submission) bytes() []byte {
	b := append(make([]byte, 0, s.Size()), s.head...)
	return append(s.vector.AppendPacked(b), s.tail...)
}

// SubmitVector is [Client.Submit] without a copy of the input or the message: fill writes
// the input to v, which has the session's layout and is zero or holds an earlier
// submission, and masks are added to it in place. broadcast is the sum of
// [NewBroadcastHash] over the broadcast.
//
// The caller keeps the message, which is valid until the next call of SubmitVector or Submit.
// Neither [Client.Save] nor [Client.Output] includes it: a caller that wants to be able to send the
// message again after a crash stores it first, then saves, then sends. Without that, a crash makes
// the party drop out of the round, as if the message had been lost, and has no other effect.
//
// It fails with the errors of Submit, and with the error of fill, whatever fill wrote; the round
// then still waits.
func (c *Client) SubmitVector(
	broadcast [32]byte, fill func(v *masking.Vector) error,
) (*Submission, error) {
	s, err := c.submit(broadcast, fill)
	if err != nil {
		return nil, err
	}
	c.kept = true
	return s, nil
}

// Kept reports whether the last message is a submission that [Client.SubmitVector] returned, and of
// which round: after a crash send that submission again, in place of [Client.Output].
func (c *Client) Kept() (round uint64, kept bool) { return c.last, c.kept }

// Release frees the room for a vector that the client keeps from one submission to the next. A
// [Submission] that was made keeps using that room.
func (c *Client) Release() { c.vector = nil }
