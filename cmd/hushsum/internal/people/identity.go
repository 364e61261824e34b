// Package people has the commands identity and roster: the keys of participants, and the list of
// them.
package people

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
)

const identityAbout = `Usage: hushsum identity COMMAND [flags]

An identity is an Ed25519 key in a PEM file (PKCS #8), which stays with its owner:
a party, a member of a committee, or the coordinator. Others know it by its public
key, 64 hexadecimal digits. hushsumd takes the same files.
`

// Identity returns the command identity.
func Identity() cli.Command {
	return cli.Group("identity", "make or show the key of a party or coordinator", identityAbout,
		[]string{"hushsum identity new north.pem", "hushsum identity show north.pem"},
		cli.Command{Name: "new", About: "make an identity in a new file", Run: newIdentity},
		cli.Command{Name: "show", About: "print the public key of an identity", Run: showIdentity})
}

const newAbout = `Usage: hushsum identity new FILE [flags]

Makes an identity, writes it to FILE, which only its owner may read, and prints the
public key. It never overwrites a file: an owner who loses an identity needs a
new entry in the roster.
`

const showAbout = `Usage: hushsum identity show FILE [flags]

Prints the public key of the identity in FILE, and nothing secret.
`

const identityJSON = `With --json there is one object:
  file, key   as called, and 64 hexadecimal digits
`

func newIdentity(_ context.Context, args []string, std cli.Streams) int {
	return identity("new", newAbout, args, std, func(file string) (ed25519.PublicKey, error) {
		return keyfile.NewIdentity(file, nil)
	})
}

func showIdentity(_ context.Context, args []string, std cli.Streams) int {
	return identity("show", showAbout, args, std, func(file string) (ed25519.PublicKey, error) {
		key, err := keyfile.ReadIdentity(file)
		if err != nil {
			return nil, err
		}
		return key.Public().(ed25519.PublicKey), nil
	})
}

// identity runs a command that takes a file and prints a key.
func identity(
	name, about string, args []string, std cli.Streams,
	key func(file string) (ed25519.PublicKey, error),
) int {
	asJSON := false
	flags := flag.NewFlagSet("identity "+name, flag.ContinueOnError)
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of text")
	manual := &cli.Manual{
		Takes:    "It takes one FILE, and flags.",
		About:    about,
		Topics:   []cli.Topic{cli.JSONHelp(identityJSON)},
		Examples: []string{"hushsum identity " + name + " north.pem"},
	}
	operands, code, ok := cli.ParseOperands(flags, manual, 1, args, std)
	if !ok {
		return code
	}
	if len(operands) == 0 {
		return cli.WrongUsage(flags, &cli.Problem{Cause: "which file?",
			Advice: "Name the file of the identity, as in north.pem."}, std)
	}
	public, err := key(operands[0])
	if err != nil {
		return failed(flags.Name(), err, std)
	}
	if asJSON {
		return show.JSON(std, struct {
			File string `json:"file"`
			Key  string `json:"key"`
		}{operands[0], hex.EncodeToString(public)})
	}
	fmt.Fprintf(std.Out, "%x\n", []byte(public))
	return cli.ExitOK
}

// failed prints what is wrong with a file, and what to do.
func failed(command string, err error, std cli.Streams) int {
	var said *cli.Problem
	if errors.As(err, &said) {
		return cli.Failed(command, said, std)
	}
	text := err.Error()
	for _, name := range []string{"keyfile: ", "keyexchange: "} {
		text = strings.TrimPrefix(text, name)
	}
	problem := &cli.Problem{Cause: text, Err: err}
	switch {
	case errors.Is(err, keyexchange.ErrRosterLine), errors.Is(err, keyexchange.ErrRosterSize),
		errors.Is(err, keyexchange.ErrDuplicateIdentity):
		problem.Advice = "Run 'hushsum help roster' for what a roster is."
	case errors.Is(err, keyexchange.ErrIdentityKey):
		problem.Advice = "Take the key that 'hushsum identity show FILE' prints."
	}
	return cli.Failed(command, problem, std)
}
