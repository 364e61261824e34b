package chain

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// ErrHead: a note is no head of the federation, or its key has not signed it.
var ErrHead = errors.New("chain: the note is no head that the federation's key has signed")

const mostHead = 64 << 10 // bytes of a note, with cosignatures

// Head describes a segment up to an entry.
type Head struct {
	Federation string // 64 digits
	Segment    uint64
	Size       uint64 // of the segment's tree
	Root       Hash
	Last       Hash // of the last line
}

// Origin returns the first line of a head's note, which has the first digits of the identifier. It
// is also the name of the key that signs it.
func (h *Head) Origin() string {
	return fmt.Sprintf("hushsum/%s/%d", h.Federation[:min(16, len(h.Federation))], h.Segment)
}

// Compare returns -1, 0 or 1 as a head is lower than, as high as, or higher than another.
func (h *Head) Compare(other *Head) int {
	return cmp.Or(cmp.Compare(h.Segment, other.Segment), cmp.Compare(h.Size, other.Size))
}

// Contradicts reports whether two heads that a federation's key has signed prove that it has signed
// two chains.
func (h *Head) Contradicts(other *Head) bool {
	return h.Origin() == other.Origin() && h.Size == other.Size &&
		(h.Root != other.Root || h.Last != other.Last)
}

// text returns what is signed.
func (h *Head) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n%s\n", h.Origin(), h.Size,
		base64.StdEncoding.EncodeToString(h.Root[:]), base64.StdEncoding.EncodeToString(h.Last[:]))
}

// signer signs notes under a key.
type signer struct {
	verifier note.Verifier
	key      ed25519.PrivateKey
}

func (s signer) Name() string    { return s.verifier.Name() }
func (s signer) KeyHash() uint32 { return s.verifier.KeyHash() }

func (s signer) Sign(text []byte) ([]byte, error) { return ed25519.Sign(s.key, text), nil }

// verifierOf returns the verifier of a key's notes.
func verifierOf(origin string, key ed25519.PublicKey) (note.Verifier, error) {
	text, err := note.NewEd25519VerifierKey(origin, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	return note.NewVerifier(text)
}

// SignHead writes a head as a signed note.
func SignHead(h *Head, key ed25519.PrivateKey) ([]byte, error) {
	if len(h.Federation) != identifier || h.Size == 0 || h.Size > mostLines {
		return nil, fmt.Errorf("%w: a head of %d entries", ErrHead, h.Size)
	}
	verifier, err := verifierOf(h.Origin(), key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	return note.Sign(&note.Note{Text: h.text()}, signer{verifier, key})
}

// OpenHead reads the head of a federation from a note that its key has signed, and perhaps others.
// It fails with [ErrHead].
func OpenHead(b []byte, federation string, key ed25519.PublicKey) (*Head, error) {
	if len(b) > mostHead || len(federation) != identifier || len(key) != ed25519.PublicKeySize {
		return nil, ErrHead
	}
	lines := strings.SplitN(string(b), "\n", 5)
	if len(lines) != 5 {
		return nil, ErrHead
	}
	h := &Head{Federation: federation}
	segment := lines[0][strings.LastIndexByte(lines[0], '/')+1:]
	var err [4]error
	h.Segment, err[0] = strconv.ParseUint(segment, 10, 64)
	h.Size, err[1] = strconv.ParseUint(lines[1], 10, 64)
	err[2], err[3] = parseHash(lines[2], &h.Root), parseHash(lines[3], &h.Last)
	if errors.Join(err[:]...) != nil || h.Size == 0 || h.Size > mostLines {
		return nil, ErrHead
	}
	verifier, failed := verifierOf(h.Origin(), key)
	if failed != nil {
		return nil, failed
	}
	signed, failed := note.Open(b, note.VerifierList(verifier))
	if failed != nil || signed.Text != h.text() {
		return nil, ErrHead
	}
	return h, nil
}

func parseHash(text string, into *Hash) error {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(into) {
		return ErrHead
	}
	copy(into[:], b)
	return nil
}
