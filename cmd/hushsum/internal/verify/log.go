package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/tilelog"
)

// logged holds what a public log says of a federation's key.
type logged struct {
	Name  string `json:"name"`
	Key   string `json:"key"`
	Size  int64  `json:"size"`
	Birth bool   `json:"birth"` // it has the federation's
	Ended bool   `json:"ended"`
	// Segment, Entries and Day are of the newest head of the federation; Entries is 0 without one.
	Segment uint64 `json:"segment"`
	Entries uint64 `json:"entries"`
	Day     string `json:"day,omitempty"`
	// Cosigned is how many of Witnesses have cosigned the checkpoint.
	Cosigned  int `json:"cosigned"`
	Witnesses int `json:"witnesses"`

	job   chain.Hash
	heads []*tilelog.Leaf
}

// openLog reads the public log, if one was given, and complains if it cannot be read.
func (c *checker) openLog() (err error) {
	if c.logFolder == "" {
		return nil
	}
	if c.log, c.logKey, err = tilelog.Open(c.logFolder, ""); err != nil {
		cause := fmt.Sprintf("%s: it is no public log, or its files do not fit each other", c.logFolder)
		cli.Complain(c.std.Err, "hushsum verify", &cli.Problem{Cause: cause, Err: err})
		return err
	}
	if c.witnessFile == "" {
		return nil
	}
	if err = c.readWitnesses(); err != nil {
		cli.Complain(c.std.Err, "hushsum verify", &cli.Problem{Cause: err.Error(), Err: err})
	}
	return err
}

// readWitnesses counts the witnesses that have cosigned the log's checkpoint.
func (c *checker) readWitnesses() error {
	text, err := os.ReadFile(c.witnessFile)
	if err != nil {
		return err
	}
	for line := range strings.FieldsSeq(string(text)) {
		w, err := tilelog.ParseWitness(line)
		if err != nil {
			return fmt.Errorf("%s: %.80q is no key of a witness", c.witnessFile, line)
		}
		c.witnesses = append(c.witnesses, w)
	}
	checkpoint, err := os.ReadFile(filepath.Join(c.logFolder, "checkpoint"))
	c.cosigned = tilelog.Cosigners(checkpoint, c.witnesses...)
	return err
}

// inLog returns what the log says of a key.
func (c *checker) inLog(key chain.Hash) *logged {
	name, _, _ := strings.Cut(c.logKey, "+")
	out := &logged{Name: name, Key: c.logKey, Size: c.log.Size(), Cosigned: c.cosigned,
		Witnesses: len(c.witnesses)}
	for n := range c.log.Size() {
		leaf, err := tilelog.ParseLeaf(c.log.Leaf(n))
		if err != nil || leaf.Key != key {
			continue
		}
		switch leaf.Kind {
		case tilelog.Birth:
			out.Birth, out.job = true, leaf.Job
		case tilelog.End:
			out.Ended = true
		case tilelog.Head:
			out.heads = append(out.heads, leaf)
			out.Segment, out.Entries, out.Day = leaf.Segment, leaf.Size, leaf.Day
		}
	}
	return out
}

// against returns how the log contradicts a head and a job; empty: it does not.
func (l *logged) against(segment, size uint64, root chain.Hash, job string) string {
	if l.Birth && job != "" && l.job.String() != job {
		return "the log says that the federation was declared with another job"
	}
	for _, leaf := range l.heads {
		if leaf.Segment == segment && leaf.Size == size && leaf.Root != root {
			return fmt.Sprintf("the log has another head of %d entries", size)
		}
	}
	return ""
}

// of returns how the log contradicts a chain; empty: it does not.
func (l *logged) of(all *chain.Chain, tree *chain.Tree) string {
	last := all.Last()
	for _, leaf := range l.heads {
		switch {
		case leaf.Segment > last.Segment, leaf.Segment == last.Segment && tree != nil &&
			leaf.Size > tree.Size():
			return fmt.Sprintf("the log has a head of %d entries of segment %d, which the chain lacks",
				leaf.Size, leaf.Segment)
		case leaf.Segment == last.Segment && tree != nil:
			if root, err := tree.Root(leaf.Size); err != nil || root != leaf.Root {
				return fmt.Sprintf("the log has another head of %d entries", leaf.Size)
			}
		}
	}
	return ""
}

// tellLog prints what a log says.
func tellLog(s *show.Screen, l *logged) {
	if l == nil {
		return
	}
	s.Field("log", "%s: %s, signed", l.Name, show.Plural(int(l.Size), "entry"))
	s.Field("", "key %s", l.Key)
	if l.Witnesses > 0 {
		s.Field("", "cosigned by %d of %s", l.Cosigned, show.Plural(l.Witnesses, "witness"))
	}
	switch {
	case !l.Birth:
		s.Field("", "it says nothing of this federation")
	case l.Entries == 0:
		s.Field("", "it has the federation's birth, and no head yet")
	default:
		s.Field("", "it has the federation's birth, and on %s a head of %s, which %s", l.Day,
			show.Plural(int(l.Entries), "entry"), "does not contradict what is here")
	}
	if l.Ended {
		s.Field("", "and its end")
	}
}
