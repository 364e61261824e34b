package people

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/keyexchange"
)

const rosterAbout = `Usage: hushsum roster COMMAND [flags]

A roster is a text file with a line for each party: its name, a space and its
public key. The members of a committee have a roster of their own. The order
counts. Empty lines and lines that begin with # are ignored.

All parties compare the roster's fingerprint over a channel that the coordinator
does not control, such as the telephone: the author of a roster could invent
parties. Changing a roster makes it another job.
`

// Roster returns the command roster.
func Roster() cli.Command {
	return cli.Group("roster", "make, change, show and check a list of parties", rosterAbout,
		[]string{
			"hushsum roster new roster.txt north=north.pem south=south.pem",
			"hushsum roster add roster.txt east=" + exampleKey,
			"hushsum roster check roster.txt --name east --identity east.pem",
		},
		cli.Command{Name: "new", About: "make a roster of two or more parties", Run: newRoster},
		cli.Command{Name: "add", About: "add parties at the end", Run: addParties},
		cli.Command{Name: "remove", About: "remove parties", Run: removeParties},
		cli.Command{Name: "show", About: "print the parties and the fingerprint", Run: showRoster},
		cli.Command{Name: "check", About: "check a fingerprint, and that a party is listed",
			Run: checkRoster})
}

// exampleKey is a public key for examples.
const exampleKey = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

const keysAbout = `
Each party is given as NAME=KEY. KEY is a public key, 64 hexadecimal digits, or a file
of an identity, for parties of this machine.
`

const newRosterAbout = `Usage: hushsum roster new FILE NAME=KEY NAME=KEY... [flags]

Makes a roster in a new file and prints its fingerprint.
` + keysAbout

const addAbout = `Usage: hushsum roster add FILE NAME=KEY... [flags]

Adds parties at the end of a roster and prints its new fingerprint.
` + keysAbout

const removeAbout = `Usage: hushsum roster remove FILE NAME... [flags]

Removes parties from a roster and prints its new fingerprint. Two must remain.
`

const showRosterAbout = `Usage: hushsum roster show FILE [flags]

Checks a roster, and prints its parties in order, with their numbers from 0, and its
fingerprint.
`

const checkRosterAbout = `Usage: hushsum roster check FILE [flags]

Checks a roster and prints its fingerprint. With --fingerprint it fails unless
the roster has that fingerprint. With --identity it fails unless the identity's
key is in the roster, with --name under this name.
`

const rosterJSON = `With --json there is one object:
  file, fingerprint   as called, and 64 hexadecimal digits
  parties             of each in order: name, key
`

// edited is a command whose result is a roster.
type edited struct {
	name, about, example string
	least                int    // arguments after the file
	what                 string // names for these
	flags                func(*flag.FlagSet)
	roster               func(file string, args []string) (*keyexchange.Roster, error)
	list                 bool // print the parties too
}

func (e *edited) run(args []string, std cli.Streams) int {
	asJSON := false
	flags := flag.NewFlagSet("roster "+e.name, flag.ContinueOnError)
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of text")
	if e.flags != nil {
		e.flags(flags)
	}
	takes, most := "It takes one FILE, and flags.", 1
	if e.what != "" {
		takes, most = "It takes a FILE, "+e.what+", and flags.", 1<<20
	}
	manual := &cli.Manual{Takes: takes, About: e.about, Topics: []cli.Topic{cli.JSONHelp(rosterJSON)},
		Examples: []string{"hushsum roster " + e.example}}
	operands, code, ok := cli.ParseOperands(flags, manual, most, args, std)
	switch {
	case !ok:
		return code
	case len(operands) == 0:
		return cli.WrongUsage(flags, &cli.Problem{Cause: "which file?",
			Advice: "Name the file of the roster."}, std)
	case len(operands) < 1+e.least:
		return cli.WrongUsage(flags, &cli.Problem{Cause: "which parties?",
			Advice: "Name " + e.what + ", as in hushsum roster " + e.example + "."}, std)
	}
	roster, err := e.roster(operands[0], operands[1:])
	if err != nil {
		return failed(flags.Name(), err, std)
	}
	return e.print(operands[0], roster, asJSON, std)
}

// print prints a description of a roster.
func (e *edited) print(
	file string, roster *keyexchange.Roster, asJSON bool, std cli.Streams,
) int {
	digest := roster.Digest()
	if asJSON {
		type party struct {
			Name string `json:"name"`
			Key  string `json:"key"`
		}
		out := struct {
			File        string  `json:"file"`
			Fingerprint string  `json:"fingerprint"`
			Parties     []party `json:"parties"`
		}{file, hex.EncodeToString(digest[:]), []party{}}
		for i := range roster.Len() {
			out.Parties = append(out.Parties, party{roster.Name(i), hex.EncodeToString(roster.Key(i))})
		}
		return show.JSON(std, out)
	}
	if e.list {
		for i := range roster.Len() {
			fmt.Fprintf(std.Out, "%4d  %x  %s\n", i, []byte(roster.Key(i)), roster.Name(i))
		}
	}
	fmt.Fprintf(std.Out, "%s, fingerprint\n%x\n", show.Plural(roster.Len(), "party"), digest)
	return cli.ExitOK
}

func newRoster(_ context.Context, args []string, std cli.Streams) int {
	e := edited{name: "new", about: newRosterAbout, least: 2, what: "NAME=KEY of two or more parties",
		example: "new roster.txt north=north.pem south=south.pem"}
	e.roster = func(file string, args []string) (*keyexchange.Roster, error) {
		lines, err := linesOf(args)
		if err != nil {
			return nil, err
		}
		return writeRoster(file, lines, true)
	}
	return e.run(args, std)
}

func addParties(_ context.Context, args []string, std cli.Streams) int {
	e := edited{name: "add", about: addAbout, least: 1, what: "NAME=KEY of each party",
		example: "add roster.txt east=east.pem"}
	e.roster = func(file string, args []string) (*keyexchange.Roster, error) {
		_, text, err := readRoster(file)
		if err != nil {
			return nil, err
		}
		lines, err := linesOf(args)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return writeRoster(file, text+lines, false)
	}
	return e.run(args, std)
}

func removeParties(_ context.Context, args []string, std cli.Streams) int {
	e := edited{name: "remove", about: removeAbout, least: 1, what: "the NAME of each party",
		example: "remove roster.txt east"}
	e.roster = func(file string, args []string) (*keyexchange.Roster, error) {
		_, text, err := readRoster(file)
		if err != nil {
			return nil, err
		}
		out, left := map[string]bool{}, ""
		for _, name := range args {
			out[name] = true
		}
		found := map[string]bool{}
		for line := range strings.Lines(text) {
			name, _, _ := strings.Cut(line, " ")
			if out[name] && line[0] != '#' {
				found[name] = true
				continue
			}
			left += line
		}
		for _, name := range args {
			if !found[name] {
				return nil, fmt.Errorf("%s has no party %.80q", file, name)
			}
		}
		return writeRoster(file, left, false)
	}
	return e.run(args, std)
}

func showRoster(_ context.Context, args []string, std cli.Streams) int {
	e := edited{name: "show", about: showRosterAbout, example: "show roster.txt", list: true}
	e.roster = func(file string, _ []string) (*keyexchange.Roster, error) {
		roster, _, err := readRoster(file)
		return roster, err
	}
	return e.run(args, std)
}

func checkRoster(_ context.Context, args []string, std cli.Streams) int {
	var fingerprint, identity, name string
	e := edited{name: "check", about: checkRosterAbout,
		example: "check roster.txt --identity east.pem --name east"}
	e.flags = func(f *flag.FlagSet) {
		f.StringVar(&fingerprint, "fingerprint", "", "`HEX` fingerprint that the roster should have")
		f.StringVar(&identity, "identity", "", "`KEY` that should be listed, or the file of its identity")
		f.StringVar(&name, "name", "", "`NAME` that the identity should have")
	}
	e.roster = func(file string, _ []string) (*keyexchange.Roster, error) {
		roster, _, err := readRoster(file)
		if err != nil {
			return nil, err
		}
		digest := roster.Digest()
		if fingerprint != "" && !strings.EqualFold(fingerprint, hex.EncodeToString(digest[:])) {
			return nil, &cli.Problem{
				Cause:  fmt.Sprintf("%s has the fingerprint %x, not the one given", file, digest),
				Advice: "Do not take part before all have the same roster."}
		}
		if name != "" && identity == "" {
			return nil, &cli.Problem{Cause: "--name says whose --identity it is, which is left out"}
		}
		if identity == "" {
			return roster, nil
		}
		key, err := KeyOf(identity)
		if err != nil {
			return nil, err
		}
		i, found := roster.Index(key)
		switch {
		case !found:
			return nil, &cli.Problem{Cause: fmt.Sprintf("%s does not list the key %x", file, []byte(key)),
				Advice: "Have it added, and compare the fingerprint again."}
		case name != "" && roster.Name(i) != name:
			return nil, fmt.Errorf("%s lists that key as %s and not as %.80s", file, roster.Name(i), name)
		}
		return roster, nil
	}
	return e.run(args, std)
}

// readRoster reads and checks a roster; text is the file's content.
func readRoster(file string) (roster *keyexchange.Roster, text string, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, "", err
	}
	if roster, err = keyexchange.ParseRoster(b); err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	return roster, string(b), nil
}
