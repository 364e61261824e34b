package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
)

// This file reads all of a record to find what is damaged, takes back from a backup what is, and
// has an operator say which of two histories stands.

// Checked says what reading all of a federation has found.
type Checked struct {
	ID      string `json:"id"`
	Entries int    `json:"entries"` // that there are, in any copy
	// Missing are the numbers of decisions that no copy has, named by a later one or not yet.
	Missing []chain.Range `json:"missing,omitempty"`
	// Head is the signed note of the newest head, empty if there is none.
	Head string `json:"head,omitempty"`
	// Problems say what is damaged, and Forks list the histories if there is more than one.
	// Notes say what this node has put back, and what another copy has.
	Problems []string  `json:"problems,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
	Forks    []History `json:"forks,omitempty"`
}

// History is one of several that copies of a federation's decisions have.
type History struct {
	Last    string    `json:"last"` // hash of its last line, by which it is chosen
	Entries int       `json:"entries"`
	From    uint64    `json:"from"` // the first number that it does not share with all others
	Round   uint64    `json:"round"`
	Node    string    `json:"node"` // that wrote its last entry
	Time    time.Time `json:"time"`
}

// Check reads everything of a federation that there is, and mends this node's file: its definition,
// all entries in JetStream and in this node's file, and each object that the definition and the
// newest state name. Damage is not an error. It fails with [ErrUnavailable].
func (r *Records) Check(ctx context.Context, id string, named Named) (out Checked, err error) {
	out.ID = id
	found := func(err error) error {
		if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			out.Problems = append(out.Problems, err.Error())
		}
		return nil
	}
	d, err := r.definition(ctx, id)
	if err != nil {
		return out, found(err)
	}
	o, err := r.own(ctx, id)
	if err != nil {
		return out, found(err)
	}
	copies, _, err := r.copies(ctx, o)
	if err != nil {
		return out, err
	}
	c, err := o.join(copies...)
	if errors.Is(err, ErrDamaged) {
		out.Forks = histories(o, copies)
	}
	if err != nil {
		return out, found(err)
	}
	out.Entries = len(c.Lines(0))
	if h, err := c.Head(); err != nil {
		out.Problems = append(out.Problems, err.Error())
	} else if note, err := chain.SignHead(h, o.key); err == nil {
		out.Head = string(note)
	}
	out.Missing = c.Gaps()
	if bad := c.Bad[1]; bad > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("this node's file had %d damaged lines", bad))
	}
	if err := o.fill(c); err != nil {
		return out, err
	}
	streamed := make(map[string]bool)
	for line := range bytes.SplitSeq(copies[2], []byte("\n")) {
		streamed[string(line)] = true
	}
	between, end := 0, 0
	for _, line := range c.Lines(0) {
		if end++; streamed[string(line)] {
			between, end = between+end-1, 0
		}
	}
	if between > 0 { // it stays so, since a stream only grows
		out.Notes = append(out.Notes, fmt.Sprintf("JetStream lacks %d of %d decisions, which the nodes' "+
			"own files have", between, out.Entries))
	}
	if end > 0 {
		out.Problems = append(out.Problems, fmt.Sprintf("JetStream lacks the last %d decisions; the "+
			"next claim puts them back from the nodes' own files", end))
	}
	return out, r.checkObjects(ctx, d, c.Last(), named, found)
}

// checkObjects reads the objects that a definition and the last entry name.
func (r *Records) checkObjects(ctx context.Context, d *Definition, last *chain.Entry, named Named,
	found func(error) error,
) error {
	refs := slices.Concat(d.Keys, d.Names, []*Ref{d.RosterAt, d.Model, d.Before})
	if d.Forgotten != nil {
		refs = slices.Concat(d.Keys, d.Names, []*Ref{d.RosterAt, d.Forgotten.Ledger})
	} else if last.State != nil {
		state := refOf(last.State)
		b, err := r.Get(ctx, d.ID, state)
		if err == nil {
			var more []*Ref
			more, err = named(b)
			refs = append(refs, more...)
		}
		// A newer state may have taken its place since.
		if now, failed := r.newest(ctx, d.ID); failed == nil && err != nil &&
			now.entry.Number != last.Number {
			return nil
		}
		if err := found(err); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		if ref == nil {
			continue
		}
		o := r.archive
		if d.Forgotten == nil {
			own, err := r.objects(ctx, d.ID)
			if err != nil {
				return err
			}
			o = r.in(own, ref)
		}
		_, err := r.get(ctx, o, d.ID, ref)
		if errors.Is(err, ErrMissing) && last.State != nil {
			if now, failed := r.newest(ctx, d.ID); failed == nil && now.entry.Number != last.Number {
				continue
			}
		}
		if err := found(err); err != nil {
			return err
		}
	}
	return nil
}

// copies returns all lines of a federation that the definition, this node's file, JetStream and the
// other nodes have, in this order, and JetStream's last entry.
func (r *Records) copies(ctx context.Context, o *own) (all [][]byte, last streamed, err error) {
	had := new(chain.Reading)
	if o.file != nil {
		if had, err = o.file.Read(); err != nil {
			return nil, last, unavailable(err)
		}
	}
	if last, err = r.lastDecided(ctx, o.id); err != nil {
		return nil, last, err
	}
	lines, err := r.decidedFrom(ctx, o.id, 0, last)
	if err != nil {
		return nil, last, err
	}
	all = [][]byte{o.birth, had.Bytes, lines}
	if r.folder != "" && !r.alone {
		all = append(all, r.ask(ctx, o, 0)...)
	}
	return all, last, nil
}

// histories describes the histories that copies have.
func histories(o *own, copies [][]byte) (out []History) {
	all := chain.Histories(o.id, o.public(), copies...)
	shared := len(all[0])
	for _, lines := range all[1:] {
		k := 0
		for k < min(shared, len(lines)) && bytes.Equal(all[0][k], lines[k]) {
			k++
		}
		shared = k
	}
	for _, lines := range all {
		last, err := chain.Parse(lines[len(lines)-1])
		if err != nil {
			continue
		}
		h := History{Last: chain.HashOf(lines[len(lines)-1]).String(), Entries: len(lines),
			Round: last.Round, Node: last.Node, Time: last.Time}
		if first, err := chain.Parse(lines[min(shared, len(lines)-1)]); err == nil {
			h.From = first.Number
		}
		out = append(out, h)
	}
	return out
}

// ErrHistory: no copy has a history that ends with the line that was named.
var ErrHistory = errors.New("record: no history ends like that; see hushsumd record check")

// Choose has one of several histories of a federation stand, by the hash of its last line. A new
// segment begins, which names what the others have; its rounds count as begun. The lines of the
// others stay in the nodes' files, as evidence.
func (r *Records) Choose(ctx context.Context, id, last, by string) error {
	o, err := r.own(ctx, id)
	if err != nil {
		return err
	}
	copies, at, err := r.copies(ctx, o)
	if err != nil {
		return err
	}
	if _, err := o.join(copies...); !errors.Is(err, ErrDamaged) { // what is lost makes no history
		return ErrHistory
	}
	all := chain.Histories(o.id, o.public(), copies...)
	chosen := slices.IndexFunc(all, func(lines [][]byte) bool {
		return chain.HashOf(lines[len(lines)-1]).String() == last
	})
	if len(all) < 2 || chosen < 0 {
		return ErrHistory
	}
	shared := histories(o, copies)[0].From
	var kept [][]byte
	highest, round := uint64(0), uint64(0)
	var newest *chain.Entry
	for k, lines := range all {
		for _, line := range lines {
			e, err := chain.Parse(line)
			if err != nil {
				return err
			}
			highest, round = max(highest, e.Number), max(round, e.Round)
			if k == chosen {
				if newest = e; e.Number < shared {
					kept = append(kept, line)
				}
			}
		}
	}
	c, err := o.join(bytes.Join(kept, []byte("\n")))
	if err != nil {
		return err
	}
	names, err := r.names(ctx, id)
	if err != nil {
		return err
	}
	h := &Hold{records: r, id: id, own: o, names: names, chain: c, sequence: at.sequence}
	e := c.Next(chain.Setback, highest+1, true)
	e.State, e.Model, e.Unknown = newest.State, newest.Model, newest.Unknown
	e.Ledger, e.Spent, e.Session, e.Round = newest.Ledger, newest.Spent, newest.Session, round
	return h.write(ctx, e, []Line{{Event: eventChosen, Round: int(round), Note: fmt.Sprintf(
		"of %d histories that of node %s, %d entries; by %s", len(all), newest.Node, newest.Number+1,
		by)}})
}
