package oneshot

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha3"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cloudflare/circl/dh/x25519"
	"github.com/cloudflare/circl/kem/mlkem/mlkem768"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/hushsum/hushsum/internal/entropy"
)

// HPKE in base mode for one message (RFC 9180 §6.1), with the KEMs of [KEM], HKDF-SHA256 and
// ChaCha20-Poly1305. crypto/hpke does the same by the standard library's X25519 and ML-KEM, which
// take twice as long as circl's; a party seals to all members. The tests compare both.

// tagSize is how many bytes ChaCha20-Poly1305 adds.
const tagSize = chacha20poly1305.Overhead

// errOpen: a box is not for the key, or was changed.
var errOpen = errors.New("oneshot: the box cannot be opened")

// errOrder: X25519 with a point of small order.
var errOrder = errors.New("a point of small order")

// publicKey is a member's key of a round.
type publicKey struct {
	kem    KEM
	hybrid mlkem768.PublicKey // of KEMHybrid
	x25519 x25519.Key
}

// privateKey opens a member's boxes. It has the bytes of crypto/hpke's.
type privateKey struct {
	kem            KEM
	seed           [32]byte
	hybrid         *mlkem768.PrivateKey // of KEMHybrid
	secret, public x25519.Key
}

// newPrivateKey makes a key from what it keeps of itself.
func (k KEM) newPrivateKey(seed []byte) (*privateKey, error) {
	if len(seed) != 32 {
		return nil, errors.New("oneshot: a private key has 32 bytes")
	}
	p := &privateKey{kem: k, seed: [32]byte(seed), secret: x25519.Key(seed)}
	if k == KEMHybrid {
		var expanded [mlkem768.KeySeedSize + x25519.Size]byte
		defer clear(expanded[:])
		shake := sha3.NewSHAKE256()
		_, _ = shake.Write(seed)
		_, _ = shake.Read(expanded[:])
		_, p.hybrid = mlkem768.NewKeyFromSeed(expanded[:mlkem768.KeySeedSize])
		p.secret = x25519.Key(expanded[mlkem768.KeySeedSize:])
	}
	x25519.KeyGen(&p.public, &p.secret)
	return p, nil
}

// encapsulate draws a secret for the holder of a key from crypto/rand, and appends to b what
// carries it. It fails with [ErrKey] or [ErrRandom].
func (p *publicKey) encapsulate(b []byte) (secret, enc []byte, err error) {
	var public, shared, own x25519.Key
	defer clear(own[:])
	defer clear(shared[:])
	if err := entropy.Read("oneshot", nil, own[:]); err != nil {
		return nil, nil, err
	}
	x25519.KeyGen(&public, &own)
	if !x25519.Shared(&shared, &own, &p.x25519) {
		return nil, nil, fmt.Errorf("%w: %w", ErrKey, errOrder)
	}
	if p.kem == KEMX25519 {
		enc = append(b, public[:]...)
		return dhkem(&shared, &public, &p.x25519), enc, nil
	}
	var first, message [32]byte
	defer clear(first[:])
	defer clear(message[:])
	if err := entropy.Read("oneshot", nil, message[:]); err != nil {
		return nil, nil, err
	}
	at := len(b)
	enc = slices.Grow(b, p.kem.encSize())[:at+mlkem768.CiphertextSize]
	p.hybrid.EncapsulateTo(enc[at:], first[:], message[:])
	return combine(&first, &shared, &public, &p.x25519), append(enc, public[:]...), nil
}

// decapsulate returns the secret that enc carries.
func (p *privateKey) decapsulate(enc []byte) ([]byte, error) {
	var shared x25519.Key
	defer clear(shared[:])
	public := x25519.Key(enc[len(enc)-x25519.Size:])
	if !x25519.Shared(&shared, &p.secret, &public) {
		return nil, errOrder
	}
	if p.kem == KEMX25519 {
		return dhkem(&shared, &public, &p.public), nil
	}
	var first [32]byte
	defer clear(first[:])
	p.hybrid.DecapsulateTo(first[:], enc[:mlkem768.CiphertextSize])
	return combine(&first, &shared, &public, &p.public), nil
}

// combine makes the hybrid secret (draft-ietf-hpke-pq, MLKEM768-X25519), of those of both KEMs, the
// sender's X25519 key and the recipient's.
func combine(first *[32]byte, second, sender, recipient *x25519.Key) []byte {
	b := make([]byte, 0, 4*32+6)
	b = append(append(b, first[:]...), second[:]...)
	b = append(append(b, sender[:]...), recipient[:]...)
	b = append(b, `\.//^\`...)
	defer clear(b)
	secret := sha3.Sum256(b)
	return secret[:]
}

// dhkem makes the secret of DHKEM(X25519, HKDF-SHA256) (RFC 9180 §4.1).
func dhkem(shared, sender, recipient *x25519.Key) []byte {
	suite := binary.BigEndian.AppendUint16([]byte("KEM"), kemX25519)
	key := labeledExtract(suite, nil, "eae_prk", shared[:])
	defer clear(key)
	return labeledExpand(suite, key, "shared_secret", slices.Concat(sender[:], recipient[:]), 32)
}

// Identifiers of HPKE.
const (
	kemX25519           = 0x0020
	kemHybrid           = 0x647a
	kdfHKDFSHA256       = 1
	aeadChaChaPoly      = 3
	hpkeVersion         = "HPKE-v1"
	modeBase       byte = 0
)

// seal seals plaintext to a key. It fails with [ErrKey] or [ErrRandom].
func seal(key *publicKey, info, plaintext []byte) ([]byte, error) {
	box := make([]byte, 0, key.kem.encSize()+len(plaintext)+tagSize)
	secret, box, err := key.encapsulate(box)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	k, nonce := key.kem.schedule(secret, info)
	defer clear(k)
	aead, err := chacha20poly1305.New(k)
	if err != nil {
		return nil, err
	}
	return aead.Seal(box, nonce, plaintext, nil), nil
}

// open opens a box, or fails with errOpen.
func open(key *privateKey, info, box []byte) ([]byte, error) {
	size := key.kem.encSize()
	if len(box) < size {
		return nil, errOpen
	}
	secret, err := key.decapsulate(box[:size])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOpen, err)
	}
	defer clear(secret)
	k, nonce := key.kem.schedule(secret, info)
	defer clear(k)
	aead, err := chacha20poly1305.New(k)
	if err != nil {
		return nil, err
	}
	plaintext, err := aead.Open(nil, nonce, box[size:], nil)
	if err != nil {
		return nil, errOpen
	}
	return plaintext, nil
}

// schedule makes the key and the nonce of a secret (RFC 9180 §5.1, without a PSK).
func (k KEM) schedule(secret, info []byte) (key, nonce []byte) {
	suite := []byte("HPKE")
	id := uint16(kemHybrid)
	if k == KEMX25519 {
		id = kemX25519
	}
	for _, x := range []uint16{id, kdfHKDFSHA256, aeadChaChaPoly} {
		suite = binary.BigEndian.AppendUint16(suite, x)
	}
	context := append([]byte{modeBase}, labeledExtract(suite, nil, "psk_id_hash", nil)...)
	context = append(context, labeledExtract(suite, nil, "info_hash", info)...)
	master := labeledExtract(suite, secret, "secret", nil)
	defer clear(master)
	return labeledExpand(suite, master, "key", context, chacha20poly1305.KeySize),
		labeledExpand(suite, master, "base_nonce", context, chacha20poly1305.NonceSize)
}

// labeledExtract and labeledExpand are HKDF of RFC 9180 §4.
func labeledExtract(suite, salt []byte, label string, input []byte) []byte {
	b := slices.Concat([]byte(hpkeVersion), suite, []byte(label), input)
	defer clear(b)
	key, err := hkdf.Extract(sha256.New, b, salt)
	if err != nil {
		panic("oneshot: " + err.Error()) // the hash is a constant
	}
	return key
}

func labeledExpand(suite, key []byte, label string, info []byte, size int) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(size))
	b = slices.Concat(b, []byte(hpkeVersion), suite, []byte(label), info)
	out, err := hkdf.Expand(sha256.New, key, string(b), size)
	if err != nil {
		panic("oneshot: " + err.Error()) // sizes are constants
	}
	return out
}
