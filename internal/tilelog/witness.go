package tilelog

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// ErrCosignature: a line is no cosignature of the checkpoint.
var ErrCosignature = errors.New("tilelog: the line is no cosignature of this checkpoint")

const (
	algCosignature = 4 // of keys of witnesses
	timeBytes      = 8
)

// Witness cosigns checkpoints.
type Witness struct {
	name string
	key  ed25519.PublicKey
}

// NewWitness returns the witness of a name and a key.
func NewWitness(name string, key ed25519.PublicKey) (*Witness, error) {
	if name == "" || strings.ContainsAny(name, " +\n\t") || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("tilelog: %q names no witness", name)
	}
	return &Witness{name, key}, nil
}

// Public returns the witness's key as C2SP's signed-note writes it.
func (w *Witness) Public() string {
	key := append([]byte{algCosignature}, w.key...)
	return fmt.Sprintf("%s+%08x+%s", w.name, w.hash(), base64.StdEncoding.EncodeToString(key))
}

func (w *Witness) hash() uint32 {
	h := sha256.Sum256(append(append([]byte(w.name+"\n"), algCosignature), w.key...))
	return binary.BigEndian.Uint32(h[:])
}

// cosigned returns what a witness signs of a note's text.
func cosigned(text string, seconds uint64) []byte {
	return fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text)
}

// textOf returns the text of a note, which its signatures are over.
func textOf(b []byte) (string, error) {
	at := strings.LastIndex(string(b), "\n\n")
	if at < 0 {
		return "", ErrCosignature
	}
	return string(b[:at+1]), nil
}

// Cosign returns the line that a witness adds to a checkpoint. The caller has checked that the
// checkpoint continues all that it has cosigned before.
func (w *Witness) Cosign(b []byte, key ed25519.PrivateKey, now time.Time) (line string, err error) {
	text, err := textOf(b)
	if err != nil {
		return "", err
	}
	seconds := uint64(now.Unix())
	out := binary.BigEndian.AppendUint32(nil, w.hash())
	out = binary.BigEndian.AppendUint64(out, seconds)
	out = append(out, ed25519.Sign(key, cosigned(text, seconds))...)
	return fmt.Sprintf("— %s %s\n", w.name, base64.StdEncoding.EncodeToString(out)), nil
}

// Check fails with [ErrCosignature] unless a line is the witness's cosignature of a checkpoint. It
// returns when the witness says that it signed.
func (w *Witness) Check(b []byte, line string) (time.Time, error) {
	text, err := textOf(b)
	if err != nil {
		return time.Time{}, err
	}
	encoded, found := strings.CutPrefix(line, "— "+w.name+" ")
	signed, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(encoded, "\n"))
	if !found || err != nil || len(signed) != 4+timeBytes+ed25519.SignatureSize ||
		binary.BigEndian.Uint32(signed) != w.hash() {
		return time.Time{}, ErrCosignature
	}
	seconds := binary.BigEndian.Uint64(signed[4:])
	if seconds > 1<<40 || !ed25519.Verify(w.key, cosigned(text, seconds), signed[4+timeBytes:]) {
		return time.Time{}, ErrCosignature
	}
	return time.Unix(int64(seconds), 0).UTC(), nil
}

// Cosigners counts the witnesses, of those given, that have cosigned a checkpoint.
func Cosigners(b []byte, witnesses ...*Witness) (count int) {
	_, lines, _ := strings.Cut(string(b), "\n\n")
	for _, w := range witnesses {
		for line := range strings.Lines(lines) {
			if _, err := w.Check(b, line); err == nil {
				count++
				break
			}
		}
	}
	return count
}

var _ note.Signer = (*Signer)(nil)
