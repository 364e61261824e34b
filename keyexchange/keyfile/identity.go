// Package keyfile keeps secrets in files of their owner alone: identities in PEM, and keys that
// seal states.
package keyfile

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/internal/charset"
	"github.com/hushsum/hushsum/keyexchange"
)

// Errors of files of identities.
var (
	// ErrExists: a file of that name exists. An identity is never overwritten, since a lost one
	// means another roster.
	ErrExists = errors.New("keyfile: the file exists and stays as it is, since a lost identity " +
		"takes another roster")
	// ErrIdentity: a file holds no Ed25519 key in PKCS #8, as PEM, and nothing else.
	ErrIdentity = errors.New("keyfile: not an identity; make one with the command 'identity new FILE'")
)

// pemType is the PEM type of PKCS #8.
const pemType = "PRIVATE KEY"

// mostPEM bounds what is read of a file; an Ed25519 key takes some 120 bytes.
const mostPEM = 16 << 10

// NewIdentity makes an identity and writes it to a new file that only its owner may read. It fails
// with [ErrExists].
func NewIdentity(file string, random io.Reader) (ed25519.PublicKey, error) {
	key, err := keyexchange.GenerateIdentity(random)
	if err != nil {
		return nil, err
	}
	if err := WriteIdentity(file, key); err != nil {
		return nil, err
	}
	return key.Public().(ed25519.PublicKey), nil
}

// WriteIdentity writes an identity to a new file that only its owner may read. It fails with
// [ErrExists].
func WriteIdentity(file string, key ed25519.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
	defer clear(text)
	defer clear(der)
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", ErrExists, file)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	folder, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	_ = folder.Sync() // which not every system has
	return folder.Close()
}

// ReadIdentity reads a file of an identity. It fails with [ErrIdentity] and tells nothing of what
// the file holds.
func ReadIdentity(file string) (ed25519.PrivateKey, error) {
	text, err := short(file)
	defer clear(text)
	switch {
	case errors.Is(err, ErrKeys):
		return nil, fmt.Errorf("%w: %s", ErrIdentity, file)
	case err != nil:
		return nil, err
	}
	if encoding := charset.Of(text); strings.HasPrefix(encoding, "UTF") {
		reason, advice := charset.Foreign(encoding, file)
		return nil, fmt.Errorf("%w: %s: %s; %s", ErrIdentity, file, reason, advice)
	}
	block, rest := pem.Decode(bytes.TrimPrefix(text, []byte(charset.Mark)))
	if block == nil || block.Type != pemType || len(rest) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrIdentity, file)
	}
	defer clear(block.Bytes)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %s holds no key in PKCS #8", ErrIdentity, file)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: %s holds a key of another kind than Ed25519", ErrIdentity, file)
	}
	return private, nil
}
