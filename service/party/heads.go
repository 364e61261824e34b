package party

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/internal/receipt"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/store"
)

// This file has what a party keeps of the federation's chain of decisions. It accepts no answer
// that does not follow from the newest head that it has accepted before, and so one party is enough
// to notice that the server's record was set back.

// Errors of heads.
var (
	// ErrKey: the federation's decisions are signed under another key than the one that the folder has
	// pinned. Ask the operator why.
	ErrKey = errors.New("party: the key that signs the federation's decisions is another one than " +
		"when this folder first heard of them; ask the server's operator why, and do not continue")
	// ErrHead: the server's decisions do not follow from those that this party has accepted: its
	// record was set back, and does not say so yet, or it has two histories.
	ErrHead = errors.New("party: the server's decisions do not follow from those that this party " +
		"has accepted")
)

const (
	fileChain      = "chain"
	folderEvidence = "evidence"
	fewLines       = 1000     // parties, up to which each keeps all lines
	mostChain      = 64 << 20 // bytes of all lines
	mostEvidence   = 100      // files
)

// accepted holds what a party has accepted of the chain of decisions, as its state has it.
type accepted struct {
	Key  []byte `json:"key"`
	Note []byte `json:"note"` // of the newest head
	Line []byte `json:"line"` // that it ends with
	// Begun is the line of the last round that was begun by then.
	Begun []byte `json:"begun"`
}

// heads has the newest head, and the lines up to it.
type heads struct {
	id     string
	server *Server
	folder string
	log    func(message string, args ...any)
	few    bool // lines are kept

	mutex   sync.Mutex // guards what follows
	has     accepted
	head    *chain.Head // nil: none was accepted
	round   uint64      // of Begun
	file    *chain.File
	chain   *chain.Chain // of the file; nil: it has none
	fetches sync.WaitGroup
	busy    bool // lines are being fetched
}

// loadHeads returns the heads of a party, with what was saved with its state; nil if nobody has
// said which key signs the federation's decisions. It fails with [ErrKey], or with store.ErrStore.
func (r *running) loadHeads(saved []byte) (*heads, error) {
	f := r.Federation
	h := &heads{
		id:     f.ID,
		server: r.Server,
		folder: r.Folder,
		log:    r.Log.Warn,
		few:    f.Settled.Roster().Len() <= fewLines,
		has:    accepted{Key: f.Key},
	}
	if saved != nil {
		var had accepted
		if err := strict.JSON(saved, &had); err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrStore, err)
		}
		if f.Key != nil && !f.Key.Equal(ed25519.PublicKey(had.Key)) {
			return nil, ErrKey
		}
		h.has = had
	}
	if h.has.Key == nil {
		return nil, nil
	}
	if h.has.Note != nil {
		var err error
		if h.head, err = h.open(h.has.Note); err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrStore, err)
		}
	}
	if e, err := chain.Open(h.has.Begun, h.id, h.has.Key); err == nil {
		h.round = e.Round
	}
	return h, h.openLines()
}

// openLines opens the file of lines.
func (h *heads) openLines() (err error) {
	if !h.few {
		return nil
	}
	if h.file, err = chain.OpenFile(filepath.Join(h.folder, fileChain)); err != nil {
		return err
	}
	read, err := h.file.Read()
	if err != nil {
		return errors.Join(err, h.file.Close())
	}
	h.chain, _ = chain.Union(h.id, h.has.Key, read.Bytes) // what it lacks is fetched again
	return nil
}

// close gives the lines free, once they are no longer fetched.
func (h *heads) close() {
	if h == nil {
		return
	}
	h.fetches.Wait()
	if h.file != nil {
		_ = h.file.Close()
	}
}

// save returns what is saved with a state.
func (h *heads) save() []byte {
	if h == nil {
		return nil
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	b, err := json.Marshal(h.has)
	if err != nil {
		panic("party: " + err.Error()) // of bytes
	}
	return b
}

// note returns the note of the newest head, nil if there is none.
func (h *heads) note() []byte {
	if h == nil {
		return nil
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.has.Note
}

func (h *heads) open(note []byte) (*chain.Head, error) {
	return chain.OpenHead(note, h.id, h.has.Key)
}

// take takes what an answer says, to a question that told the newest head. It fails with [ErrHead]
// unless the answer's head is the same, or a later one that continues it: then nothing of the
// answer counts.
func (h *heads) take(ctx context.Context, told *exchange.Told) error {
	if h == nil {
		return nil
	}
	if told == nil {
		return fmt.Errorf("%w: it tells no head; it may be starting", ErrHead)
	}
	head, err := h.open(told.Note)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHead, err)
	}
	line := told.Line
	if line == nil {
		if line, err = h.lastLine(ctx, head); err != nil {
			return err
		}
	}
	e, err := chain.Open(line, h.id, h.has.Key)
	if err != nil || chain.HashOf(line) != head.Last {
		return fmt.Errorf("%w: its head does not end with its line", ErrHead)
	}
	h.mutex.Lock()
	had := h.head
	h.mutex.Unlock()
	switch {
	case had == nil || *head == *had:
	case head.Contradicts(had):
		return h.refuse(told.Note, "it has two versions of entry %d of segment %d", head.Size-1,
			head.Segment)
	case head.Compare(had) < 0:
		return h.refuse(told.Note, "it has %d entries of segment %d, after %d of segment %d", head.Size,
			head.Segment, had.Size, had.Segment)
	case head.Segment == had.Segment:
		if err := chain.CheckConsistency(had, head, told.Proof); err != nil {
			return h.refuse(told.Note, "%v", err)
		}
	default:
		if err := h.follow(ctx, had, head); err != nil {
			return err
		}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.head, h.has.Note, h.has.Line = head, told.Note, line
	if e.Round >= h.round {
		h.round, h.has.Begun = e.Round, line
	}
	return nil
}

// follow fails with [ErrHead] unless the chain up to a head of a later segment says what became of
// the one that was accepted.
func (h *heads) follow(ctx context.Context, had, head *chain.Head) error {
	c, note, err := h.whole(ctx)
	if err != nil {
		return err
	}
	if err := c.Behind(head); err != nil {
		return h.refuse(note, "%v", err)
	}
	if err := c.Behind(had); err != nil {
		return h.refuse(note, "it begins segment %d and does not say what became of %d entries of "+
			"segment %d", head.Segment, had.Size, had.Segment)
	}
	h.log("the server says that its record was set back, or restored", "segment", head.Segment,
		"lost", fmt.Sprint(c.Lost))
	return h.rewrite(c)
}

// whole fetches the whole chain, with the note of its head.
func (h *heads) whole(ctx context.Context) (*chain.Chain, []byte, error) {
	lines, header, err := h.server.read(ctx, chainPath(h.id)+"?from=0", mostChain)
	if err != nil {
		return nil, nil, err
	}
	note, err := exchange.ParseHead(header)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	head, err := h.open(note)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	c, err := chain.Union(h.id, h.has.Key, lines)
	if err != nil {
		return nil, nil, h.refuse(note, "%v", err)
	}
	if is, err := c.Head(); err != nil || *is != *head {
		return nil, nil, h.refuse(note, "its lines do not have its head")
	}
	return c, note, nil
}

// rewrite keeps the lines of another chain in place of those that there were, which are evidence.
func (h *heads) rewrite(c *chain.Chain) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.file == nil {
		return nil
	}
	read, err := h.file.Read()
	if err == nil && h.chain != nil {
		name := fmt.Sprintf("segment-%d.chain", h.chain.Last().Segment)
		_, err = h.keep(name, read.Bytes)
	}
	if err == nil {
		err = h.file.Rewrite(read, c.Lines(0))
	}
	h.chain = c
	return err
}

// refuse fails with [ErrHead], and keeps both notes.
func (h *heads) refuse(note []byte, format string, args ...any) error {
	h.mutex.Lock()
	own := h.has.Note
	h.mutex.Unlock()
	err := fmt.Errorf("%w: %w", ErrHead, fmt.Errorf(format, args...))
	where, failed := h.keep(fmt.Sprintf("heads-%.8s.evidence", chain.HashOf(note)),
		exchange.Heads(own, note))
	if failed != nil {
		return fmt.Errorf("%w; the two heads are not kept: %w", err, failed)
	}
	return fmt.Errorf("%w; %s has both heads", err, where)
}

// keep keeps evidence in the folder.
func (h *heads) keep(name string, b []byte) (string, error) {
	folder := filepath.Join(h.folder, folderEvidence)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	// A server that goes on contradicting itself fills no disk.
	if had, err := os.ReadDir(folder); err != nil || len(had) >= mostEvidence {
		return folder, err
	}
	name = filepath.Join(folder, name)
	return name, durable.Write(name, bytes.NewReader(b))
}

// key returns the key that signs the federation's decisions, nil if it is not known.
func (h *heads) key() ed25519.PublicKey {
	if h == nil {
		return nil
	}
	return h.has.Key
}

// contradicts returns evidence if the lines that the party has do not begin as a head says; nil if
// they do, or if that cannot be told.
func (h *heads) contradicts(note []byte) *receipt.Evidence {
	if h == nil {
		return nil
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.chain == nil {
		return nil
	}
	tree, _, err := h.chain.Tree()
	if err != nil {
		return nil
	}
	e, err := receipt.Prefix(h.id, h.has.Key, note, h.has.Note, tree)
	if err != nil {
		return nil
	}
	return e
}

// chainPath is where lines of the chain are.
func chainPath(id string) string { return partyPath(id) + "/chain" }
