package page

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hushsum/hushsum/service/signature"
)

// ErrOperators: the file of operators' keys cannot be used.
var ErrOperators = errors.New("page: unusable file of operators")

// operator is an operator that signs requests with a key.
type operator struct {
	Name string
	Role Role
}

// operatorKeys holds operators by their Ed25519 keys.
type operatorKeys map[[ed25519.PublicKeySize]byte]operator

const (
	mostOperators    = 1 << 20 // bytes of the file
	mostOperatorName = 60
	// A file that was changed this shortly before it was read may be changed once more without
	// another time or length: it is read again.
	settling = 2 * time.Second
)

// Operators holds the operators in a file as it is now: the file is checked whenever a request is
// signed. Nil has no operators. It is safe for concurrent use.
type Operators struct {
	name string
	log  *slog.Logger

	mutex sync.Mutex
	keys  operatorKeys
	read  fs.FileInfo // of the file that was read last, nil if there was none
	when  time.Time   // it was read
	wrong string      // why that file is unusable
}

// OpenOperators reads a file with a line for each operator: the role, read or operate, a name, and
// the public key as hushsum identity prints it, with single spaces between. Empty lines, and those
// that begin with #, are skipped. It fails with [ErrOperators], naming the line. If the file
// becomes invalid later, that is logged once, and the operators of the last valid file stay.
func OpenOperators(name string, log *slog.Logger) (*Operators, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	o := &Operators{name: name, log: log}
	if err := o.load(); err != nil {
		return nil, err
	}
	return o, nil
}

// find returns the operator that a key belongs to.
func (o *Operators) find(key ed25519.PublicKey) (signer operator, known bool) {
	if o == nil {
		return operator{}, false
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	info, err := os.Stat(o.name)
	if err != nil || o.read == nil || !os.SameFile(info, o.read) || info.Size() != o.read.Size() ||
		!info.ModTime().Equal(o.read.ModTime()) || o.when.Sub(info.ModTime()).Abs() < settling {
		o.look()
	}
	signer, known = o.keys[[ed25519.PublicKeySize]byte(key)]
	return signer, known
}

// look reads the file again, and logs what has changed.
func (o *Operators) look() {
	before, wrong := o.keys, o.wrong
	err := o.load()
	switch {
	case err != nil && o.wrong != wrong:
		o.log.Error("the file of operators is unusable: those that it had before "+
			"stay", "error", err.Error())
	case err == nil && (wrong != "" || !maps.Equal(before, o.keys)):
		o.log.Info("the file of operators was reread", "operators", len(o.keys))
	}
}

// load reads the file. If it is invalid the operators that it had before stay.
func (o *Operators) load() error {
	keys, info, err := readOperators(o.name)
	o.read, o.when, o.wrong = info, time.Now(), ""
	if err != nil {
		o.wrong = err.Error()
		return err
	}
	o.keys = keys
	return nil
}

func readOperators(name string) (operatorKeys, fs.FileInfo, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrOperators, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrOperators, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, mostOperators+1))
	if err != nil {
		return nil, info, fmt.Errorf("%w: %w", ErrOperators, err)
	}
	if len(text) > mostOperators {
		return nil, info, fmt.Errorf("%w: %s has more than the %d bytes that are read", ErrOperators,
			name, mostOperators)
	}
	keys, err := parseOperators(string(text))
	if err != nil {
		return nil, info, fmt.Errorf("%w: %s: %w", ErrOperators, name, err)
	}
	return keys, info, nil
}

func parseOperators(text string) (operatorKeys, error) {
	out := make(operatorKeys)
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fail := func(format string, a ...any) (operatorKeys, error) {
			return nil, fmt.Errorf("line %d: %s; write it as: operate NAME KEY, or read NAME KEY", i+1,
				fmt.Sprintf(format, a...))
		}
		parts := strings.Split(line, " ")
		if len(parts) != 3 {
			return fail("%d words, want 3", len(parts))
		}
		role := Role(parts[0])
		if role != Read && role != Operate {
			return fail("there is no role %.20q", parts[0])
		}
		if n := parts[1]; n == "" || len(n) > mostOperatorName || strings.ContainsFunc(n, unprintable) {
			return fail("%.80q is not a name", n)
		}
		b, err := hex.DecodeString(parts[2])
		if err != nil || len(b) != ed25519.PublicKeySize {
			return fail("the key is not 64 hexadecimal digits, as hushsumd identity prints it")
		}
		key := [ed25519.PublicKeySize]byte(b)
		if _, twice := out[key]; twice {
			return fail("the key is there twice")
		}
		out[key] = operator{Name: parts[1], Role: role}
	}
	return out, nil
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// signed returns the signer of a request, whose body is not read yet. It fails with errors of
// package signature.
func (s *site) signed(r *http.Request) (signer operator, digest [sha256.Size]byte, err error) {
	found, err := signature.Verify(r, s.now())
	if err != nil {
		return operator{}, digest, err
	}
	signer, known := s.Operators.find(found.Key)
	if !known {
		return operator{}, digest, errStranger
	}
	return signer, found.Digest, nil
}

// compare reads a signed request's body, if it has one, and compares it with the signed digest.
func compare(r *http.Request, digest [sha256.Size]byte) error {
	if r.ContentLength == 0 {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxDeclared+1))
	switch {
	case err != nil:
		return errBroken
	case len(body) > maxDeclared:
		return errOversized
	case sha256.Sum256(body) != digest:
		return signature.ErrSignature
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

var errStranger = errors.New("page: the key is not in the server's file of operators; see serve " +
	"--operators")

func (s *site) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}
