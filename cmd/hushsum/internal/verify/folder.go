package verify

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
)

// This file has what a party has kept: the book of what has left it in all federations, and of one
// the lines of decisions with the receipts of rounds.

// Names in a party's folder.
const (
	nameBook     = "book"
	nameSeal     = "seal.key"
	nameChain    = "chain"
	nameReceipts = "receipts"
	nameEvidence = "evidence"
)

// kept holds what a party's folder has, the output of --json of folder.
type kept struct {
	Folder   string     `json:"folder"`
	Verifies bool       `json:"verifies"`
	Problems []string   `json:"problems,omitempty"`
	Book     []*entered `json:"book,omitempty"`
	Key      string     `json:"key,omitempty"`
	Chain    *history   `json:"chain,omitempty"`
	Receipts []*paper   `json:"receipts,omitempty"`
	Ahead    []uint64   `json:"ahead,omitempty"` // rounds whose receipts have a later head
	Evidence []string   `json:"evidence,omitempty"`
}

// entered is a federation, or a job, in the party's book.
type entered struct {
	Name     string     `json:"name"`
	ID       string     `json:"id"`
	Before   string     `json:"before,omitempty"`
	Accepted time.Time  `json:"accepted"`
	Ended    *time.Time `json:"ended,omitempty"`
	Declined bool       `json:"declined,omitempty"`
	Left     int        `json:"left"` // rounds
	May      int        `json:"may"`  // rounds in which something may still leave
	Clear    bool       `json:"clear,omitempty"`
}

// folder shows what a party's folder has, and checks what can be without a server.
func (c *checker) folder(name string) int {
	out := &kept{Folder: name}
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return c.fails(cmp.Or(err, fmt.Errorf("%s is no folder", name)))
	}
	for _, part := range []func(*kept) error{c.book, c.decisions, evidenceIn} {
		if err := part(out); err != nil {
			out.Problems = append(out.Problems, err.Error())
		}
	}
	code := cli.ExitOK
	if out.Verifies = len(out.Problems) == 0; !out.Verifies {
		code = cli.ExitFailure
	}
	if c.asJSON {
		return max(code, show.JSON(c.std, out))
	}
	c.tellFolder(&show.Screen{Std: c.std}, out)
	for _, problem := range out.Problems {
		cli.Complain(c.std.Err, "hushsum verify", &cli.Problem{Cause: problem})
	}
	return code
}

// book reads the party's book.
func (c *checker) book(out *kept) error {
	file := cmp.Or(c.bookFile, filepath.Join(out.Folder, nameBook))
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) && c.bookFile == "" {
		return nil
	}
	key, err := keyfile.SealKey(cmp.Or(c.sealFile, filepath.Join(out.Folder, nameSeal)), false)
	if err != nil {
		return err
	}
	entries, err := (&consent.Book{File: file, Key: key}).Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		is := &entered{Name: e.Name, ID: e.ID, Before: e.Before, Accepted: e.Accepted,
			Declined: e.Declined, Clear: e.Clear}
		if !e.Ended.IsZero() {
			is.Ended = &e.Ended
		}
		for _, l := range e.Left {
			is.Left += l.Count
		}
		for _, l := range e.May {
			is.May += l.Count
		}
		out.Book = append(out.Book, is)
	}
	return nil
}

// decisions reads the lines of a federation's chain, and the receipts, each of which is compared
// with the lines.
func (c *checker) decisions(out *kept) error {
	b, err := os.ReadFile(filepath.Join(out.Folder, nameChain))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var all *chain.Chain
	var tree *chain.Tree
	key := c.key
	if len(b) > 0 {
		if all, key, err = c.read(b); err == nil {
			out.Chain, tree, err = summary(all, key, nil)
		}
		if err != nil {
			return fmt.Errorf("%s: %s", filepath.Join(out.Folder, nameChain), wrong(err))
		}
		out.Key = chain.Hash(key).String()
	}
	files, err := receiptsIn(cmp.Or(c.receiptFolder, filepath.Join(out.Folder, nameReceipts)))
	if err != nil {
		return err
	}
	with := *c
	with.key = key // the receipts' is the chain's
	var problems []error
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		r, shown, err := with.open(b)
		if err == nil && all != nil {
			e, failed := against(all, key, nil, tree, b)
			switch {
			case e != nil:
				err = errors.New(contradicts(e))
			case errors.Is(failed, errRest): // a party gets both while it goes on, in any order
				out.Ahead = append(out.Ahead, r.Round)
			default:
				err = failed
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s", file, wrong(err)))
			continue
		}
		out.Key = cmp.Or(out.Key, r.Key.String())
		out.Receipts = append(out.Receipts, paperOf(r, shown))
	}
	return errors.Join(problems...)
}

// receiptsIn lists the receipts of a folder by round, and fails for those that a party refused.
func receiptsIn(folder string) (files []string, err error) {
	all, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	rounds := make(map[string]uint64)
	var refused []error
	for _, one := range all {
		file := filepath.Join(folder, one.Name())
		if round, is := strings.CutSuffix(one.Name(), ".receipt"); is {
			if rounds[file], err = strconv.ParseUint(round, 10, 64); err == nil {
				files = append(files, file)
			}
		} else if strings.HasSuffix(one.Name(), ".refused") {
			refused = append(refused, fmt.Errorf("%s: the party refused this receipt, since it does not "+
				"verify; ask the operator", file))
		}
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(rounds[a], rounds[b]) })
	return files, errors.Join(refused...)
}

// evidenceIn lists what the party keeps as proof that histories contradict each other.
func evidenceIn(out *kept) error {
	folder := filepath.Join(out.Folder, nameEvidence)
	all, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	proofs := 0
	for _, one := range all {
		out.Evidence = append(out.Evidence, filepath.Join(folder, one.Name()))
		if strings.HasSuffix(one.Name(), ".evidence") { // others are histories before a setback
			proofs++
		}
	}
	if proofs > 0 {
		err = fmt.Errorf("%s has %s that the server told other decisions than before: show them to "+
			"the operator and to the other parties", folder, show.Plural(proofs, "proof"))
	}
	return err
}

// tellFolder prints what a folder has.
func (c *checker) tellFolder(s *show.Screen, out *kept) {
	s.Printf("folder    %s\n", out.Folder)
	if len(out.Book) == 0 {
		s.Field("book", "none in this folder: --book names another")
	} else {
		s.Field("book", "%s", show.Plural(len(out.Book), "federation"))
		s.Printf("\n  %-24s %-10s %-11s %9s %9s\n", "federation", "accepted", "ended", "left",
			"may leave")
		for _, e := range out.Book {
			ended := "goes on"
			switch {
			case e.Declined:
				ended = "declined"
			case e.Ended != nil:
				ended = e.Ended.Format(time.DateOnly)
			}
			s.Printf("  %-24s %-10s %-11s %9d %9d\n", short(e.Name), e.Accepted.Format(time.DateOnly),
				ended, e.Left, e.May)
		}
		s.Sentence("Left and may leave count rounds.")
		s.Printf("\n")
	}
	if out.Key != "" {
		s.Printf("key       %s\n", out.Key)
		s.Field("", "of the federation whose decisions and receipts follow")
	}
	if h := out.Chain; h == nil {
		s.Field("decisions", "none are kept here: a party keeps them in federations of the service "+
			"of up to 1,000 parties")
	} else {
		s.Field("decisions", "%d to %d, in %s; %s, %d lost", h.From, h.To,
			show.Plural(h.Segments, "segment"), show.Plural(h.Sums, "sum"), h.Lost)
		if len(h.Missing) > 0 {
			s.Field("missing", "decisions %v", h.Missing)
		}
		if h.Size > 0 {
			s.Field("head", "%s, root", show.Plural(int(h.Size), "entry"))
			s.Printf("          %s\n", h.Root)
		}
	}
	s.Field("receipts", "%d", len(out.Receipts))
	if len(out.Receipts) > 0 {
		s.Printf("\n  %-6s %-8s %-8s %s\n", "round", "in sum", "decision",
			"spent by this party, after it")
	}
	for _, r := range out.Receipts {
		spent, _, _ := strings.Cut(r.Spent, " at delta")
		s.Printf("  %-6d %-8d %-8d %s\n", r.Round, r.Count, r.Entry, cmp.Or(spent, "nothing"))
	}
	if n := len(out.Receipts); n > 0 && out.Receipts[n-1].Spent != "" {
		s.Printf("\n")
		s.Field("spent", "%s", out.Receipts[n-1].Spent)
	}
	if len(out.Ahead) > 0 {
		s.Field("ahead", "the heads of the receipts of rounds%s are later than the last decision "+
			"here: compare them again once the party has the rest", list(out.Ahead))
	}
	if len(out.Evidence) > 0 {
		s.Field("evidence", "%s", strings.Join(out.Evidence, ", "))
	}
}

// short cuts a name for a column.
func short(name string) string {
	const most = 24
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}
