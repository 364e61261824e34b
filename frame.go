package hushsum

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/protocol"
)

// A frame is one byte that says what follows.
const (
	frameHello     = 1 // party → coordinator: hello, as JSON; the first of a connection
	frameRefusal   = 2 // coordinator → party: refusal, as JSON; the last of a connection
	frameJoin      = 3 // coordinator → party: u64, the number of a session that forms
	frameMessage   = 4 // both ways: a message of package protocol
	frameBroadcast = 5 // coordinator → party: what the next round begins with
	frameEnd       = 6 // coordinator → party: the last broadcast; the job is done
	framePart      = 7 // both ways: a kind and a part of what the frame of that kind ends
	frameAbsent    = 8 // party → coordinator: absence, as JSON; older coordinators ignore it

	// With a committee:
	frameOffer  = 9  // party → coordinator: u64, a round that it has a submission for
	frameUpload = 10 // coordinator → party: u64, the round that there is room in for it
)

// maxText bounds the frames that are JSON.
const maxText = 64 << 10

// hello says who a party is going to be in the job.
type hello struct {
	Plan   Plan     `json:"plan,omitzero"`
	Job    []string `json:"job,omitempty"` // lines of job.Job, in place of a plan
	Roster string   `json:"roster"`        // its digest, in hexadecimal digits
	Digest string   `json:"digest"`        // of all that was settled
	// Sessions are the numbers of those that the party has keys for, and Least the least
	// number that it has not used.
	Sessions []uint64 `json:"sessions"`
	Least    uint64   `json:"least"`
}

// absence says that a party does not submit in a round of the job, or no more than how far it is.
type absence struct {
	Told   uint64 `json:"told"`   // the last round that it has submitted in
	Absent uint64 `json:"absent"` // 0: none, said after hello
	Why    string `json:"why"`    // a drive.Cause
}

// refusal says why the coordinator does not go on with a party.
type refusal struct {
	Field  string `json:"field"`
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
}

func frame(kind byte, body []byte) []byte { return append([]byte{kind}, body...) }

// roundFrame is a frame that says a round.
func roundFrame(kind byte, round uint64) []byte {
	return frame(kind, binary.BigEndian.AppendUint64(nil, round))
}

func jsonFrame(kind byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("hushsum: " + err.Error()) // plans are valid
	}
	return frame(kind, b)
}

// parseJSON reads the body of a frame strictly.
func parseJSON(body []byte, into any) error {
	if len(body) > maxText {
		return fmt.Errorf("%w: %d bytes of JSON", ErrFrame, len(body))
	}
	if err := strict.JSON(body, into); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return nil
}

// broadcast is what a round begins with: its number in the job, random bytes that the
// rotation follows from, and the model, which does not change any more.
type broadcast struct {
	round  uint64
	fresh  [32]byte
	model  weights
	digest [32]byte // of its bytes
}

// broadcastHead is the length of what precedes the model.
const broadcastHead = 8 + 32

// settle fills in the digest. It fails with aggregation.ErrNotFinite.
func (b *broadcast) settle() error {
	h := protocol.NewBroadcastHash()
	if _, err := b.WriteTo(h); err != nil {
		return err
	}
	b.digest = [32]byte(h.Sum(nil))
	return nil
}

// WriteTo writes its bytes, in pieces.
func (b *broadcast) WriteTo(w io.Writer) (written int64, err error) {
	head := append(binary.BigEndian.AppendUint64(nil, b.round), b.fresh[:]...)
	n, err := w.Write(head)
	if err != nil {
		return int64(n), err
	}
	written, err = b.model.WriteTo(w)
	return written + int64(n), err
}

func (b *broadcast) bytes() ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, broadcastHead+8*b.model.count()))
	if _, err := b.WriteTo(out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// parseBroadcast parses one whose model is held as float64.
func parseBroadcast(in []byte, length int) (*broadcast, error) {
	if len(in) < broadcastHead {
		return nil, fmt.Errorf("%w: a broadcast of %d bytes", ErrFrame, len(in))
	}
	b := &broadcast{round: binary.BigEndian.Uint64(in), fresh: [32]byte(in[8:])}
	model, err := aggregation.ParseModel(in[broadcastHead:], length)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	b.model = floats[float64](model)
	return b, nil
}
