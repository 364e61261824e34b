package party

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/hushsum/hushsum/service/exchange"
)

// NewServer returns the Server at an address, https:// or, on loopback, http://; or at several
// addresses separated by commas, the nodes of one server: each party begins at a different node,
// and skips nodes that do not answer or cannot help. fingerprint is the SHA-256 of the server's
// certificate in hexadecimal digits, or several separated by commas; it also stands for the
// certificates that follow (see [Server.KeepCertificates]). An empty fingerprint means a
// certificate that this machine trusts. Proxies are taken from the environment. It fails with
// [ErrServer].
func NewServer(address, fingerprint string, identity crypto.Signer) (*Server, error) {
	s := &Server{identity: identity, process: rand.Uint64() >> 1}
	for _, one := range strings.Split(address, ",") {
		address, err := checkAddress(one)
		if err != nil {
			return nil, err
		}
		s.bases = append(s.bases, &base{address: address})
	}
	s.wait.Store(int64(exchange.Wait(0)))
	s.number.Store(uint64(time.Now().UnixNano()))
	if key, ok := identity.Public().(ed25519.PublicKey); ok {
		s.at.Store(int64(key[0]))
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         s.dial,
		TLSClientConfig:     trusted(),
		TLSHandshakeTimeout: dialTime,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 4,
		ForceAttemptHTTP2:   true,
	}
	if fingerprint != "" {
		var pins [][32]byte
		for _, one := range strings.Split(fingerprint, ",") {
			pin, err := hex.DecodeString(strings.ReplaceAll(strings.ToLower(one), ":", ""))
			if err != nil || len(pin) != sha256.Size {
				return nil, &fingerprintError{one}
			}
			pins = append(pins, [32]byte(pin))
		}
		s.pins = newPins(pins)
		s.pins.now = func() time.Time {
			if s.Now != nil {
				return s.Now()
			}
			return time.Now()
		}
		transport.TLSClientConfig = pinned(s.pins)
	}
	s.client = &http.Client{
		Transport: transport,
		// Only the named server is sent anything.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

func (s *Server) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if s.Dial != nil {
		return s.Dial(ctx, network, address)
	}
	return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, network, address)
}

// checkAddress returns an address without a path.
func checkAddress(address string) (string, error) {
	u, err := url.Parse(address)
	wrong := fmt.Errorf("%w: %q is not an address such as https://host:port", ErrServer, address)
	if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return "", wrong
	}
	switch u.Scheme {
	case "https":
	case "http":
		if ip, err := netip.ParseAddr(u.Hostname()); err != nil || !ip.IsLoopback() {
			return "", fmt.Errorf("%w: http:// is for 127.0.0.1 only, use https://", ErrServer)
		}
	default:
		return "", wrong
	}
	return u.Scheme + "://" + u.Host, nil
}

// trusted accepts certificates that this machine trusts. Proxies that end TLS may support 1.2 only,
// of which suites with forward secrecy and authenticated encryption are accepted.
func trusted() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		CipherSuites: []uint16{ // of TLS 1.2; those of 1.3 are not chosen here
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
			tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
}

// Pinned returns a configuration that trusts certificates with these fingerprints, whatever names
// they have, since nodes make them themselves. It allows TLS 1.3 only.
func Pinned(fingerprints ...[32]byte) *tls.Config { return pinned(newPins(fingerprints)) }

func pinned(p *pins) *tls.Config {
	return &tls.Config{
		MinVersion:            tls.VersionTLS13,
		InsecureSkipVerify:    true, // VerifyPeerCertificate compares the certificate itself
		VerifyPeerCertificate: p.verify,
	}
}

// fingerprintError: what is given as a fingerprint is none. It is [ErrServer], without its text,
// since no server was asked yet.
type fingerprintError struct{ text string }

func (e *fingerprintError) Error() string {
	return fmt.Sprintf("party: %.80q is not a fingerprint, which has 64 hexadecimal digits", e.text)
}

func (e *fingerprintError) Is(target error) bool { return target == ErrServer }
