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
	"runtime"
	"strings"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/internal/lock"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
)

// Files of a node's folder.
const (
	fileName        = "name"
	fileKey         = "seal.key"
	fileCertificate = "certificate.pem"
	fileTokens      = "tokens.json"
	fileNewTokens   = "operators.txt" // until somebody has read and deleted it
)

// keys reads what the node keeps in its folder, or makes it.
func (n *Node) keys() (err error) {
	if err := os.MkdirAll(n.Folder, 0o700); err != nil {
		return err
	}
	// Two processes in one folder would write over each other's record.
	n.lock, err = lock.Folder(n.Folder)
	if errors.Is(err, lock.ErrHeld) {
		return fmt.Errorf("%w: %s", ErrLocked, n.Folder)
	}
	if err != nil {
		return err
	}
	if n.Name == "" {
		name, err := keep(filepath.Join(n.Folder, fileName), func() ([]byte, error) {
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
	if !n.Plain {
		if err := n.openCertificate(); err != nil {
			return err
		}
	}
	n.tokens, n.NewTokens, err = page.OpenTokens(filepath.Join(n.Folder, fileTokens))
	if err != nil || len(n.NewTokens) == 0 {
		return err
	}
	n.TokensFile = filepath.Join(n.Folder, fileNewTokens)
	return hushsum.FileStore(n.TokensFile).Save([]byte(strings.Join(n.NewTokens, "\n") + "\n"))
}

// forgetTokens deletes tokens that nobody is told, since the first start has failed: the next
// makes others.
func (n *Node) forgetTokens() {
	if len(n.NewTokens) > 0 {
		_ = os.Remove(filepath.Join(n.Folder, fileTokens))
		_ = os.Remove(n.TokensFile)
		n.NewTokens, n.TokensFile = nil, ""
	}
}

// keep reads a file, or writes what fresh returns.
func keep(name string, fresh func() ([]byte, error)) ([]byte, error) {
	b, err := os.ReadFile(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	if b, err = fresh(); err != nil {
		return nil, err
	}
	return b, hushsum.FileStore(name).Save(b) // mode 0600
}

// ErrLocked: another process uses the node's folder.
var ErrLocked = errors.New("node: another node runs with this folder; stop it, or name another " +
	"--folder")

// ErrExposed: others of the machine may read a file that has a secret.
var ErrExposed = errors.New("node: others may read a file that has a secret")

// Private fails with [ErrExposed] if a file may be read or written by others than its owner, on
// systems that have such permissions. The group may read a file of root's where this process is
// not root's: so Kubernetes mounts secrets.
func Private(name string) error {
	info, err := os.Stat(name)
	if err != nil || runtime.GOOS == "windows" {
		return err
	}
	if private(info.Mode().Perm(), ownedByRoot(info) && os.Geteuid() > 0) {
		return nil
	}
	return fmt.Errorf("%w: chmod 600 %s", ErrExposed, name)
}

func private(mode fs.FileMode, mounted bool) bool {
	return mode&0o077 == 0 || mounted && mode&0o037 == 0
}

// readKeys reads the keys that seal records.
func (n *Node) readKeys() error {
	if n.Key != nil {
		n.seals = record.NewKeys(*n.Key)
		return nil
	}
	create := n.KeyFile == ""
	if create {
		n.KeyFile = filepath.Join(n.Folder, fileKey)
	}
	n.keyFile.name = n.KeyFile
	n.keyFile.changed() // whatever it becomes from here on is read again
	keys, err := readKeys(n.KeyFile, create)
	if err != nil {
		return err
	}
	n.seals = record.NewKeys(keys[0], keys[1:]...)
	return nil
}

// ReadKey reads a key from a file of 64 hexadecimal digits, which none but its owner may read;
// where there is none it makes one, if it may.
func ReadKey(name string, create bool) (*keyexchange.SealKey, error) {
	keys, err := readKeys(name, create)
	if err != nil {
		return nil, err
	}
	if len(keys) > 1 {
		return nil, fmt.Errorf("%w: %s has more than one", ErrKeys, name)
	}
	return &keys[0], nil
}

// readKeys reads a file of one key a line, which none but its owner may read; where there is none
// it makes one with a key, if it may.
func readKeys(name string, create bool) ([]keyexchange.SealKey, error) {
	var text []byte
	var err error
	if create {
		text, err = keep(name, func() ([]byte, error) {
			key, err := keyexchange.GenerateSealKey(nil)
			if err != nil {
				return nil, err
			}
			return fmt.Appendf(nil, "%x\n", key[:]), nil
		})
	} else {
		text, err = os.ReadFile(name)
	}
	if err == nil {
		err = Private(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("node: the key that seals: %w; make one with: "+
			"(umask 077; openssl rand -hex 32 > %s)", err, name)
	}
	if err != nil {
		return nil, fmt.Errorf("node: the key that seals: %w", err)
	}
	return parseKeys(name, text)
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
