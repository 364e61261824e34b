package specdecode

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"math/big"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/hushsum/hushsum/internal/labels"
)

// expand is HKDF-Expand (§1).
func expand(key []byte, info string, n int) []byte {
	out, err := hkdf.Expand(sha256.New, key, info, n)
	if err != nil {
		panic(err) // n is a small constant
	}
	return out
}

// derive is HKDF of a scalar without salt (§5.4).
func derive(secret []byte, label string, n int) []byte {
	out, err := hkdf.Key(sha256.New, secret, nil, label, n)
	if err != nil {
		panic(err)
	}
	return out
}

// signed is the string that signatures are over (§2.3).
func signed(label string, parts ...[]byte) []byte {
	return append(append([]byte{byte(len(label))}, label...), bytes.Join(parts, nil)...)
}

func verify(public []byte, message, signature []byte) bool {
	return len(public) == ed25519.PublicKeySize && ed25519.Verify(public, message, signature)
}

// shared holds the secrets from which a pair makes its chain (§5.1).
type shared struct {
	mlkem      []byte // nil with classical keys
	ciphertext []byte
}

// firstChainKey is CK_1 of two parties (§5.1).
func firstChainKey(private, peer []byte, hybrid shared, session, low, high []byte) ([]byte, error) {
	own, err := ecdh.X25519().NewPrivateKey(private)
	if err != nil {
		return nil, err
	}
	other, err := ecdh.X25519().NewPublicKey(peer)
	if err != nil {
		return nil, err
	}
	secret, err := own.ECDH(other)
	if err != nil {
		return nil, err
	}
	info := labels.Chain + string(low) + string(high)
	if hybrid.mlkem != nil {
		secret = join(hybrid.mlkem, secret)
		info += string(hash("", hybrid.ciphertext))
	}
	prk, err := hkdf.Extract(sha256.New, secret, session)
	if err != nil {
		return nil, err
	}
	return expand(prk, info, 32), nil
}

// root is the Merkle tree of RFC 9162 §2.1.1.
func root(leaves [][]byte) []byte {
	n := len(leaves)
	switch n {
	case 0:
		return hash("")
	case 1:
		return hash("\x00", leaves[0])
	}
	k := 1
	for 2*k < n {
		k *= 2
	}
	return hash("\x01", root(leaves[:k]), root(leaves[k:]))
}

// rootByPath is the root that a path leads to from leaf i of n (RFC 9162 §2.1.3.2).
func rootByPath(leaf []byte, i, n int, path [][]byte) []byte {
	r := hash("\x00", leaf)
	for first, last := i, n-1; last > 0; {
		if len(path) == 0 {
			return nil
		}
		if first%2 == 1 || first == last {
			r = hash("\x01", path[0], r)
			for first%2 == 0 {
				first, last = first/2, last/2
			}
		} else {
			r = hash("\x01", r, path[0])
		}
		first, last, path = first/2, last/2, path[1:]
	}
	if len(path) != 0 {
		return nil
	}
	return r
}

// open opens a sealed message (§5.3).
func open(key, sealed, associated []byte) ([]byte, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	if len(sealed) < 40 {
		return nil, fail("a sealed message of %d bytes", len(sealed))
	}
	plain, err := aead.Open(nil, sealed[:24], sealed[24:], associated)
	if err != nil {
		return nil, fail("a sealed message does not open")
	}
	return plain, nil
}

// order is ℓ (§6).
var order, _ = new(big.Int).
	SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

// decodeScalar reads a canonical little-endian scalar (§6).
func decodeScalar(b []byte) (*big.Int, error) {
	x := new(big.Int).SetBytes(reversed(b))
	if len(b) != 32 || x.Cmp(order) >= 0 {
		return nil, fail("a scalar is not canonical")
	}
	return x, nil
}

func encodeScalar(x *big.Int) []byte { return reversed(x.FillBytes(make([]byte, 32))) }

func reversed(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[len(b)-1-i] = b[i]
	}
	return out
}

// point is a share: the value of the polynomial at the holder's index.
type point struct {
	holder int // roster index; the polynomial's argument is one more
	value  []byte
}

// interpolate returns the value at argument at of the polynomial through the
// points (§6).
func interpolate(points []point, at int) ([]byte, error) {
	sum := new(big.Int)
	for i, p := range points {
		term, err := decodeScalar(p.value)
		if err != nil {
			return nil, err
		}
		for j, q := range points {
			if i == j {
				continue
			}
			term.Mul(term, big.NewInt(int64(at-q.holder-1)))
			inverse := new(big.Int).ModInverse(big.NewInt(int64(p.holder-q.holder)), order)
			term.Mod(term.Mul(term, inverse), order)
		}
		sum.Add(sum, term)
	}
	return encodeScalar(sum.Mod(sum, order)), nil
}

// combine rebuilds a secret from threshold points and checks that the others
// are on the same polynomial.
func combine(points []point, threshold int) ([]byte, error) {
	if len(points) < threshold {
		return nil, fail("%d shares, the threshold is %d", len(points), threshold)
	}
	for _, p := range points[threshold:] {
		value, err := interpolate(points[:threshold], p.holder+1)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(value, p.value) {
			return nil, fail("the share of party %d is not on the polynomial", p.holder)
		}
	}
	return interpolate(points[:threshold], 0)
}
