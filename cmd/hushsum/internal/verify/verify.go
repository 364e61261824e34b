// Package verify has the command verify, which checks without a server what others sign: evidence
// that a party of a private sum cheated, the receipts that parties have of rounds, and the entries
// of a federation's record.
package verify

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/receipt"
	"github.com/hushsum/hushsum/oneshot"
)

const about = `Usage: hushsum verify FILE [flags]
       hushsum verify receipt FILE [FILE2] [flags]
       hushsum verify chain FILE [RECEIPT...] [flags]
       hushsum verify folder FOLDER [flags]

The first form checks evidence that a party of a private sum with a bound cheated: that it
signed a vector with a proof that does not hold, or shares that do not match it.
It reads FILE, or with - standard input, and needs nothing else: the
configuration, the roster and the members' keys are in the evidence.

If it convicts, the party is named, with its key and the configuration's digest.
The evidence contains its own roster: compare the key with the one that you
know. A file that verify has written of two receipts is evidence too: it convicts
the holder of a federation's key.

verify receipt checks what a party got after a round that it was in, and prints
what follows from it, and from whose word. With two receipts it also compares
them: if they contradict each other it writes both sides to FILE.evidence.

With --log it compares what the federation's key has signed with what the
server's public log says of that key: the folder has the files under /log/ of the
server's door: checkpoint, key and tiles of entries, such as tile/entries/000 and
of the last few tile/entries/000.p/9, for 9 of them. With --witnesses it says how many
of them have cosigned the checkpoint: how many suffice is yours to say.

verify chain checks the entries of a federation's record, and receipts against
them: what 'hushsumd federation chain' prints, the file chain in a party's folder,
or decided/ID.chain in a node's.

verify folder shows what a party has kept, and checks it: its book, with the
rounds in which something has left it in each federation and those in which
something still may; the decisions that it has accepted of one; and the receipts
of its rounds, with what it has spent after each. The folder is that of
'hushsumd join', or the --state of 'hushsum join', which has a book alone.

Nothing of this shows that a sum was computed as the rules say. It shows that the
federation's key says one thing to everyone, or that it does not.
`

const aboutJSON = `With --json there is one object:
  file, convicts  as called, and whether the evidence shows that the party cheated
  error           only if it does not: why
The rest is there if the file could be read:
  party, name     place in the roster, and name there
  key             Ed25519, 64 hexadecimal digits: compare it
  label, round    the label of the configuration, and the round's number
  configuration   its digest, 64 hexadecimal digits
  about           proof or shares
  member          only of shares: the member of the committee that got them

Of receipts and chains there is:
  file, verifies  as called, and whether it shows what it says
  error           only if it does not: why
  receipt         the numbers and digests of a receipt, by name
  chain           from, to, segments, rounds with a sum, rounds lost, and head
  key             the federation's, 64 hexadecimal digits: compare it
  against         only of two files: what the second one is to the first
  log             only with --log: its name, size and key, whether it has the
                  federation's birth and its newest head, how many of the given
                  witnesses have cosigned it
  evidence        only if they contradict each other: the file that says so

Of a folder there is:
  folder, verifies  as called, and whether everything in it verifies
  problems        only if it does not: what is wrong
  book            name and id of each federation, when it was accepted and
                  ended; left and may: in how many rounds something has left,
                  and still may; declined, clear and before where they apply
  key, chain      as above
  receipts        of each round, as above
  ahead           rounds whose receipts have a later head than the decisions
  evidence        files in its folder evidence
`

// largest is a size beyond that of any evidence that a server writes.
const largest = 1 << 30

func manual() *cli.Manual {
	return &cli.Manual{
		Takes:  "It takes one FILE, receipt FILE, chain FILE, or folder FOLDER, and flags.",
		About:  about,
		Topics: []cli.Topic{cli.JSONHelp(aboutJSON)},
		Codes: `Exit codes: 0 the evidence convicts, the receipt or chain shows what it says; 1 it
does not, two receipts contradict each other, or a file cannot be read; 2 incorrect
usage, 130 interrupted, 143 ended by SIGTERM.
`,
		Examples: []string{
			"hushsum verify party-3.evidence",
			"hushsum verify --json - < party-3.evidence",
			"hushsum verify receipt 7.receipt --key KEY",
			"hushsum verify receipt 7.receipt theirs.receipt",
			"hushsum verify chain hushsum-party/chain 7.receipt --log log",
			"hushsum verify folder hushsum-party",
		},
	}
}

// Command returns the command verify.
func Command() cli.Command {
	return cli.Command{
		Name:  "verify",
		About: "check evidence of cheating, receipts, decisions, a party's folder",
		Run:   verify,
	}
}

// finding holds the output of --json.
type finding struct {
	File     string `json:"file"`
	Convicts bool   `json:"convicts"`
	Error    string `json:"error,omitempty"`
	*Accused
}

// Accused names the party or member that is said to have cheated.
type Accused struct {
	Party         int    `json:"party"` // -1: a member of the committee, in noise that it dealt
	Name          string `json:"name"`
	Key           string `json:"key"`
	Label         string `json:"label"`
	Round         uint64 `json:"round"`
	Configuration string `json:"configuration"`
	About         string `json:"about"`
	Member        string `json:"member,omitempty"`
}

func verify(_ context.Context, args []string, std cli.Streams) int {
	var c checker
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.BoolVar(&c.asJSON, "json", false, "print JSON instead of text")
	flags.StringVar(&c.keyText, "key", "", "the federation's `KEY`, of receipt, chain and folder")
	flags.StringVar(&c.logFolder, "log", "", "`folder` with the files of a server's public log")
	flags.StringVar(&c.witnessFile, "witnesses", "", "`file` of keys of the log's witnesses, one a line")
	flags.StringVar(&c.bookFile, "book", "", "`file` of a party's book, if it is not in the folder")
	flags.StringVar(&c.sealFile, "seal", "", "`file` with the key that seals the book; default: seal.key "+
		"in the folder")
	flags.StringVar(&c.receiptFolder, "receipts", "", "`folder` of receipts, if it is not in the "+
		"folder")
	operands, code, ok := cli.ParseOperands(flags, manual(), mostFiles, args, std)
	if !ok {
		return code
	}
	c.std = std
	form, forms := "", []string{formReceipt, formChain, formFolder}
	if len(operands) > 0 && slices.Contains(forms, operands[0]) {
		form, operands = operands[0], operands[1:]
	}
	if err := c.settle(form, operands); err != nil {
		return cli.WrongUsage(flags, err, std)
	}
	if form == formFolder {
		return c.folder(operands[0])
	}
	name, b, err := read(operands[0])
	if err != nil {
		return c.fails(err)
	}
	switch {
	case c.openLog() != nil:
		return cli.ExitFailure
	case form == formReceipt:
		return c.receipts(name, b, operands[1:])
	case form == formChain:
		return c.chain(name, b, operands[1:])
	case receipt.IsEvidence(b):
		return c.evidence(name, b)
	}
	return c.cheating(name, b)
}

// cheating checks evidence of package oneshot.
func (c *checker) cheating(name string, b []byte) (code int) {
	std := c.std
	f := find(name, b)
	code = cli.ExitFailure
	if f.Convicts {
		code = cli.ExitOK
	}
	switch {
	case c.asJSON:
		return max(code, show.JSON(std, f))
	case !f.Convicts:
		cli.Complain(std.Err, "hushsum verify", &cli.Problem{Cause: name + ": " + f.Error})
		return code
	}
	s := show.Screen{Std: std}
	if f.Party >= 0 {
		s.Field("party", "%s, number %d of the roster, cheated", f.Name, f.Party)
	} else {
		s.Field("member", "%s of the committee cheated in the noise that it dealt", f.Name)
	}
	s.Printf("%-10s%s\n", "key", f.Key)
	if f.About == "proof" {
		s.Field("how", "it signed a vector with a proof of its norm that does not hold")
	} else {
		s.Field("how", "it signed shares for %s that do not match what it committed to", f.Member)
	}
	s.Field("round", "%d of %q", f.Round, f.Label)
	s.Printf("%-10s%s\n", "under", f.Configuration)
	return code
}

// find checks evidence.
func find(name string, b []byte) *finding {
	f := &finding{File: name}
	e, err := oneshot.ParseEvidence(b)
	if err != nil {
		f.Error = "it is not evidence: " + reason(err)
		return f
	}
	config := e.Config()
	digest, err := config.Digest()
	if err != nil {
		f.Error = reason(err)
		return f
	}
	f.Accused = &Accused{
		Party:         e.Party(),
		Label:         config.Label,
		Round:         e.Round(),
		Configuration: hex.EncodeToString(digest[:]),
		About:         "proof",
	}
	people, index := config.Roster, e.Party()
	if k, noise := e.NoiseOf(); noise {
		people, index = config.Committee, k
	}
	f.Name, f.Key = people.Name(index), hex.EncodeToString(people.Key(index))
	if member, shares := e.Member(); shares {
		f.About, f.Member = "shares", config.Committee.Name(member)
	}
	if err := e.Verify(); err != nil {
		f.Error = fmt.Sprintf("it does not convict %s", f.Name)
		return f
	}
	f.Convicts = true
	return f
}

// reason states what is wrong with evidence, without the names of packages.
func reason(err error) string {
	if errors.Is(err, oneshot.ErrConfig) {
		return "its configuration is invalid, or has no bound"
	}
	return "it was truncated or changed, or is something else"
}

func read(name string) (shown string, b []byte, err error) {
	in := os.Stdin
	if name == "-" {
		name = "standard input"
	} else {
		if in, err = os.Open(name); err != nil {
			return "", nil, err
		}
		defer in.Close()
	}
	b, err = io.ReadAll(io.LimitReader(in, largest))
	return name, b, err
}
