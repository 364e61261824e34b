package keyfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/keyexchange"
)

// ErrKeys: the file of the keys that seal cannot be used.
var ErrKeys = errors.New("keyfile: unusable file of the keys that seal")

// mostKeys bounds what is tried to open something.
const mostKeys = 8

// SealKey reads a key from a file of 64 hexadecimal digits, which none but its owner may read;
// where there is none it makes one, if it may.
func SealKey(name string, create bool) (*keyexchange.SealKey, error) {
	keys, err := SealKeys(name, create)
	if err != nil {
		return nil, err
	}
	if len(keys) > 1 {
		return nil, fmt.Errorf("%w: %s has more than one", ErrKeys, name)
	}
	return &keys[0], nil
}

// SealKeys reads a file of one key a line, which only its owner may read: the first key seals, all
// keys open. If there is no file SealKeys makes one with a new key, if it may.
func SealKeys(name string, create bool) ([]keyexchange.SealKey, error) {
	var text []byte
	var err error
	if create {
		text, err = Keep(name, func() ([]byte, error) {
			key, err := keyexchange.GenerateSealKey(nil)
			if err != nil {
				return nil, err
			}
			return fmt.Appendf(nil, "%x\n", key[:]), nil
		})
	} else {
		text, err = short(name)
	}
	if err == nil {
		err = Private(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the key that seals: %w; make one with: "+
			"(umask 077; openssl rand -hex 32 > %s)", err, name)
	}
	if err != nil {
		return nil, fmt.Errorf("the key that seals: %w", err)
	}
	return parseKeys(name, text)
}

func parseKeys(name string, text []byte) (keys []keyexchange.SealKey, err error) {
	for line := range strings.Lines(string(text)) {
		b, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil || len(b) != len(keyexchange.SealKey{}) {
			return nil, fmt.Errorf("%w: %s has a line that is not a key of 64 hexadecimal digits", ErrKeys,
				name)
		}
		if key := keyexchange.SealKey(b); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 || len(keys) > mostKeys {
		return nil, fmt.Errorf("%w: %s has %d keys; it may have 1 to "+
			"%d", ErrKeys, name, len(keys), mostKeys)
	}
	return keys, nil
}

// short reads a file that is never long: of a key, of a few, or of a certificate.
func short(name string) ([]byte, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, mostPEM+1))
	if err == nil && len(text) > mostPEM {
		err = fmt.Errorf("%w: %s has more than %d bytes; name the file of a key", ErrKeys, name, mostPEM)
	}
	return text, err
}

// Keep returns the content of a file, which is made fresh where there is none.
func Keep(name string, fresh func() ([]byte, error)) ([]byte, error) {
	b, err := short(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	if b, err = fresh(); err != nil {
		return nil, err
	}
	return b, durable.Write(name, strings.NewReader(string(b))) // mode 0600
}
