package keyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is written is read again; anything else is refused, without a word of what it holds.
func TestIdentity(t *testing.T) {
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	file := at("north.pem")
	public, err := NewIdentity(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewIdentity(file, nil); !errors.Is(err, ErrExists) {
		t.Errorf("written over: %v", err)
	}
	key, err := ReadIdentity(file)
	if err != nil || !public.Equal(key.Public()) {
		t.Fatalf("%x, %v", public, err)
	}
	if err := Private(file); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const rsa = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"
	for name, wrong := range map[string]string{
		"empty": "", "cut": string(text[:40]), "twice": string(text) + string(text), "other": rsa,
		"words": "secret words", "long": string(text) + strings.Repeat("\n", mostPEM),
		"public": strings.ReplaceAll(string(text), "PRIVATE", "PUBLIC"),
	} {
		file := at(name)
		if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadIdentity(file); !errors.Is(err, ErrIdentity) ||
			strings.Contains(err.Error(), "secret words") {
			t.Errorf("%s: %v", name, err)
		}
	}
	marked, wide := at("marked"), at("wide")
	utf16 := []byte("\xff\xfe")
	for _, b := range text {
		utf16 = append(utf16, b, 0)
	}
	for name, text := range map[string][]byte{marked: append([]byte("\ufeff"), text...), wide: utf16} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if same, err := ReadIdentity(marked); err != nil || !same.Equal(key) {
		t.Errorf("with a byte-order mark: %v", err)
	}
	if _, err := ReadIdentity(wide); !errors.Is(err, ErrIdentity) ||
		!strings.Contains(err.Error(), "it is UTF-16, and not UTF-8; convert it: iconv") {
		t.Errorf("UTF-16: %v", err)
	}
	if _, err := ReadIdentity(at("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A key that seals is made once, and read from a file that nobody else may read.
func TestSealKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seal.key")
	if _, err := SealKey(file, false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made: %v", err)
	}
	first, err := SealKey(file, true)
	if err != nil {
		t.Fatal(err)
	}
	again, err := SealKey(file, true)
	if err != nil || *again != *first {
		t.Errorf("another key, %v", err)
	}
	for _, wrong := range []string{"", "00\n", strings.Repeat("g", 64)} {
		if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := SealKey(file, true); !errors.Is(err, ErrKeys) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
