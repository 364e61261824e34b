package page

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hushsum/hushsum/service/signature"
)

// ErrOperators: the file of operators' keys cannot be used.
var ErrOperators = errors.New("page: unusable file of operators")

// Operator is somebody who signs requests by a key.
type Operator struct {
	Name string
	Role Role
}

// Operators are operators by their Ed25519 keys; nil: there are none.
type Operators map[[ed25519.PublicKeySize]byte]Operator

const (
	mostOperators    = 1 << 20 // bytes of the file
	mostOperatorName = 60
)

// ReadOperators reads a file with a line for each operator: the role, read or operate, a
// name, and the public key as hushsumd identity prints it, with single spaces between.
// Empty lines, and those that begin with #, are left out. It fails with [ErrOperators],
// naming the line.
func ReadOperators(name string) (Operators, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOperators, err)
	}
	if info.Size() > mostOperators {
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are read", ErrOperators, name,
			info.Size(), mostOperators)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOperators, err)
	}
	out := make(Operators)
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fail := func(reason string) (Operators, error) {
			return nil, fmt.Errorf("%w: %s: line %d: %s; write it as: operate NAME KEY, or read NAME KEY",
				ErrOperators, name, i+1, reason)
		}
		parts := strings.Split(line, " ")
		if len(parts) != 3 {
			return fail(fmt.Sprintf("%d words, want 3", len(parts)))
		}
		role := Role(parts[0])
		if role != Read && role != Operate {
			return fail(fmt.Sprintf("there is no role %.20q", parts[0]))
		}
		if n := parts[1]; n == "" || len(n) > mostOperatorName || strings.ContainsFunc(n, unprintable) {
			return fail(fmt.Sprintf("%.80q is no name", n))
		}
		b, err := hex.DecodeString(parts[2])
		if err != nil || len(b) != ed25519.PublicKeySize {
			return fail("the key is not 64 hexadecimal digits, as hushsumd identity prints it")
		}
		key := [ed25519.PublicKeySize]byte(b)
		if _, twice := out[key]; twice {
			return fail("the key is there twice")
		}
		out[key] = Operator{Name: parts[1], Role: role}
	}
	return out, nil
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// signed returns who signed a request, and has the body that follows compared with the
// digest that was signed. It fails with errors of package signature.
func (s *site) signed(r *http.Request) (Operator, error) {
	found, err := signature.Verify(r, s.now())
	if err != nil {
		return Operator{}, err
	}
	operator, known := s.Operators[[ed25519.PublicKeySize]byte(found.Key)]
	if !known {
		return Operator{}, errStranger
	}
	if r.ContentLength == 0 {
		return operator, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxDeclared+1))
	if err != nil {
		return Operator{}, err
	}
	if len(body) > maxDeclared || sha256.Sum256(body) != found.Digest {
		return Operator{}, signature.ErrSignature
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return operator, nil
}

var errStranger = errors.New("page: the key is no operator's; see serve --operators")

func (s *site) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}
