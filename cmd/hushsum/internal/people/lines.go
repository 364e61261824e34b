package people

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
)

// KeyOf returns the public key that a text contains, or the one of the identity in a file with that
// name.
func KeyOf(text string) (ed25519.PublicKey, error) {
	if len(text) == 2*ed25519.PublicKeySize {
		if key, err := hex.DecodeString(text); err == nil {
			return key, nil
		}
	}
	key, err := keyfile.ReadIdentity(text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &cli.Problem{
			Cause:  fmt.Sprintf("%.80q is neither a public key nor a file", text),
			Advice: "Write 64 hexadecimal digits, or name the file of an identity.", Err: err}
	}
	if err != nil {
		return nil, err
	}
	return key.Public().(ed25519.PublicKey), nil
}

// linesOf returns the lines of a roster of parties that are given as NAME=KEY.
func linesOf(args []string) (lines string, err error) {
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok {
			return "", &cli.Problem{Cause: fmt.Sprintf("%.80q has no key", arg),
				Advice: "Write NAME=KEY, as in north=north.pem."}
		}
		key, err := KeyOf(text)
		if err != nil {
			return "", err
		}
		if strings.ContainsAny(name, " \n") || name == "" || name[0] == '#' {
			return "", fmt.Errorf("%w: %.80q", keyexchange.ErrName, name)
		}
		lines += fmt.Sprintf("%s %x\n", name, []byte(key))
	}
	return lines, nil
}

// rosterMode is the mode of a file of public keys, which others may read where the user's mask
// permits.
const rosterMode = 0o644

// writeRoster checks a roster's text and writes it whole, to a new file or in place of the old.
func writeRoster(file, text string, fresh bool) (*keyexchange.Roster, error) {
	roster, err := keyexchange.ParseRoster([]byte(text))
	if err != nil {
		return nil, err
	}
	if !fresh {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if err := durable.Write(file, strings.NewReader(text)); err != nil {
			return nil, err
		}
		return roster, os.Chmod(file, info.Mode().Perm())
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, rosterMode)
	if errors.Is(err, fs.ErrExist) {
		return nil, &cli.Problem{Cause: file + " exists", Err: err,
			Advice: "Name a new file, or use hushsum roster add."}
	}
	if err != nil {
		return nil, err
	}
	_, err = out.WriteString(text)
	return roster, errors.Join(err, out.Close())
}
