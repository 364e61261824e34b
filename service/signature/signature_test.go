package signature_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/signature"
)

var (
	identity = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	now      = time.Unix(1_800_000_000, 0)
)

func request(t testing.TB, method, target string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, "http://server"+target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == nil {
		r.ContentLength = 0
	}
	if err := signature.Sign(r, body, identity, now); err != nil {
		t.Fatal(err)
	}
	return r
}

// The signature base is that of RFC 9421 §2.5, byte by byte.
func TestBase(t *testing.T) {
	r := request(t, http.MethodPost, "/v1/a%20b?x=1&y=2", []byte("hello"))
	const digest = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:"
	if got := r.Header.Get("Content-Digest"); got != digest {
		t.Errorf("digest %s", got)
	}
	parameters := strings.TrimPrefix(r.Header.Get("Signature-Input"), "sig1=")
	base := "\"@method\": POST\n\"@path\": /v1/a%20b\n\"@query\": ?x=1&y=2\n\"content-digest\": " +
		digest + "\n\"@signature-params\": " + parameters
	want := `("@method" "@path" "@query" "content-digest");created=1800000000;keyid="` +
		"ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c" + `";alg="ed25519"`
	if parameters != want {
		t.Errorf("parameters %s, want %s", parameters, want)
	}
	made := ed25519.Sign(identity, []byte(base))
	r.Header.Set("Signature", "sig1=:"+base64Of(made)+":")
	if _, err := signature.Verify(r, now); err != nil {
		t.Errorf("one that was made by hand: %v", err)
	}
}

// What is signed verifies within the window, and the key and digest come out.
func TestRoundTrip(t *testing.T) {
	r := request(t, http.MethodPost, "/p", []byte("body"))
	for _, at := range []time.Duration{0, 300 * time.Second, -300 * time.Second} {
		s, err := signature.Verify(r, now.Add(at))
		if err != nil || !bytes.Equal(s.Key, identity.Public().(ed25519.PublicKey)) {
			t.Errorf("after %v: %v", at, err)
		}
	}
	for _, at := range []time.Duration{301 * time.Second, -301 * time.Second, time.Hour} {
		_, err := signature.Verify(r, now.Add(at))
		if !errors.Is(err, signature.ErrClock) || strings.Count(err.Error(), "2027-01-15T") != 2 {
			t.Errorf("after %v: %v", at, err)
		}
	}
}

// No changed byte of a signed request verifies.
func TestChanges(t *testing.T) {
	for name, change := range map[string]func(r *http.Request){
		"method": func(r *http.Request) { r.Method = http.MethodPut },
		"path":   func(r *http.Request) { r.URL.Path = "/q" },
		"query":  func(r *http.Request) { r.URL.RawQuery = "a" },
		"digest": func(r *http.Request) {
			r.Header.Set("Content-Digest", signature.Digest([]byte("x")))
		},
		"no digest":  func(r *http.Request) { r.Header.Del("Content-Digest") },
		"no input":   func(r *http.Request) { r.Header.Del("Signature-Input") },
		"no made":    func(r *http.Request) { r.Header.Del("Signature") },
		"two inputs": func(r *http.Request) { r.Header.Add("Signature-Input", "sig2=()") },
		"created": func(r *http.Request) {
			r.Header.Set("Signature-Input",
				strings.Replace(r.Header.Get("Signature-Input"), "1800000000", "1800000001", 1))
		},
		"upper case key": func(r *http.Request) {
			r.Header.Set("Signature-Input",
				strings.Replace(r.Header.Get("Signature-Input"), "ea4a", "EA4A", 1))
		},
		"a component less": func(r *http.Request) {
			r.Header.Set("Signature-Input",
				strings.Replace(r.Header.Get("Signature-Input"), ` "@query"`, "", 1))
		},
		"a parameter more": func(r *http.Request) {
			r.Header.Set("Signature-Input", r.Header.Get("Signature-Input")+`;tag="x"`)
		},
	} {
		r := request(t, http.MethodPost, "/p?q", []byte("body"))
		change(r)
		_, err := signature.Verify(r, now)
		if !errors.Is(err, signature.ErrSignature) && !errors.Is(err, signature.ErrUnsigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// byHand has a request signed with parameters and lines of the base as they are given.
func byHand(r *http.Request, lines, parameters string) {
	r.Header.Set("Signature-Input", "sig1="+parameters)
	made := ed25519.Sign(identity, []byte(lines+"\"@signature-params\": "+parameters))
	r.Header.Set("Signature", "sig1=:"+base64Of(made)+":")
}

const (
	keyid = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
	plain = "\"@method\": GET\n\"@path\": /p\n\"@query\": ?\n"
)

// What is signed in another profile is refused as such, though its signature is good.
func TestProfile(t *testing.T) {
	const three = `("@method" "@path" "@query")`
	const good = `;created=1800000000;keyid="` + keyid + `";alg="ed25519"`
	for _, c := range []struct {
		parameters string
		want       error
	}{
		{three + good, nil},
		{three + strings.Replace(good, `alg="ed25519"`, `alg="ed25519ph"`, 1), signature.ErrUnsigned},
		{three + strings.Replace(good, `;alg="ed25519"`, "", 1), signature.ErrUnsigned},
		{three + strings.Replace(good, `;keyid="`+keyid+`"`, "", 1), signature.ErrUnsigned},
		{three + strings.Replace(good, ";created=1800000000", "", 1), signature.ErrUnsigned},
		{three + strings.Replace(good, "1800000000", `"1800000000"`, 1), signature.ErrUnsigned},
		{three + strings.Replace(good, "ea4a", "EA4A", 1), signature.ErrUnsigned},
		{three + strings.Replace(good, "ea4a", "", 1), signature.ErrUnsigned},
		{three + good + `;nonce="1"`, signature.ErrUnsigned},
		{`("@path" "@method" "@query")` + good, signature.ErrUnsigned},
		{`("@method" "@path")` + good, signature.ErrUnsigned},
		{`("@method" "@path" "@query" "if-match")` + good, signature.ErrUnsigned},
		{`("@method";req "@path" "@query")` + good, signature.ErrUnsigned},
		{`"@method"` + good, signature.ErrUnsigned},
	} {
		r := request(t, http.MethodGet, "/p", nil)
		byHand(r, plain, c.parameters)
		if _, err := signature.Verify(r, now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.parameters, err)
		}
	}
	for name, change := range map[string]func(h http.Header){
		"two signatures": func(h http.Header) {
			h.Set("Signature", h.Get("Signature")+", sig2=:AAAA:")
		},
		"two inputs": func(h http.Header) {
			h.Set("Signature-Input", h.Get("Signature-Input")+", sig2=()")
		},
		"another name": func(h http.Header) {
			h.Set("Signature", strings.Replace(h.Get("Signature"), "sig1", "sig2", 1))
		},
		"two headers": func(h http.Header) { h.Add("Signature", h.Get("Signature")) },
		"a text":      func(h http.Header) { h.Set("Signature", `sig1="x"`) },
		"a list":      func(h http.Header) { h.Set("Signature", "sig1=()") },
	} {
		r := request(t, http.MethodGet, "/p", nil)
		byHand(r, plain, three+good)
		change(r.Header)
		if _, err := signature.Verify(r, now); !errors.Is(err, signature.ErrUnsigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A condition is signed where there is one, in its own line of the base.
func TestIfMatch(t *testing.T) {
	r := request(t, http.MethodGet, "/p", nil)
	r.Header.Set("If-Match", `"41"`)
	byHand(r, plain+"\"if-match\": \"41\"\n", `("@method" "@path" "@query" "if-match")`+
		`;created=1800000000;keyid="`+keyid+`";alg="ed25519"`)
	if _, err := signature.Verify(r, now); err != nil {
		t.Error(err)
	}
	r.Header.Set("If-Match", `"42"`)
	if _, err := signature.Verify(r, now); !errors.Is(err, signature.ErrSignature) {
		t.Errorf("another: %v", err)
	}
	r.Header.Add("If-Match", `"41"`)
	if _, err := signature.Verify(r, now); !errors.Is(err, signature.ErrUnsigned) {
		t.Errorf("two: %v", err)
	}
}

// The digest of a body is one sha-256, which is signed.
func TestDigests(t *testing.T) {
	good := signature.Digest([]byte("body"))
	for digest, want := range map[string]error{
		good:                                 nil,
		good + ", sha-512=:AAAA:":            signature.ErrUnsigned,
		strings.Replace(good, "256", "3", 1): signature.ErrUnsigned,
		"sha-256=:" + base64Of(make([]byte, 33)) + ":": signature.ErrUnsigned,
		"sha-256=:AAAA:": signature.ErrUnsigned,
		"sha-256=1":      signature.ErrUnsigned,
		"sha-256=()":     signature.ErrUnsigned,
		"=":              signature.ErrUnsigned,
	} {
		r := request(t, http.MethodPost, "/p", []byte("body"))
		r.Header.Set("Content-Digest", digest)
		byHand(r, strings.Replace(plain, "GET", "POST", 1)+"\"content-digest\": "+digest+"\n",
			`("@method" "@path" "@query" "content-digest")`+
				`;created=1800000000;keyid="`+keyid+`";alg="ed25519"`)
		if _, err := signature.Verify(r, now); !errors.Is(err, want) {
			t.Errorf("%s: %v", digest, err)
		}
	}
	r := request(t, http.MethodPost, "/p", []byte("body"))
	r.Header.Add("Content-Digest", good)
	if _, err := signature.Verify(r, now); !errors.Is(err, signature.ErrUnsigned) {
		t.Errorf("two headers: %v", err)
	}
	r = request(t, http.MethodPost, "/p", nil)
	r.ContentLength = -1 // a body in chunks
	if _, err := signature.Verify(r, now); !errors.Is(err, signature.ErrUnsigned) {
		t.Errorf("a body of unknown length without a digest: %v", err)
	}
}
