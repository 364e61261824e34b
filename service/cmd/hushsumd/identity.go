package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
)

func identity(_ context.Context, args []string, std streams) error {
	f := flags("identity", "identity new|show FILE", `
An identity is an Ed25519 key in a PEM file (PKCS #8), which stays with the party. "new" makes
one, and prints the public key that goes into the roster; "show" prints it again.`, std)
	words, err := parseAmong(f, args, 2) // a flag after them is none of the files
	if err != nil {
		return err
	}
	if len(words) != 2 {
		return misuse("name new or show, and a file")
	}
	file := words[1]
	switch words[0] {
	case "new":
		key, err := keyfile.NewIdentity(file, nil)
		if err != nil {
			return err
		}
		fmt.Fprintf(std.out, "%x\n", []byte(key))
		return nil
	case "show":
		key, err := keyfile.ReadIdentity(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(std.out, "%x\n", []byte(key.Public().(ed25519.PublicKey)))
		return nil
	}
	return misuse("%q is neither new nor show", words[0])
}

func rosterCommand(_ context.Context, args []string, std streams) error {
	f := flags("roster", "roster line NAME IDENTITY | roster show FILE", `
A roster is a text file with a line for each party: its name, a space, its public key. "line" prints
the line of an identity, under a name. "show" checks a roster and prints its parties and its
fingerprint: compare it among all parties by telephone or on paper, because a server that can write
the roster can invent parties.`, std)
	if err := parse(f, args, 3); err != nil {
		return err
	}
	switch {
	case f.Arg(0) == "line" && f.NArg() == 3:
		key, err := keyfile.ReadIdentity(f.Arg(2))
		if err != nil {
			return err
		}
		public := key.Public().(ed25519.PublicKey)
		line := fmt.Sprintf("%s %x\n", f.Arg(1), []byte(public))
		// A roster has two parties or more.
		other, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return err
		}
		two := fmt.Sprintf("%sother-than-%d %x\n", line, len(f.Arg(1)), []byte(other[32:]))
		if _, err := keyexchange.ParseRoster([]byte(two)); err != nil {
			return misuse("%.80q is not a name for a roster: use letters, digits, dots and dashes, without "+
				"spaces", f.Arg(1))
		}
		fmt.Fprint(std.out, line)
		return nil
	case f.Arg(0) == "show" && f.NArg() == 2:
		text, err := os.ReadFile(f.Arg(1))
		if err != nil {
			return err
		}
		roster, err := keyexchange.ParseRoster(text)
		if err != nil {
			return err
		}
		for i := range roster.Len() {
			fmt.Fprintf(std.out, "%4d  %-30s %x\n", i, roster.Name(i), []byte(roster.Key(i)))
		}
		digest := roster.Digest()
		fmt.Fprintf(std.out, "%d parties, fingerprint %s\n", roster.Len(), hex.EncodeToString(digest[:]))
		return nil
	}
	return misuse("use 'roster line NAME IDENTITY' or 'roster show FILE'")
}
