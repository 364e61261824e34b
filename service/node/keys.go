package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/lock"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/store"
)

// Files of a node's folder.
const (
	fileName        = "name"
	fileKey         = "seal.key"
	fileCertificate = "certificate.pem"
	fileTokens      = "tokens.json"
	fileNewTokens   = "tokens.txt" // until an operator has read and deleted it
)

// keys reads the node's keys from its folder, or makes them.
func (n *Node) keys() (err error) {
	if err := os.MkdirAll(n.Folder, 0o700); err != nil {
		return err
	}
	// Two processes in one folder would overwrite each other's record.
	n.lock, err = lock.Folder(n.Folder)
	if errors.Is(err, lock.ErrHeld) {
		return fmt.Errorf("%w: %s", ErrLocked, n.Folder)
	}
	if err != nil {
		return err
	}
	if n.Name == "" {
		name, err := keyfile.Keep(filepath.Join(n.Folder, fileName), func() ([]byte, error) {
			made, err := newName()
			return []byte(made), err
		})
		if err != nil {
			return err
		}
		n.Name = strings.TrimSpace(string(name))
	}
	if err := n.readKeys(); err != nil {
		return err
	}
	if !n.hooks.Plain {
		if err := n.openCertificate(); err != nil {
			return err
		}
	}
	n.tokens, n.NewTokens, err = page.OpenTokens(filepath.Join(n.Folder, fileTokens))
	if err != nil || len(n.NewTokens) == 0 {
		return err
	}
	name := filepath.Join(n.Folder, fileNewTokens)
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("node: %s exists, and is not overwritten by new tokens; delete or move it",
			name)
	}
	n.TokensFile = name
	return store.FileStore(name).Save([]byte(strings.Join(n.NewTokens, "\n") + "\n"))
}

// forgetTokens deletes tokens that nobody will see, since the first start has failed: the next
// start makes others.
func (n *Node) forgetTokens() {
	if len(n.NewTokens) > 0 {
		_ = os.Remove(filepath.Join(n.Folder, fileTokens))
		if n.TokensFile != "" {
			_ = os.Remove(n.TokensFile)
		}
		n.NewTokens, n.TokensFile = nil, ""
	}
}

// ErrLocked: another process uses the node's folder.
var ErrLocked = errors.New("node: another node runs with this folder; stop it, or name another " +
	"--folder")

// ErrNoKey: the folder has a record, and the file of the key that it is sealed under is missing.
var ErrNoKey = errors.New("node: the file of the seal key is missing, and the folder has a " +
	"record that takes it; restore the file from where you keep it, or name another with --key")

// readKeys reads the keys that seal records, and makes one for a new record.
func (n *Node) readKeys() error {
	if n.hooks.Key != nil {
		n.seals = record.NewKeys(*n.hooks.Key)
		return nil
	}
	create := n.KeyFile == ""
	if create {
		n.KeyFile = filepath.Join(n.Folder, fileKey)
		had, err := filepath.Glob(filepath.Join(n.Folder, record.Subfolder) + "*") // or set aside
		if err != nil {
			return err
		}
		if _, gone := os.Lstat(n.KeyFile); len(had) > 0 && errors.Is(gone, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s", ErrNoKey, n.KeyFile)
		}
	}
	n.keyFile.name = n.KeyFile
	n.keyFile.changed() // any later change is read again
	keys, err := keyfile.SealKeys(n.KeyFile, create)
	if err != nil {
		return err
	}
	n.seals = record.NewKeys(keys[0], keys[1:]...)
	return nil
}

// selfSigned makes a certificate for ten years, whose fingerprint parties pin.
func (n *Node) selfSigned() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "hushsumd"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), nil
}
