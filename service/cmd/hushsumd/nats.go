package main

import (
	"errors"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/hushsum/hushsum/keyexchange/keyfile"
)

// natsFlags say how a node reaches an operator's NATS. They hold no secret, since other users of
// the machine can read the arguments of a process: secrets are in files.
type natsFlags struct {
	address              string
	ca, certificate, key string
	credentials, seed    string
}

// read returns the address and the options for connecting to it.
func (f *natsFlags) read() (address string, options []nats.Option, err error) {
	more := f.ca + f.certificate + f.key + f.credentials + f.seed
	switch {
	case f.address == "" && more == "":
		return "", nil, nil
	case f.address == "":
		return "", nil, misuse("--nats-ca, --nats-cert, --nats-creds and --nats-nkey go with --nats")
	case (f.certificate == "") != (f.key == ""):
		return "", nil, misuse("--nats-cert and --nats-key go together")
	case f.credentials != "" && f.seed != "":
		return "", nil, misuse("--nats-creds and --nats-nkey exclude each other")
	}
	var secret []string
	address, fromFile := strings.CutPrefix(f.address, "@")
	if fromFile {
		secret = append(secret, address)
	} else if hasPassword(address) {
		return "", nil, misuse("other users of the machine can read a password in arguments: write the " +
			"URL to a file of mode 0600 and name it as --nats @FILE")
	}
	for _, name := range []string{f.credentials, f.seed, f.key} {
		if name != "" {
			secret = append(secret, name)
		}
	}
	for _, name := range secret {
		if err := keyfile.Private(name); err != nil {
			return "", nil, err
		}
	}
	if fromFile {
		text, err := os.ReadFile(address)
		if err != nil {
			return "", nil, err
		}
		address = strings.TrimSpace(string(text))
	}
	if f.ca != "" {
		options = append(options, nats.RootCAs(f.ca))
	}
	if f.certificate != "" {
		options = append(options, nats.ClientCert(f.certificate, f.key))
	}
	if f.credentials != "" {
		options = append(options, nats.UserCredentials(f.credentials))
	}
	if f.seed != "" {
		option, err := nats.NkeyOptionFromSeed(f.seed)
		if err != nil { // which may quote the file
			return "", nil, errors.New(f.seed + " has no seed of an nkey of a user")
		}
		options = append(options, option)
	}
	return address, options, nil
}

// hasPassword reports whether one of the URLs of a list has a password, or a token, which stands
// where a name does.
func hasPassword(list string) bool {
	for one := range strings.SplitSeq(list, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil {
			return strings.Contains(one, "@")
		}
		if u.User != nil {
			return true
		}
	}
	return false
}
