package exchange

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/hushsum/hushsum/internal/chain"
)

// Headers, in base64: the signed note of a head of the federation's chain of decisions, in a
// question the newest that the party has accepted, and in an answer the one after the decision that
// the answer follows from; and in answers the line that the head ends with, and a proof that it
// continues the head of the question.
const (
	headerHead  = "Hushsum-Head"
	headerLine  = "Hushsum-Line"
	headerProof = "Hushsum-Proof"
)

// MostLines is the maximum size in bytes of the lines that a party gives at once.
const MostLines = 8 << 20

// longLine is the size in bytes of a line above which an answer is without it: some proxies have a
// buffer of 4 KiB for the headers of an answer.
const longLine = 1500

// mostNote is the maximum size of a head's note in a header, in bytes.
const mostNote = 4 << 10

// errHead: headers that no party or door of this kind sends.
var errHead = errors.New("exchange: the head in its headers")

// Told holds the words of an answer about the chain of decisions.
type Told struct {
	Note  []byte       // of the head, signed
	Line  []byte       // that it ends with; nil: it is long, and with the other lines
	Proof []chain.Hash // that it continues the head of the question, if that is of its segment
}

// Set sets the headers.
func (t *Told) Set(h http.Header) {
	SetHead(h, t.Note)
	if len(t.Line) <= longLine {
		set(h, headerLine, t.Line)
	}
	set(h, headerProof, chain.JoinHashes(t.Proof))
}

// SetHead sets the header with the note of a head, unless there is none.
func SetHead(h http.Header, note []byte) { set(h, headerHead, note) }

func set(h http.Header, name string, b []byte) {
	if len(b) > 0 {
		h.Set(name, base64.StdEncoding.EncodeToString(b))
	}
}

// ParseHead reads the note that SetHead sets, nil if there is none.
func ParseHead(h http.Header) ([]byte, error) { return parse(h, headerHead, mostNote) }

// ParseTold reads what an answer says, nil if it says nothing.
func ParseTold(h http.Header) (*Told, error) {
	note, err1 := ParseHead(h)
	line, err2 := parse(h, headerLine, chain.MostLine)
	proof, err3 := parse(h, headerProof, chain.MostProof*len(chain.Hash{}))
	hashes, err4 := chain.SplitHashes(proof)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	if note == nil {
		return nil, nil
	}
	return &Told{note, line, hashes}, nil
}

// parse reads a header of at most a given number of bytes, nil if there is none.
func parse(h http.Header, name string, most int) ([]byte, error) {
	values := h.Values(name)
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > 1 || len(values[0]) > base64.StdEncoding.EncodedLen(most) {
		return nil, fmt.Errorf("%w: %s is too long, or comes twice", errHead, name)
	}
	b, err := base64.StdEncoding.Strict().DecodeString(values[0])
	if err != nil || base64.StdEncoding.EncodeToString(b) != values[0] || len(b) == 0 {
		return nil, fmt.Errorf("%w: %s is no base64", errHead, name)
	}
	return b, nil
}

// Given holds a part of the chain that a party gives to a server that lacks it: the note of its
// head, and lines, in order, up to the one that the head ends with.
type Given struct {
	Head  []byte   `json:"head"`
	Lines [][]byte `json:"lines"`
}

// Heads writes two heads that the federation's key has signed as a file of evidence: two signed
// notes, one after the other.
func Heads(one, another []byte) []byte {
	return append(append(append([]byte{}, one...), '\n'), another...)
}
