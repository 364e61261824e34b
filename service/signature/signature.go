// Package signature signs and verifies HTTP requests with the Ed25519 identities of parties and
// operators, in one profile of HTTP Message Signatures (RFC 9421): the components are @method,
// @path, @query, with a body content-digest (RFC 9530, sha-256), and, if the request has that
// header, if-match; the parameters are created, keyid (the public key in hexadecimal digits) and
// alg.
//
// The authority is left out, since proxies that end TLS change it; the path has the federation's
// digest. There is no nonce: a request is valid for five minutes, and sending it twice has the
// effect of sending it once.
package signature

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// Errors of Verify.
var (
	// ErrUnsigned: there is no signature, or none of this profile.
	ErrUnsigned = errors.New("signature: the request is not signed as required")
	// ErrSignature: the signature was not made by the key that it names, or was made for another
	// request.
	ErrSignature = errors.New("signature: the signature does not verify")
	// ErrClock: the signature was made at another time.
	ErrClock = errors.New("signature: the request was signed at another time")
)

// window is by how much the time of a signature may differ from the verifier's.
const window = 5 * time.Minute

const (
	label     = "sig1"
	algorithm = "ed25519"
)

// components lists the signed components, in this order.
func components(r *http.Request, body bool) []string {
	list := []string{"@method", "@path", "@query"}
	if body {
		list = append(list, "content-digest")
	}
	if r.Header.Get("If-Match") != "" {
		list = append(list, "if-match")
	}
	return list
}

// parameters returns the signature's parameters as they appear in both header and base.
func parameters(r *http.Request, body bool, created int64, key ed25519.PublicKey) string {
	quoted := components(r, body)
	for i, c := range quoted {
		quoted[i] = `"` + c + `"`
	}
	return fmt.Sprintf(`(%s);created=%d;keyid="%x";alg="%s"`, strings.Join(quoted, " "), created,
		[]byte(key), algorithm)
}

// base returns the signature base (RFC 9421 §2.5).
func base(r *http.Request, body bool, parameters string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "\"@method\": %s\n", r.Method)
	fmt.Fprintf(&b, "\"@path\": %s\n", r.URL.EscapedPath())
	fmt.Fprintf(&b, "\"@query\": ?%s\n", r.URL.RawQuery)
	if body {
		fmt.Fprintf(&b, "\"content-digest\": %s\n", r.Header.Get("Content-Digest"))
	}
	if match := r.Header.Get("If-Match"); match != "" {
		fmt.Fprintf(&b, "\"if-match\": %s\n", match)
	}
	fmt.Fprintf(&b, "\"@signature-params\": %s", parameters)
	return []byte(b.String())
}

// Digest returns the value of Content-Digest for a body.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// Sign signs a request; body holds the bytes that it will carry, nil for none.
func Sign(r *http.Request, body []byte, identity crypto.Signer, now time.Time) error {
	public, ok := identity.Public().(ed25519.PublicKey)
	if !ok {
		return fmt.Errorf("%w: the identity is not an Ed25519 key", ErrUnsigned)
	}
	if body != nil {
		r.Header.Set("Content-Digest", Digest(body))
	}
	p := parameters(r, body != nil, now.Unix(), public)
	made, err := identity.Sign(nil, base(r, body != nil, p), crypto.Hash(0))
	if err != nil {
		return err
	}
	r.Header.Set("Signature-Input", label+"="+p)
	r.Header.Set("Signature", label+"=:"+base64.StdEncoding.EncodeToString(made)+":")
	return nil
}

// Signed is the result of Verify.
type Signed struct {
	Key    ed25519.PublicKey
	Digest [32]byte // of the body, zero for none; the body must still be compared with it
}

// Verify verifies a request's signature without reading its body. If a request has a body its
// digest must be signed. Verify fails with [ErrUnsigned], [ErrSignature] or [ErrClock], and changes
// nothing.
func Verify(r *http.Request, now time.Time) (*Signed, error) {
	unsigned := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrUnsigned, fmt.Sprintf(format, a...))
	}
	input, err := one(r.Header, "Signature-Input")
	if err != nil {
		return nil, err
	}
	list, ok := input.(httpsfv.InnerList)
	if !ok {
		return nil, unsigned("Signature-Input is not a list")
	}
	body := r.ContentLength != 0
	var names []string
	for _, item := range list.Items {
		name, ok := item.Value.(string)
		if !ok || item.Params != nil && len(item.Params.Names()) > 0 {
			return nil, unsigned("a component has parameters")
		}
		names = append(names, name)
	}
	if len(r.Header.Values("If-Match")) > 1 {
		return nil, unsigned("more than one If-Match")
	}
	if want := components(r, body); !slices.Equal(names, want) {
		return nil, unsigned("the components must be %s", strings.Join(want, " "))
	}
	created, ok1 := parameter[int64](list.Params, "created")
	keyid, ok2 := parameter[string](list.Params, "keyid")
	alg, ok3 := parameter[string](list.Params, "alg")
	if !ok1 || !ok2 || !ok3 || alg != algorithm || len(list.Params.Names()) != 3 {
		return nil, unsigned("the parameters must be created, keyid and alg=%q", algorithm)
	}
	key := keyOf(keyid)
	if key == nil {
		return nil, unsigned("keyid must be an Ed25519 key in 64 lower-case hexadecimal digits")
	}
	out := &Signed{Key: key}
	if body {
		if out.Digest, err = contentDigest(r.Header); err != nil {
			return nil, err
		}
	}
	value, err := one(r.Header, "Signature")
	if err != nil {
		return nil, err
	}
	item, ok := value.(httpsfv.Item)
	if !ok {
		return nil, unsigned("Signature is not a byte sequence")
	}
	made, ok := item.Value.([]byte)
	if !ok {
		return nil, unsigned("Signature is not a byte sequence")
	}
	p, err := marshal(list)
	if err != nil {
		return nil, unsigned("Signature-Input")
	}
	if !ed25519.Verify(key, base(r, body, p), made) {
		return nil, ErrSignature
	}
	if at := time.Unix(created, 0); now.Sub(at).Abs() > window {
		return nil, fmt.Errorf("%w: at %s, and it is %s here; the difference may be at most %v", ErrClock,
			at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), window)
	}
	return out, nil
}

// Claimed returns the key that a request claims to be signed with, nil if it names none. Nothing is
// verified.
func Claimed(r *http.Request) ed25519.PublicKey {
	input, err := one(r.Header, "Signature-Input")
	if err != nil {
		return nil
	}
	list, ok := input.(httpsfv.InnerList)
	if !ok {
		return nil
	}
	keyid, _ := parameter[string](list.Params, "keyid")
	return keyOf(keyid)
}

// keyOf reads a key in the form of keyid, nil if it is invalid.
func keyOf(keyid string) ed25519.PublicKey {
	key, err := hex.DecodeString(keyid)
	if err != nil || len(key) != ed25519.PublicKeySize || hex.EncodeToString(key) != keyid {
		return nil
	}
	return key
}

// marshal writes the parameters in the form in which they are signed.
func marshal(list httpsfv.InnerList) (string, error) { return httpsfv.Marshal(httpsfv.List{list}) }

// one returns the only member of a header that is a dictionary.
func one(h http.Header, name string) (httpsfv.Member, error) {
	lines := h.Values(name)
	if len(lines) != 1 {
		return nil, fmt.Errorf("%w: %d headers %s, want 1", ErrUnsigned, len(lines), name)
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil || len(d.Names()) != 1 {
		return nil, fmt.Errorf("%w: %s must have one signature", ErrUnsigned, name)
	}
	if d.Names()[0] != label {
		return nil, fmt.Errorf("%w: the signature must be called %s", ErrUnsigned, label)
	}
	member, _ := d.Get(label)
	return member, nil
}

func parameter[T any](p *httpsfv.Params, name string) (value T, ok bool) {
	if p == nil {
		return value, false
	}
	found, there := p.Get(name)
	if !there {
		return value, false
	}
	value, ok = found.(T)
	return value, ok
}

func contentDigest(h http.Header) (digest [32]byte, err error) {
	lines := h.Values("Content-Digest")
	wrong := fmt.Errorf("%w: Content-Digest must be one sha-256 of the body", ErrUnsigned)
	if len(lines) != 1 {
		return digest, wrong
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil || len(d.Names()) != 1 {
		return digest, wrong
	}
	member, found := d.Get("sha-256")
	item, ok := member.(httpsfv.Item)
	if !found || !ok {
		return digest, wrong
	}
	value, ok := item.Value.([]byte)
	if !ok || len(value) != len(digest) {
		return digest, wrong
	}
	return [32]byte(value), nil
}
