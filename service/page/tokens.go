package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/store"
)

// Role says what an operator may do.
type Role string

// The roles.
const (
	Nobody  Role = ""
	Read    Role = "read"
	Operate Role = "operate" // read too
)

// Tokens holds operators' tokens, stored as hashes.
type Tokens struct {
	Hashes map[Role]string `json:"hashes"` // SHA-256 in hexadecimal digits
}

// OpenTokens reads the file of the tokens' hashes. If it does not exist OpenTokens makes one token
// of each role, and returns them with their roles, to be shown once.
func OpenTokens(name string) (t *Tokens, fresh []string, err error) {
	t = new(Tokens)
	b, err := os.ReadFile(name)
	switch {
	case err == nil:
		if err := strict.JSON(b, t); err != nil {
			return nil, nil, fmt.Errorf("page: %s: %w", name, err)
		}
		return t, nil, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	}
	t.Hashes = make(map[Role]string)
	for _, role := range []Role{Read, Operate} {
		var secret [24]byte
		if _, err := rand.Read(secret[:]); err != nil {
			return nil, nil, err
		}
		token := string(role) + "-" + hex.EncodeToString(secret[:])
		digest := sha256.Sum256([]byte(token))
		t.Hashes[role] = hex.EncodeToString(digest[:])
		fresh = append(fresh, token)
	}
	if b, err = json.Marshal(t); err != nil {
		return nil, nil, err
	}
	if err := store.FileStore(name).Save(b); err != nil {
		return nil, nil, err
	}
	return t, fresh, nil
}

// role returns the role that a token grants.
func (t *Tokens) role(token string) Role {
	digest := sha256.Sum256([]byte(token))
	text := []byte(hex.EncodeToString(digest[:]))
	found := Nobody
	for _, role := range []Role{Read, Operate} {
		if subtle.ConstantTimeCompare(text, []byte(t.Hashes[role])) == 1 {
			found = role
		}
	}
	return found
}
