package link

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// ErrFrame: a frame is longer than the receiver allows, or of no known kind.
var ErrFrame = errors.New("link: not a frame of this protocol")

// Kinds of frames. A frame begins with one byte that says what follows.
const (
	KindHello     = 1 // party → coordinator: hello, as JSON; the first of a connection
	KindRefusal   = 2 // coordinator → party: refusal, as JSON; the last of a connection
	KindJoin      = 3 // coordinator → party: u64, the number of a session that forms
	KindMessage   = 4 // both ways: a message of package protocol
	KindBroadcast = 5 // coordinator → party: what the next round begins with
	KindEnd       = 6 // coordinator → party: the last broadcast; the job is done
	KindPart      = 7 // both ways: a kind and a part of what the frame of that kind ends
	KindAbsent    = 8 // party → coordinator: absence, as JSON

	// With a committee:
	KindOffer  = 9  // party → coordinator: u64, a round that it has a submission for
	KindUpload = 10 // coordinator → party: u64, the round that there is room in for it
)

// MaxText bounds the frames that are JSON.
const MaxText = 64 << 10

// Hello says who a party is going to be in the job.
type Hello struct {
	Job    []string `json:"job,omitempty"` // its lines
	Roster string   `json:"roster"`        // its digest, in hexadecimal digits
	Digest string   `json:"digest"`        // of all that was settled
	// Sessions are the numbers of the sessions that the party has keys for, and Least the least
	// number that it has not used.
	Sessions []uint64 `json:"sessions"`
	Least    uint64   `json:"least"`
	// Extensions have what later versions add, by name. A receiver passes over names that it does not
	// know.
	Extensions map[string]json.RawMessage `json:"extensions,omitempty"`
}

// Told returns the last round that somebody knows of: they say which number is the least that they
// may take part in.
func (h *Hello) Told() uint64 { return max(h.Least, 1) - 1 }

// Absence says that a party does not submit in a round of the job, or only how far the party is.
type Absence struct {
	Told   uint64 `json:"told"`   // the last round that it has submitted in
	Absent uint64 `json:"absent"` // 0: none, said after hello
	Why    string `json:"why"`    // a drive.Cause
}

// Refusal says why the coordinator does not go on with a party.
type Refusal struct {
	Field  string `json:"field"`
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
}

// NewFrame returns a frame of a kind.
func NewFrame(kind byte, body []byte) []byte { return append([]byte{kind}, body...) }

// NumberFrame returns a frame with a number, of a session or a round.
func NumberFrame(kind byte, number uint64) []byte {
	return NewFrame(kind, binary.BigEndian.AppendUint64(nil, number))
}

// JSONFrame returns a frame with a value as JSON.
func JSONFrame(kind byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("link: " + err.Error()) // of text and numbers, which JSON has
	}
	return NewFrame(kind, b)
}

// ParseJSON reads the body of a frame strictly.
func ParseJSON(body []byte, into any) error {
	if len(body) > MaxText {
		return fmt.Errorf("%w: %d bytes of JSON", ErrFrame, len(body))
	}
	if err := strict.JSON(body, into); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return nil
}

// Broadcast begins a round: its number in the job, random bytes that the
// rotation follows from, and the model, which does not change any more.
type Broadcast struct {
	Round  uint64
	Fresh  [32]byte
	Model  Weights
	Digest [32]byte // of its bytes
}

// broadcastHead is the length of what precedes the model.
const broadcastHead = 8 + 32

// Settle fills in the digest. It fails with aggregation.ErrNotFinite.
func (b *Broadcast) Settle() error {
	h := protocol.NewBroadcastHash()
	if _, err := b.WriteTo(h); err != nil {
		return err
	}
	b.Digest = [32]byte(h.Sum(nil))
	return nil
}

// WriteTo writes its bytes, in pieces.
func (b *Broadcast) WriteTo(w io.Writer) (written int64, err error) {
	head := append(binary.BigEndian.AppendUint64(nil, b.Round), b.Fresh[:]...)
	n, err := w.Write(head)
	if err != nil {
		return int64(n), err
	}
	written, err = b.Model.WriteTo(w)
	return written + int64(n), err
}

// InOpening returns the digest that the opening of a round has.
func (b *Broadcast) InOpening() (digest [32]byte, err error) {
	h := oneshot.NewBroadcastHash()
	_, err = b.WriteTo(h)
	return [32]byte(h.Sum(nil)), err
}
