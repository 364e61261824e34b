package exchange

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/internal/labels"
)

// ErrNext: the present certificate's key has not signed the statement about the next certificate.
var ErrNext = errors.New("exchange: not a statement of the present certificate about the next one")

// HeaderCertificates holds a digest of all statements that GET /v1/certificates returns; it is
// absent where there are none.
const HeaderCertificates = "Hushsum-Certificates"

// NextCertificate is a statement, signed by the key of the present certificate, that says which
// certificate comes next and until when both are valid. A party that has pinned the present
// certificate can verify the statement, no matter who passes it on.
type NextCertificate struct {
	Certificate []byte    `json:"certificate"` // the present one, in DER
	Next        string    `json:"next"`        // fingerprint, 64 hexadecimal digits
	Until       time.Time `json:"until"`       // the present one is good, to the second
	Signature   []byte    `json:"signature"`
}

// SignNext signs a certificate's statement about the next one.
func SignNext(present *tls.Certificate, next [32]byte, until time.Time) (*NextCertificate, error) {
	signer, ok := present.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%w: its key cannot sign", ErrNext)
	}
	c := &NextCertificate{Certificate: present.Certificate[0], Next: hex.EncodeToString(next[:]),
		Until: until.UTC().Truncate(time.Second)}
	said, options := c.said(), crypto.SignerOpts(crypto.SHA256)
	if _, is := signer.Public().(ed25519.PublicKey); is {
		options = crypto.Hash(0)
	} else {
		digest := sha256.Sum256(said)
		said = digest[:]
	}
	var err error
	c.Signature, err = signer.Sign(rand.Reader, said, options)
	return c, err
}

// said returns the bytes that are signed: they begin as no handshake of TLS does.
func (c *NextCertificate) said() []byte {
	return fmt.Appendf(nil, labels.NextCertificate+"\n%x\n%s\n%d",
		sha256.Sum256(c.Certificate), c.Next, c.Until.Unix())
}

// Verify returns the fingerprints of the certificate that makes the statement and of the next one.
// It fails with [ErrNext].
func (c *NextCertificate) Verify() (present, next [32]byte, err error) {
	certificate, err := x509.ParseCertificate(c.Certificate)
	if err != nil {
		return present, next, fmt.Errorf("%w: %w", ErrNext, err)
	}
	algorithm := x509.UnknownSignatureAlgorithm
	switch certificate.PublicKey.(type) {
	case ed25519.PublicKey:
		algorithm = x509.PureEd25519
	case *ecdsa.PublicKey:
		algorithm = x509.ECDSAWithSHA256
	case *rsa.PublicKey:
		algorithm = x509.SHA256WithRSA
	}
	b, err := hex.DecodeString(c.Next)
	if err != nil || len(b) != len(next) {
		return present, next, fmt.Errorf("%w: its fingerprint", ErrNext)
	}
	if err := certificate.CheckSignature(algorithm, c.said(), c.Signature); err != nil {
		return present, next, fmt.Errorf("%w: %w", ErrNext, err)
	}
	return sha256.Sum256(c.Certificate), [32]byte(b), nil
}
