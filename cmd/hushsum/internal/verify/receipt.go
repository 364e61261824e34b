package verify

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/receipt"
	"github.com/hushsum/hushsum/internal/tilelog"
)

const (
	formReceipt = "receipt"
	formChain   = "chain"
	formFolder  = "folder"
	mostFiles   = 100
)

// checker checks what a federation's key has signed.
type checker struct {
	std     cli.Streams
	asJSON  bool
	keyText string
	key     ed25519.PublicKey // nil: none was given

	logFolder string // empty: none was given
	log       *tilelog.Log
	logKey    string

	bookFile, sealFile, receiptFolder string // of folder; empty: those in it

	witnessFile string // empty: none was given
	witnesses   []*tilelog.Witness
	cosigned    int // of the witnesses, that have cosigned the checkpoint
}

// settle fails if the command was called incorrectly.
func (c *checker) settle(form string, files []string) error {
	most := map[string]int{"": 1, formReceipt: 2, formChain: mostFiles,
		formFolder: 1}[form]
	switch {
	case len(files) == 0:
		return &cli.Problem{Cause: "which file?", Advice: "Name a file, or - for standard input."}
	case form != formFolder && (c.bookFile != "" || c.sealFile != "" || c.receiptFolder != ""):
		return &cli.Problem{Cause: "--book, --seal and --receipts are for folder",
			Advice: "They say where else than in the folder a party has these."}
	case form == formFolder && c.logFolder != "":
		return &cli.Problem{Cause: "--log is for receipt and chain",
			Advice: "Compare the folder's file chain with the log."}
	case len(files) > most && form == "":
		return &cli.Problem{Cause: fmt.Sprintf("unexpected argument %q", files[1]),
			Advice: "Two receipts are compared by 'hushsum verify receipt FILE FILE2'."}
	case len(files) > most && form == formFolder:
		return &cli.Problem{Cause: fmt.Sprintf("unexpected argument %q", files[1]),
			Advice: "It shows one folder at a time."}
	case len(files) > most:
		return &cli.Problem{Cause: fmt.Sprintf("unexpected argument %q", files[most]),
			Advice: "It compares two receipts; 'verify chain FILE RECEIPT...' takes more."}
	case c.witnessFile != "" && c.logFolder == "":
		return &cli.Problem{Cause: "--witnesses goes with --log",
			Advice: "Witnesses cosign the checkpoint of a log."}
	case form == "" && c.logFolder != "":
		return &cli.Problem{Cause: "--log is for receipt and chain",
			Advice: "Evidence convicts by itself."}
	case c.keyText == "":
		return nil
	case form == "":
		return &cli.Problem{Cause: "--key is for receipt, chain and folder",
			Advice: "Compare the key that verify prints with the one that you know."}
	}
	key, err := hex.DecodeString(strings.ToLower(c.keyText))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return &cli.Problem{Cause: fmt.Sprintf("--key %.80q is no key", c.keyText),
			Advice: "A key has 64 hexadecimal digits."}
	}
	c.key = key
	return nil
}

// fails says why nothing was checked.
func (c *checker) fails(err error) int {
	cli.Complain(c.std.Err, "hushsum verify", &cli.Problem{Cause: err.Error(), Err: err})
	return cli.ExitFailure
}

// checked holds the output of --json of receipts and chains.
type checked struct {
	File     string      `json:"file"`
	Verifies bool        `json:"verifies"`
	Error    string      `json:"error,omitempty"`
	Key      string      `json:"key,omitempty"`
	Receipt  *paper      `json:"receipt,omitempty"`
	Chain    *history    `json:"chain,omitempty"`
	Against  []*compared `json:"against,omitempty"`
	Log      *logged     `json:"log,omitempty"`
	Evidence string      `json:"evidence,omitempty"`
}

// paper holds what a receipt says.
type paper struct {
	Federation string   `json:"federation"`
	Job        string   `json:"job"`
	Party      uint64   `json:"party"`
	Round      uint64   `json:"round"`
	Rounds     uint64   `json:"rounds"`
	Session    uint64   `json:"session"`
	Submission string   `json:"submission"`
	Count      uint64   `json:"count"`
	Parties    []uint64 `json:"parties,omitempty"`
	Released   string   `json:"released"`
	Spent      string   `json:"spent,omitempty"`
	Entry      uint64   `json:"entry"`
	Segment    uint64   `json:"segment"`
	Head       uint64   `json:"head"` // entries
	Root       string   `json:"root"`
}

func paperOf(r *receipt.Receipt, shown *receipt.Shown) *paper {
	return &paper{r.Federation, r.Job, r.Party, r.Round, r.Rounds, r.Session,
		r.Submission.String(), r.Count, r.Parties, r.Released.String(), r.Spent, shown.Entry.Number,
		shown.Entry.Segment, shown.Head.Size, shown.Head.Root.String()}
}

// compared says how a second file relates to the first.
type compared struct {
	File string `json:"file"`
	Is   string `json:"is"` // "consistent", "contradicted" or an error
}

// receipts checks a receipt, and compares it with another.
func (c *checker) receipts(name string, b []byte, others []string) int {
	out := &checked{File: name}
	r, shown, err := c.open(b)
	if err != nil {
		out.Error = wrong(err)
		return c.report(out, nil)
	}
	out.Verifies, out.Key = true, r.Key.String()
	out.Receipt = paperOf(r, shown)
	if c.log != nil {
		out.Log = c.inLog(r.Key)
		if out.Error = out.Log.against(shown.Head.Segment, shown.Head.Size, shown.Head.Root,
			r.Job); out.Error != "" {
			out.Verifies = false
			return c.report(out, nil)
		}
	}
	for _, other := range others {
		out.Verifies = false
		shownAs, b, err := read(other)
		if err != nil {
			return c.fails(err)
		}
		is := &compared{File: shownAs}
		out.Against = []*compared{is}
		second, _, err := c.open(b)
		var e *receipt.Evidence
		if err == nil {
			e, err = receipt.Contradict(r, second, c.key)
		}
		switch {
		case errors.Is(err, receipt.ErrConsistent):
			is.Is, out.Verifies = "consistent", true
		case err != nil:
			is.Is, out.Error = wrong(err), shownAs+": "+wrong(err)
		default:
			is.Is, out.Error = "contradicted", contradicts(e)
			if out.Evidence, err = keep(name, e); err != nil {
				return c.fails(err)
			}
		}
	}
	return c.report(out, func(s *show.Screen) { c.tellReceipt(s, r, shown, out) })
}

// open reads and verifies a receipt.
func (c *checker) open(b []byte) (*receipt.Receipt, *receipt.Shown, error) {
	r, err := receipt.Parse(b)
	if err != nil {
		return nil, nil, err
	}
	shown, err := r.Verify(c.key)
	return r, shown, err
}

// report prints what was found, with tell if everything verifies.
func (c *checker) report(out *checked, tell func(s *show.Screen)) (code int) {
	code = cli.ExitOK
	if !out.Verifies {
		code = cli.ExitFailure
	}
	switch {
	case c.asJSON:
		return max(code, show.JSON(c.std, out))
	case !out.Verifies:
		p := &cli.Problem{Cause: out.File + ": " + out.Error}
		if out.Evidence != "" {
			p.Advice = "The evidence is in " + out.Evidence + ": show it to the other parties."
		}
		cli.Complain(c.std.Err, "hushsum verify", p)
	default:
		tell(&show.Screen{Std: c.std})
	}
	return code
}

// tellReceipt prints what follows from a receipt, and from whose word.
func (c *checker) tellReceipt(s *show.Screen, r *receipt.Receipt, shown *receipt.Shown,
	out *checked,
) {
	s.Printf("receipt   of party %d, round %d of %d, in federation\n", r.Party, r.Round, r.Rounds)
	s.Printf("          %s\n", r.Federation)
	c.tellKey(s, r.Key)
	s.Printf("submitted %v\n", r.Submission)
	who := "who else is not said"
	if r.Parties != nil {
		who = "numbers" + list(r.Parties)
	}
	s.Field("in", "a sum of %s: %s", show.Plural(int(r.Count), "party"), who)
	s.Printf("released  %v\n", r.Released)
	spent := r.Spent
	if spent == "" {
		spent = "nothing: the job adds no noise"
	}
	s.Field("spent", "%s", spent)
	s.Field("entry", "%d of segment %d, at %s", shown.Entry.Number, shown.Entry.Segment,
		shown.Entry.Time.Format("2006-01-02 15:04:05 MST"))
	s.Field("head", "%s, root", show.Plural(int(shown.Head.Size), "entry"))
	s.Printf("          %v\n", shown.Head.Root)
	tellLog(s, out.Log)
	for _, other := range out.Against {
		s.Field("against", "%s: not contradicted, and not comparable where its head has another size: "+
			"'hushsum verify chain FILE RECEIPT...' compares it with all decisions.", other.File)
	}
	s.Sentence("By the word of the federation's key: the message with that digest is in the sum, " +
		"with those of the others, what is released came of it, and the party has spent that much. " +
		"The key has bound itself to this in an entry that all parties can be shown: a second history " +
		"under it convicts its holder.")
	s.Sentence("%s", words(r))
	s.Sentence("Not shown: that the sum was computed as the rules say, that the others exist, and " +
		"what was spent elsewhere. A party that has all messages of a sum, or all sums, can compute " +
		"again; what it has spent it knows by its own ledger.")
}

// words says whose word there is besides that of the federation's key.
func words(r *receipt.Receipt) string {
	if r.Session == 0 {
		return "By the word of the committee: nothing in this file. Before the sum was opened the " +
			"members signed who is in it, and the server has their signatures."
	}
	return "By the word of the parties: nothing in this file. With recovery a quorum of them signed " +
		"who is in the sum before any let it be opened, and a party that was there has checked that; " +
		"without recovery nobody but the federation's key says it."
}

func (c *checker) tellKey(s *show.Screen, key chain.Hash) {
	s.Printf("key       %v\n", key)
	if c.key != nil {
		s.Field("", "as given")
	} else {
		s.Field("", "compare it with the one that you know: the file's maker chose it")
	}
}

// list writes numbers with a space before each; of many, the first.
func list(numbers []uint64) (text string) {
	for k, n := range numbers {
		if k == 20 {
			return text + " …"
		}
		text += fmt.Sprintf(" %d", n)
	}
	return text
}

// contradicts says how two histories differ.
func contradicts(e *receipt.Evidence) string {
	switch e.Kind {
	case receipt.Entries:
		return "the federation's key has signed two entries of one number"
	case receipt.Prefixes:
		return "the federation's key has signed a head that its later entries do not continue"
	}
	return "the federation's key has signed two heads of one size, with two roots"
}

// keep writes evidence next to a file, unless it is there.
func keep(name string, e *receipt.Evidence) (string, error) {
	b, err := e.MarshalText()
	if err != nil {
		return "", err
	}
	name = strings.TrimSuffix(name, ".receipt") + ".evidence"
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		had, failed := os.ReadFile(name)
		if failed == nil && bytes.Equal(had, b) {
			return name, nil
		}
		return "", fmt.Errorf("%w: move it away", err)
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	return name, errors.Join(err, f.Close())
}

// evidence checks evidence that a key has signed two histories.
func (c *checker) evidence(name string, b []byte) int {
	out := &checked{File: name}
	e, err := receipt.ParseEvidence(b)
	if err == nil {
		err = e.Verify()
	}
	if err != nil {
		out.Error = wrong(err)
	} else {
		out.Verifies, out.Key = true, e.Key.String()
	}
	return c.report(out, func(s *show.Screen) {
		s.Field("convicts", "the holder of a federation's key: it")
		s.Field("", "%s", strings.TrimPrefix(contradicts(e), "the federation's key "))
		s.Printf("of        %s\n", e.Federation)
		s.Printf("key       %v\n", e.Key)
		s.Field("", "compare it with the one that you know")
	})
}

// wrong states why a file does not verify, without the names of packages.
func wrong(err error) string {
	for _, known := range []struct {
		err  error
		says string
	}{
		{receipt.ErrReceipt, "it is no receipt, or it was changed"},
		{receipt.ErrKey, "it is under another key than the one given"},
		{receipt.ErrProof, "it does not verify: it was changed, or the federation's key did not sign it"},
		{receipt.ErrApart, "they are of two federations, or under two keys"},
		{receipt.ErrEvidence, "it convicts nobody: it was changed, or is something else"},
		{chain.ErrNone, "it has no entry that the federation's key has signed"},
		{chain.ErrFork, "it has two histories: two entries of one number, or one that does not follow"},
		{chain.ErrHead, "the federation's key has not signed its head"},
	} {
		if errors.Is(err, known.err) {
			return known.says
		}
	}
	return err.Error()
}
