package keyexchange

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Project Wycheproof's vectors, read from its public module at test time and pinned by
// version; the checksum database of Go modules vouches for the bytes. They are run
// through this package's own parsers, which refuse more than the primitives do.
const wycheproof = "github.com/c2sp/wycheproof@v0.0.0-20260625212325-ee7b4f7e6119"

type vectorGroup[T any] struct {
	PublicKey struct {
		Pk hexString `json:"pk"`
	} `json:"publicKey"`
	NonceBits int `json:"ivSize"`
	Tests     []T `json:"tests"`
}

type hexString []byte

func (h *hexString) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// vectors reads the groups of one file. Without the module and a network the test
// skips, unless HUSHSUM_REQUIRE_VECTORS=1.
func vectors[T any](t *testing.T, file string, least int) []vectorGroup[T] {
	t.Helper()
	var out, problem bytes.Buffer
	command := exec.Command("go", "mod", "download", "-json", wycheproof)
	command.Dir = t.TempDir() // outside of any module and workspace
	command.Env = append(os.Environ(), "GOWORK=off")
	command.Stdout, command.Stderr = &out, &problem
	var module struct{ Dir, Error string }
	err := command.Run()
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &module)
	}
	if err != nil || module.Dir == "" {
		if os.Getenv("HUSHSUM_REQUIRE_VECTORS") == "1" {
			t.Fatalf("%s: %v %s %s", wycheproof, err, module.Error, &problem)
		}
		t.Skipf("%s is not to be had: %v %s", wycheproof, err, module.Error)
	}
	b, err := os.ReadFile(filepath.Join(module.Dir, "testvectors_v1", file))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		TestGroups []vectorGroup[T] `json:"testGroups"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, g := range f.TestGroups {
		count += len(g.Tests)
	}
	if count < least {
		t.Fatalf("%s has %d tests, want at least %d", file, count, least)
	}
	return f.TestGroups
}

// A public key is refused if the vectors flag it as not canonical or of low order, and
// only then; else the secret is theirs.
func TestWycheproofX25519(t *testing.T) {
	type vector struct {
		ID      int       `json:"tcId"`
		Flags   []string  `json:"flags"`
		Public  hexString `json:"public"`
		Private hexString `json:"private"`
		Shared  hexString `json:"shared"`
	}
	refused := 0
	for _, g := range vectors[vector](t, "x25519_test.json", 500) {
		for _, v := range g.Tests {
			bad := slices.ContainsFunc(v.Flags, func(f string) bool {
				return f == "NonCanonicalPublic" || f == "LowOrderPublic" || f == "ZeroSharedSecret"
			})
			public, err := ParsePublicKey(v.Public)
			if bad != (err != nil) {
				t.Errorf("%d %v: %v", v.ID, v.Flags, err)
			}
			if bad {
				refused++
				continue
			}
			private, err := ParseKey(v.Private)
			if err != nil {
				t.Fatal(err)
			}
			agreed, err := private.Agree(public)
			if err != nil || !bytes.Equal(agreed.x25519[:], v.Shared) {
				t.Errorf("%d %v: another secret, %v", v.ID, v.Flags, err)
			}
		}
	}
	if refused < 20 {
		t.Errorf("only %d keys are refused", refused)
	}
}

// Signatures verify where the vectors say so, under keys that a roster takes.
func TestWycheproofEd25519(t *testing.T) {
	type vector struct {
		ID      int       `json:"tcId"`
		Comment string    `json:"comment"`
		Message hexString `json:"msg"`
		Sig     hexString `json:"sig"`
		Result  string    `json:"result"`
	}
	valid := 0
	for _, g := range vectors[vector](t, "ed25519_test.json", 100) {
		key := ed25519.PublicKey(g.PublicKey.Pk)
		if err := checkIdentityKey(key); err != nil {
			t.Errorf("key %x: %v", key, err)
			continue
		}
		for _, v := range g.Tests {
			// Verify is this under a label, whose bytes would be others.
			if got := ed25519.Verify(key, v.Message, v.Sig); got != (v.Result == "valid") {
				t.Errorf("%d %s: verifies %v, want %s", v.ID, v.Comment, got, v.Result)
			}
			if v.Result == "valid" {
				valid++
			}
		}
	}
	if valid < 50 {
		t.Errorf("only %d signatures verify", valid)
	}
}

// Boxes open where the vectors say so, and are sealed to the same bytes.
func TestWycheproofXChaCha20Poly1305(t *testing.T) {
	type vector struct {
		ID     int       `json:"tcId"`
		Key    hexString `json:"key"`
		IV     hexString `json:"iv"`
		AAD    hexString `json:"aad"`
		Msg    hexString `json:"msg"`
		CT     hexString `json:"ct"`
		Tag    hexString `json:"tag"`
		Result string    `json:"result"`
	}
	valid := 0
	for _, g := range vectors[vector](t, "xchacha20_poly1305_test.json", 200) {
		for _, v := range g.Tests {
			sealed := slices.Concat(v.IV, v.CT, v.Tag)
			if len(v.IV) != len(Nonce{}) {
				continue // a box has no place for other nonces
			}
			key := SealKey(v.Key)
			plain, err := Open(&key, sealed, v.AAD)
			if want := v.Result == "valid"; (err == nil) != want {
				t.Errorf("%d: %v, want %s", v.ID, err, v.Result)
				continue
			} else if !want {
				continue
			}
			valid++
			nonce := Nonce(v.IV)
			again, err := Seal(&nonce, &key, v.Msg, v.AAD)
			if err != nil || !bytes.Equal(plain, v.Msg) || !bytes.Equal(again, sealed) {
				t.Errorf("%d: opens or seals to something else, %v", v.ID, err)
			}
		}
	}
	if valid < 100 {
		t.Errorf("only %d boxes open", valid)
	}
}

// Keys from seeds, encapsulation keys that are refused (coefficients that are not
// reduced, wrong lengths), and secrets of right and of wrong ciphertexts.
func TestWycheproofMLKEM(t *testing.T) {
	type vector struct {
		ID         int       `json:"tcId"`
		Flags      []string  `json:"flags"`
		Seed       hexString `json:"seed"`
		Key        hexString `json:"ek"`
		Ciphertext hexString `json:"c"`
		Secret     hexString `json:"K"`
		Result     string    `json:"result"`
	}
	offered, valid := 0, 0
	for _, file := range []string{"mlkem_768_test.json", "mlkem_768_encaps_test.json"} {
		for _, g := range vectors[vector](t, file, 10) {
			for _, v := range g.Tests {
				if len(v.Seed) == 0 { // encapsulation to a key that may be bad
					if _, err := ParseEncapsulationKey(v.Key); (err == nil) != (v.Result != "invalid") {
						t.Errorf("%s %d %v: %v", file, v.ID, v.Flags, err)
					}
					offered++
					continue
				}
				key, err := ParseDecapsulationKey(v.Seed)
				if err != nil {
					if v.Result != "invalid" {
						t.Errorf("%s %d %v: %v", file, v.ID, v.Flags, err)
					}
					continue
				}
				public, err := key.Public()
				if err != nil || len(v.Key) != 0 && !bytes.Equal(public, v.Key) {
					t.Errorf("%s %d: another key, %v", file, v.ID, err)
				}
				var agreed Agreement
				err = agreed.Decapsulate(key, v.Ciphertext)
				if err == nil && bytes.Equal(agreed.kem[:], v.Secret) != (v.Result == "valid") ||
					err != nil && v.Result == "valid" {
					t.Errorf("%s %d %v: %v", file, v.ID, v.Flags, err)
				}
				valid++
			}
		}
	}
	if offered < 10 || valid < 50 {
		t.Errorf("only %d keys and %d ciphertexts", offered, valid)
	}
}
