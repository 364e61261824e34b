package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/hushsum/hushsum/internal/chain"
)

// This file has nodes keep copies of each other's decisions, apart from JetStream. What a message
// says is believed for its signature alone.

// subjectTold is the subject, with a federation after it, of an entry that may be told.
const subjectTold = "hushsum.told."

// hear keeps what other nodes tell, and answers those that ask for lines.
func (r *Records) hear() error {
	conn := r.js.Conn()
	told, err := conn.Subscribe(subjectTold+"*", func(m *nats.Msg) {
		if o := r.ownedBy(strings.TrimPrefix(m.Subject, subjectTold)); o != nil {
			e, err := o.heardOf(m.Data) // what fails, a claim reads
			switch {
			case errors.Is(err, errBetween):
				r.catchUp(o)
			case e != nil && e.Kind == chain.Forget:
				r.refresh(o.id)
			}
		}
	})
	if err != nil {
		return err
	}
	lines, err := conn.Subscribe(subjectLines+"*", r.reply)
	r.heard = append(r.heard, told, lines)
	return err
}

// catchUp has this node's file take what it was not told: of a leader that ended before it told, or
// while this node was not connected.
func (r *Records) catchUp(o *own) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if u, err := r.union(ctx, o, false); err == nil {
		_ = o.fill(u.Chain) // what fails, a claim reads
	}
}

// ownedBy returns what this node has of a federation that it knows, nil of another.
func (r *Records) ownedBy(id string) *own {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.owned[id]
}

// tell sends an entry to the other nodes, which nobody waits for.
func (r *Records) tell(id string, line []byte) {
	if r.folder != "" {
		_ = r.js.Conn().Publish(subjectTold+id, line)
	}
}

// union reads all entries of a federation that there are: of this node's file, of the stream, and,
// where these lack any or all says so, of the other nodes' files.
func (r *Records) union(ctx context.Context, o *own, all bool) (u union, err error) {
	had := new(chain.Reading)
	if o.file != nil {
		if had, err = o.file.Read(); err != nil {
			return u, unavailable(err)
		}
	}
	if u.last, err = r.lastDecided(ctx, o.id); err != nil {
		return u, err
	}
	copies := [][]byte{o.birth, had.Bytes, u.last.line}
	if u.Chain, err = o.join(copies...); err != nil {
		return u, err
	}
	if u.Bad[2] > 0 {
		return u, damaged("the newest decision in JetStream of %.16s… is not signed", o.id)
	}
	u.bad = u.Bad[1]
	add := func(lines ...[]byte) (err error) {
		copies = append(copies, lines...)
		u.Chain, err = o.join(copies...)
		return err
	}
	if len(u.Lost) > 0 {
		lines, err := r.decidedFrom(ctx, o.id, u.Lost[0].From, u.last)
		if err == nil {
			err = add(lines)
		}
		if err != nil {
			return u, err
		}
	}
	if r.folder != "" && !r.alone && (all || len(u.Lost) > 0) {
		from := u.Last().Number + 1
		if len(u.Lost) > 0 {
			from = u.Lost[0].From
		}
		if copies := r.ask(ctx, o, from); len(copies) > 0 {
			if err := add(copies...); err != nil {
				return u, err
			}
		}
	}
	return u, nil
}

// union is a chain with what it was made from.
type union struct {
	*chain.Chain
	bad  int // damaged lines of the file
	last streamed
}

// behind returns the lines that the stream lacks at its end.
func (u *union) behind() [][]byte {
	if u.last.sequence == 0 {
		return u.Lines(0)
	}
	e, err := chain.Parse(u.last.line)
	if err != nil || e.Number >= u.Last().Number {
		return nil
	}
	return u.Lines(e.Number + 1)
}

// Chain reads the decisions of a federation from all copies that this node has. It fails with
// [ErrNone], [ErrDamaged] or [ErrUnavailable].
func (r *Records) Chain(ctx context.Context, id string) (*chain.Chain, error) {
	o, err := r.own(ctx, id)
	if err != nil {
		return nil, err
	}
	u, err := r.union(ctx, o, false)
	return u.Chain, err
}

// Head returns the newest head of a federation, with its signed note.
func (r *Records) Head(ctx context.Context, id string) (*chain.Head, []byte, error) {
	c, err := r.Chain(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return r.HeadOf(ctx, id, c)
}

// HeadOf returns the head of a federation's chain, with its signed note. It fails with
// [chain.ErrLost].
func (r *Records) HeadOf(ctx context.Context, id string, c *chain.Chain) (
	*chain.Head, []byte, error,
) {
	h, err := c.Head()
	if err != nil {
		return nil, nil, err
	}
	o, err := r.own(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	b, err := chain.SignHead(h, o.key)
	return h, b, err
}

// Public returns the public half of the key that a federation's entries and heads are signed under,
// as its birth names it.
func (r *Records) Public(ctx context.Context, id string) ([]byte, error) {
	d, err := r.definition(ctx, id)
	if err != nil {
		return nil, err
	}
	birth, err := chain.Parse(d.Birth)
	if err == nil && birth.Kind != chain.Birth {
		err = chain.ErrEntry
	}
	if err == nil {
		_, err = chain.Open(d.Birth, id, birth.Key[:])
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the first entry of %.16s…: %w", ErrRecord, id, err)
	}
	return birth.Key[:], nil
}

// later is a head that somebody has, with the last round that was begun by then.
type later struct {
	*chain.Head
	begun uint64
}

// tellLater tells the record of a head that somebody has of a federation, which its key has signed,
// and of the last round that was begun by then. The next claim names the head if the
// record has nothing of it, and counts the round as begun.
func (r *Records) tellLater(id string, head *chain.Head, begun uint64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	const most = 16
	all := append(r.later[id], later{head, begun})
	slices.SortFunc(all, func(a, b later) int { return b.Compare(a.Head) })
	r.later[id] = all[:min(most, len(all))]
}

// laterThan returns the heads that somebody has and a chain does not continue, and the last round
// that was begun by then.
func (r *Records) laterThan(id string, c *chain.Chain) (heads []*chain.Head, begun uint64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, h := range r.later[id] {
		if c.Behind(h.Head) != nil {
			heads, begun = append(heads, h.Head), max(begun, h.begun)
		}
	}
	return heads, begun
}

// Known tells the hold of a head that somebody has, which the federation's key has signed, and of
// the last round that was begun by then. If the hold has nothing of the head then another node
// leads, or the record was set back: the hold is lost. Known fails with [ErrLost], or with
// [ErrDamaged]; the next claim begins a segment that names the head.
func (h *Hold) Known(ctx context.Context, head *chain.Head, begun uint64) error {
	if h.chain.Behind(head) == nil {
		return nil
	}
	if err := h.Keep(ctx); err != nil {
		return err
	}
	h.records.tellLater(h.id, head, begun)
	h.lost = &Damage{fmt.Sprintf("somebody has entry %d of segment %d, and the record has not",
		head.Size, head.Segment), adviceNode}
	return h.lost
}

// Chain returns the chain up to the last entry, which grows with each decision.
func (h *Hold) Chain() *chain.Chain { return h.chain }

// Heal gives this node's file lines of a federation that somebody has. The next claim puts them
// back where JetStream lacks them.
func (r *Records) Heal(ctx context.Context, id string, lines []byte) (added int, err error) {
	o, err := r.own(ctx, id)
	if err != nil || o.file == nil {
		return 0, err
	}
	had, err := o.file.Read()
	if err != nil {
		return 0, unavailable(err)
	}
	c, err := o.join(o.birth, had.Bytes)
	if err != nil {
		return 0, err
	}
	all, err := o.join(o.birth, had.Bytes, lines)
	if err != nil {
		return 0, err
	}
	if added = len(all.Lines(0)) - len(c.Lines(0)); added > 0 {
		err = o.fill(all)
	}
	return added, err
}
