package link

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/keyexchange"
)

// ErrPeer: the peer that answers is not the coordinator that the party knows, or the one that
// dials is not in the roster.
var ErrPeer = errors.New("link: the other side of the connection is not the expected one")

// alpn names this transport and its version, by which the sides find that they speak the same
// (ALPN, RFC 7301).
const alpn = "hushsum/1"

var errProtocol = fmt.Errorf("%w: it does not speak %s; compare the versions of both programs",
	ErrPeer, alpn)

// ErrConfig: there is no roster, or an identity is no Ed25519 key.
var ErrConfig = errors.New("link: unusable configuration")

// checkIdentity returns an error unless a signer has an Ed25519 key. It fails with [ErrConfig] or
// keyexchange.ErrSigner.
func checkIdentity(identity crypto.Signer) error {
	if identity == nil {
		return fault.New(ErrConfig, "give an Ed25519 key whose public half the other side knows",
			"Identity: there is none")
	}
	if key, ok := identity.(ed25519.PrivateKey); ok && len(key) != ed25519.PrivateKeySize {
		return fault.New(ErrConfig, "", "Identity: it has %d bytes, an Ed25519 key has %d", len(key),
			ed25519.PrivateKeySize)
	}
	if _, ok := identity.Public().(ed25519.PublicKey); !ok {
		return keyexchange.ErrSigner
	}
	return nil
}

// certificate returns a TLS certificate of an Ed25519 identity, which the other side
// looks at for its key and for nothing else.
func certificate(identity crypto.Signer) (tls.Certificate, error) {
	if err := checkIdentity(identity); err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Unix(1<<36, 0),
	}
	der, err := x509.CreateCertificate(nil, template, template, identity.Public(), identity)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("link: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: identity}, nil
}

// tlsConfig is TLS 1.3 between keys that the sides know: certificates of authorities
// play no part.
func tlsConfig(
	identity crypto.Signer, accept func(key ed25519.PublicKey) error,
) (*tls.Config, error) {
	own, err := certificate(identity)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Certificates:       []tls.Certificate{own},
		ClientAuth:         tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // VerifyConnection pins the key instead
		NextProtos:         []string{alpn},
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) != 1 {
				return ErrPeer
			}
			key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok {
				return ErrPeer
			}
			if err := accept(key); err != nil {
				return err
			}
			if state.NegotiatedProtocol != alpn {
				return errProtocol
			}
			return nil
		},
		SessionTicketsDisabled: true,
	}, nil
}

// TCPDialer is a [Dialer] over TCP with TLS 1.3.
type TCPDialer struct {
	Address     string            // of the coordinator, host:port
	Identity    crypto.Signer     // the party's, Ed25519
	Coordinator ed25519.PublicKey // who must answer
}

// Dial connects to the coordinator. It fails with [ErrConfig] or keyexchange.ErrSigner if Identity
// is unusable, and with [ErrPeer] if somebody else answers or another program. Only the
// coordinator's answer tells that it does not know the party: then Receive of the link fails with
// [ErrPeer].
func (d *TCPDialer) Dial(ctx context.Context) (Link, error) {
	config, err := tlsConfig(d.Identity, func(key ed25519.PublicKey) error {
		if !key.Equal(d.Coordinator) {
			return ErrPeer
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", d.Address)
	if err != nil {
		// The alert of RFC 7301, section 3.2, for which the library has no type.
		if strings.Contains(err.Error(), "no application protocol") {
			err = errProtocol
		}
		return nil, err
	}
	link := newConnLink(conn, MaxFrame)
	link.dialed = true
	return link, nil
}

// connLink frames a connection: a length of four bytes before each frame.
type connLink struct {
	conn     net.Conn
	maxFrame int
	sending  sync.Mutex
	dialed   bool   // by this side, which has received nothing yet
	first    []byte // was received before the link was handed out; nil: nothing was
	spare    []byte // room for the next frame, that one before was in; nil: there is none
	left     func() // is called when the link is closed; may be nil
}

func newConnLink(conn net.Conn, maxFrame int) *connLink {
	return &connLink{conn: conn, maxFrame: maxFrame}
}

// interrupt ends what waits for the connection when the context ends.
func interrupt(ctx context.Context, set func(time.Time) error) (stop func() error) {
	_ = set(time.Time{})
	after := context.AfterFunc(ctx, func() { _ = set(time.Unix(1, 0)) })
	return func() error {
		after()
		return ctx.Err()
	}
}

func (l *connLink) Send(ctx context.Context, frame []byte) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	stop := interrupt(ctx, l.conn.SetWriteDeadline)
	head := binary.BigEndian.AppendUint32(nil, uint32(len(frame)))
	buffers := net.Buffers{head, frame}
	_, err := buffers.WriteTo(l.conn)
	if ended := stop(); ended != nil && err != nil {
		return ended
	}
	return err
}

// firstRead is how much of a frame is made room for before any of it has come.
const firstRead = 64 << 10

func (l *connLink) Receive(ctx context.Context) ([]byte, error) {
	if first := l.first; first != nil {
		l.first = nil
		return first, nil
	}
	stop := interrupt(ctx, l.conn.SetReadDeadline)
	frame, err := l.receive()
	if ended := stop(); ended != nil && err != nil {
		return nil, ended
	}
	if l.dialed && err == nil {
		l.dialed = false
		err = unknownThere(frame)
	}
	return frame, err
}

// reuse has the next frame received into the room of one that nobody needs any more.
func (l *connLink) reuse(frame []byte) { l.spare = frame }

// limit sets the length of the longest frame that is received.
func (l *connLink) limit(maxFrame int) { l.maxFrame = maxFrame }

func (l *connLink) receive() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(l.conn, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size > int64(l.maxFrame) {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are accepted", ErrFrame, size, l.maxFrame)
	}
	frame := l.spare[:0]
	if l.spare = nil; frame == nil {
		frame = make([]byte, 0, min(size, firstRead))
	}
	for int64(len(frame)) < size {
		if len(frame) == cap(frame) {
			frame = append(make([]byte, 0, min(size, 2*int64(cap(frame)))), frame...)
		}
		n, err := l.conn.Read(frame[len(frame):min(size, int64(cap(frame)))])
		if err != nil && n == 0 {
			return nil, err
		}
		frame = frame[:len(frame)+n]
	}
	return frame, nil
}

func (l *connLink) Close() error {
	err := l.conn.Close()
	if l.left != nil {
		l.left()
	}
	return err
}
