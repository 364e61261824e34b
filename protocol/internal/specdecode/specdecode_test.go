package specdecode

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const vectors = "../../testdata"

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(vectors, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The committed vectors follow SPEC.md as this package reads it.
func TestVerify(t *testing.T) {
	for _, name := range []string{"plain.json", "recovery.json", "sparse.json", "odd.json",
		"missing.json", "some.json", "classical.json", "scheduled.json", "whole.json",
		"colluders.json"} {
		if err := Verify(read(t, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A vector with one bit of one message changed is refused, whichever message and
// wherever the bit; so is one with a message of another length.
func TestChangedMessages(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for _, name := range []string{"plain.json", "recovery.json"} {
		data := read(t, name)
		var v struct {
			Messages []struct{ Message, Type string }
		}
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		lengths := map[string]bool{} // types whose length was changed
		for i, m := range v.Messages {
			message, err := hex.DecodeString(m.Message)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []int{rng.IntN(46), 46 + rng.IntN(max(len(message)-46, 1))}[i%2:] {
				if at >= len(message) {
					continue // an Invite has no body
				}
				changed := bytes.Clone(message)
				changed[at] ^= 1 << rng.IntN(8)
				// The other copies of a message that goes to several parties stay.
				if err := Verify(bytes.Replace(data, []byte(m.Message), []byte(hex.EncodeToString(changed)),
					1)); !errors.Is(err, ErrVector) {
					t.Errorf("%s: message %d (%s) changed in byte %d: %v", name, i, m.Type, at, err)
				}
			}
			if lengths[m.Type] {
				continue
			}
			lengths[m.Type] = true
			for _, other := range []string{m.Message[:len(m.Message)-2], m.Message + "00"} {
				if err := Verify(bytes.Replace(data, []byte(`"`+m.Message+`"`), []byte(`"`+other+`"`),
					1)); !errors.Is(err, ErrVector) {
					t.Errorf("%s: message %d (%s) of another length: %v", name, i, m.Type, err)
				}
			}
		}
	}
}

// A vector with one changed value outside of the messages is refused.
func TestChangedValues(t *testing.T) {
	data := string(read(t, "recovery.json"))
	for _, field := range []string{"roster_digest", "config_digest", "session_id", "context",
		"chain_key", "pair_secret", "mask_seed", "b", "k", "identity_seed", "key", "x25519_private",
		"mlkem_seed", "random_seed", "broadcast", "keys_digest"} {
		start := strings.Index(data, `"`+field+`": "`)
		if start < 0 {
			t.Fatalf("the vector has no %s", field)
		}
		at := start + len(field) + 8 // a digit of the value
		digit := "0"
		if data[at] == '0' {
			digit = "1"
		}
		if err := Verify([]byte(data[:at] + digit + data[at+1:])); !errors.Is(err, ErrVector) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, change := range [][2]string{
		{`"threshold": 2`, `"threshold": 3`},
		{`"adversary": 0`, `"adversary": 1`},
		{`"bits": 20`, `"bits": 21`},
		{`"max_skip": 16`, `"max_skip": 0`},
		{`"lost": true`, `"lost": false`},
		{`"label": "vectors/recovery"`, `"label": "vectors/other"`},
	} {
		changed := strings.ReplaceAll(data, change[0], change[1])
		if changed == data {
			t.Fatalf("the vector has no %s", change[0])
		}
		if err := Verify([]byte(changed)); !errors.Is(err, ErrVector) {
			t.Errorf("%s: %v", change[1], err)
		}
	}
}

// Bad input is an error and not a panic.
func TestNotAVector(t *testing.T) {
	for _, data := range []string{"", "{}", "[]", `{"messages":[{"message":"zz"}]}`,
		`{"messages":[{"message":"00"}]}`} {
		if Verify([]byte(data)) == nil {
			t.Errorf("%q was accepted", data)
		}
	}
}

// The vectors of single steps follow SPEC.md, and changed ones do not.
func TestVerifyParts(t *testing.T) {
	data := read(t, "parts.json")
	if err := VerifyParts(data); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"packed", "sealed", "root", "binding", "channel_key"} {
		at := bytes.Index(data, []byte(`"`+field+`": "`)) + len(field) + 5
		changed := bytes.Clone(data)
		changed[at] = "01"[changed[at]&1^1]
		if err := VerifyParts(changed); err == nil {
			t.Errorf("a changed %s was accepted", field)
		}
	}
}

// The vectors of configurations follow SPEC.md, and changed ones do not.
func TestVerifyConfigurations(t *testing.T) {
	data := read(t, "configurations.json")
	if err := VerifyConfigurations(data); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"accepted": true`, `"accepted": false`},
		{`"accepted": false`, `"accepted": true`},
		{`"q": 5`, `"q": 6`},
		{`"m": 7`, `"m": 8`},
		{`"h": 4`, `"h": 5`},
		{`"max_skip": 1000,`, `"max_skip": 999,`},
		{`"colluders": 2`, `"colluders": 1`},
	} {
		changed := bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, data) {
			t.Fatalf("the vectors have no %s", change[0])
		}
		if VerifyConfigurations(changed) == nil {
			t.Errorf("%s was accepted", change[1])
		}
	}
}

// The vectors of edges follow SPEC.md, and changed ones do not.
func TestVerifyEdges(t *testing.T) {
	data := read(t, "edges.json")
	if err := VerifyEdges(data); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"accepted": "no"`, `"accepted": "yes"`},
		{`"accepted": "yes"`, `"accepted": "no"`},
		{`"accepted": "either"`, `"accepted": ""`},
		{`"mlkem_seed": "`, `"mlkem_seed": "0`},
		{`"secret": "`, `"secret": "00`},
	} {
		if VerifyEdges(bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)) == nil {
			t.Errorf("%s was accepted", change[1])
		}
	}
}

// The vectors of calls follow SPEC.md, and changed ones do not.
func TestVerifyCalls(t *testing.T) {
	data := read(t, "calls.json")
	if err := VerifyCalls(data); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"error": "ErrNumber"`, `"error": ""`},
		{`"error": "ErrConfig",
				"least"`, `"error": "ErrNumber",
				"least"`},
		{`"least": 1099511627781`, `"least": 1099511627780`},
		{`"number": 3`, `"number": 4`},
		{`"answer": "01`, `"answer": "03`},
		{`"from": 0,
				"message": "0101`, `"from": 0,
				"message": "0102`},
		{`"12",
						"6"`, `"12",
						"7"`},
	} {
		changed := bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, data) {
			t.Fatalf("the vectors have no %s", change[0])
		}
		if VerifyCalls(changed) == nil {
			t.Errorf("%s was accepted", change[1])
		}
	}
}
