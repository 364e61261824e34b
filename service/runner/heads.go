package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/record"
)

// This file has what a runner tells parties of the chain of decisions, and what they tell it. A
// head that the federation's key has signed is proof that the decisions up to it were made: if the
// record lacks them it was set back, and one party that has the head is enough to show it.

// Errors of heads.
var (
	// ErrHead: what a party tells is no head that the federation's key has signed, or the lines with
	// it are not those that it ends with.
	ErrHead = errors.New("runner: what the party tells is not signed by the federation's key")
	// ErrBehind: a party has a head of decisions that the record does not have. It gives its lines of
	// them: see [Runner.Give].
	ErrBehind = errors.New("runner: the record is behind a head that a party has")
)

// mostKnown is how many notes of heads are remembered as being in the chain.
const mostKnown = 256

// heads has the chain of decisions as of the last one that was recorded.
type heads struct {
	mutex sync.Mutex
	chain *chain.Chain // nil: it has no head, and none is told
	head  *chain.Head
	note  []byte
	line  []byte
	known map[string]*chain.Head // by their notes, which the chain continues
	asked map[Peer]string        // notes whose lines a peer was asked for
}

// follow takes the head of the last entry. It is called where nothing is being recorded.
func (r *Runner) follow() {
	head, note, err := r.Hold.Head()
	h := &r.heads
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if err != nil {
		r.Log.Warn("the chain of decisions is not told to parties", "error", err.Error())
		h.head = nil
		return
	}
	own := r.Hold.Chain()
	line := own.Line(own.Last().Number)
	if h.head == nil || h.chain.Append(line) != nil {
		h.chain = own.Clone()
	}
	h.head, h.note, h.line = head, note, line
	if h.known == nil || len(h.known) >= mostKnown {
		h.known = make(map[string]*chain.Head)
	}
	h.known[string(note)] = head
}

// open opens a note.
func (r *Runner) open(note []byte) (*chain.Head, error) {
	head, err := chain.OpenHead(note, r.Federation.ID, r.Federation.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	return head, nil
}

// Told returns what the answer to a question with the note of a head says; nil: nothing.
func (r *Runner) Told(question []byte) *exchange.Told {
	h := &r.heads
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.head == nil {
		return nil
	}
	out := &exchange.Told{Note: h.note, Line: h.line}
	if older := h.known[string(question)]; older != nil && older.Size < h.head.Size {
		out.Proof, _ = h.chain.Consistency(older) // none of another segment
	}
	return out
}

// Lines returns the lines of the chain from a number on, and the note of its head; nil if there is
// no head.
func (r *Runner) Lines(from uint64) (lines [][]byte, note []byte) {
	h := &r.heads
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.head == nil {
		return nil, nil
	}
	return h.chain.Lines(from), h.note
}

// Head returns the note of the head, nil if there is none.
func (r *Runner) Head() []byte {
	h := &r.heads
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.head == nil {
		return nil
	}
	return h.note
}

// root returns the root of the head that may be told, empty if there is none.
func (r *Runner) root() string {
	h := &r.heads
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.head == nil {
		return ""
	}
	return h.head.Root.String()
}

// isBehind fails with [ErrBehind] if the chain does not continue a head, nor says what became of
// it.
func (r *Runner) isBehind(note []byte, head *chain.Head) error {
	h := &r.heads
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.head == nil { // nothing can be said, and nothing is told
		return nil
	}
	if err := h.chain.Behind(head); err != nil {
		return fmt.Errorf("%w: %w", ErrBehind, err)
	}
	h.known[string(note)] = head
	return nil
}

// Hear takes the note of the head that a party or a member has; nil: it has none. If the record
// lacks that, Hear asks whether this runner still leads, and fails with [ErrBehind] if it does. A
// peer that does not give its lines then is taken at its head alone. Hear also fails with [ErrHead]
// and [ErrStopped].
func (r *Runner) Hear(ctx context.Context, p Peer, note []byte) error {
	if len(note) == 0 || r.Federation.Key == nil {
		return nil
	}
	h := &r.heads
	h.mutex.Lock()
	known, asked := h.known[string(note)] != nil, h.asked[p] == string(note)
	h.mutex.Unlock()
	if known {
		return nil
	}
	head, err := r.open(note)
	if err != nil {
		return err
	}
	lacks := r.isBehind(note, head)
	if lacks == nil {
		return nil
	}
	if err := r.Confirm(ctx); err != nil {
		return err
	}
	if !asked {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		if h.asked == nil {
			h.asked = make(map[Peer]string)
		}
		h.asked[p] = string(note)
		return lacks
	}
	return r.setBack(ctx, p, head, note, 0, lacks)
}

// Give takes what a party or a member has of the chain and the record lacks. This runner then leads
// no longer: whoever claims the federation next goes on from what is known. Give fails with
// [ErrHead] and [ErrStopped].
func (r *Runner) Give(ctx context.Context, p Peer, g *exchange.Given) error {
	if r.Federation.Key == nil {
		return fmt.Errorf("%w: there is no key", ErrHead)
	}
	head, err := r.open(g.Head)
	if err != nil {
		return err
	}
	begun, err := r.given(head, g.Lines)
	if err != nil {
		return err
	}
	lacks := r.isBehind(g.Head, head)
	if lacks == nil {
		return nil
	}
	if err := r.Confirm(ctx); err != nil {
		return err
	}
	lines := bytes.Join(g.Lines, []byte{'\n'})
	added, err := r.Records.Heal(ctx, r.Federation.ID, lines)
	if added > 0 {
		r.Log.Info("lines of the chain are back", "party", r.nameOf(p), "lines", added)
	}
	if err != nil { // of another history, or this node keeps no file
		r.proof(begun, "lines", p, lines)
	}
	return r.setBack(ctx, p, head, g.Head, begun, lacks)
}

// given verifies lines that a head ends with, and returns the last round that was begun by them.
func (r *Runner) given(head *chain.Head, lines [][]byte) (begun uint64, err error) {
	if len(lines) == 0 || chain.HashOf(lines[len(lines)-1]) != head.Last {
		return 0, fmt.Errorf("%w: the head does not end with the last line", ErrHead)
	}
	for _, line := range lines {
		e, err := chain.Open(line, r.Federation.ID, r.Federation.Key)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrHead, err)
		}
		begun = max(begun, e.Round)
	}
	return begun, nil
}

// setBack has the next claim name a head that the record lacks, and count the rounds up to the last
// that was begun by it; 0: nobody knows which that was, and each decision counts as a round.
func (r *Runner) setBack(
	ctx context.Context, p Peer, head *chain.Head, note []byte, begun uint64, lacks error,
) error {
	h := &r.heads
	h.mutex.Lock()
	missing, own := head.Size, h.note
	if h.head != nil && h.head.Segment == head.Segment && head.Size > h.head.Size {
		missing -= h.head.Size
	}
	h.mutex.Unlock()
	err := r.host.With(ctx, operator, func(lead drive.Lead, _ drive.Time) error {
		if begun == 0 {
			begun = lead.Status().Round + missing
		}
		begun = min(begun, uint64(r.Federation.Settled.Rounds()))
		err := r.Hold.Known(ctx, head, begun)
		switch {
		case err == nil: // it is known by now
			r.follow()
		case !errors.Is(err, record.ErrUnavailable):
			r.host.Stop(fmt.Errorf("%w: %v", lacks, err)) // another claim mends it
		}
		return err
	})
	if !errors.Is(err, record.ErrDamaged) {
		return err
	}
	where := r.proof(begun, "heads", p, exchange.Heads(own, note))
	r.Log.Error("the record was set back: a party has a later head", "party", r.nameOf(p), "begun",
		begun, "error", lacks.Error(), "heads", where)
	return nil
}

// proof keeps evidence about a head that a peer has told, and returns where.
func (r *Runner) proof(round uint64, what string, p Peer, b []byte) string {
	if r.Evidence == nil {
		return ""
	}
	kind := "party"
	if p.Member {
		kind = "member"
	}
	where, err := r.Evidence(round, fmt.Sprintf("%s-%s-%d", what, kind, p.Index), b)
	if err != nil {
		r.Log.Error("evidence is not kept", "error", err.Error())
	}
	return where
}

// begins counts what the chain says was begun: the model has no sums of rounds that the state does
// not have, and all of them are spent.
func (r *Runner) begins() {
	r.follow()
	if at := r.drive.Status(); r.Hold.Round > at.Round && r.missing == nil && at.Ended == "" {
		r.drive.Behind(r.Hold.Round)
		r.orders = max(r.orders, r.Hold.Number()) + 1
		r.missing = fmt.Errorf("%w, of decisions that it does not have", ErrBehind)
	}
}

// told is a recorder that tells what it has recorded.
type told struct{ recorder }

// Save is the method of host.Record.
func (t told) Save(ctx context.Context, lead drive.Lead) error {
	err := t.recorder.Save(ctx, lead)
	if err == nil {
		t.r.follow()
	}
	return err
}
