package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/chain"
)

// This file erases what a federation that has ended no longer needs, by an operator's order: first
// its models and states, and then all that has a name.

// ErrForgotten: the federation ended, and an operator had its models and states erased.
var ErrForgotten = errors.New("record: the federation was forgotten by an operator's order")

// ErrKept: the federation was not forgotten, so its names are needed.
var ErrKept = errors.New("record: names are erased of a federation that was forgotten; forget it " +
	"first")

// Forgotten says what was erased of a federation. Its chain of decisions stays, and so does its
// definition, until its names are erased too.
type Forgotten struct {
	Name string    `json:"name"` // of its job
	Time time.Time `json:"time"`
	// Ledger says where the text of what its parties have spent is stored, for a federation that
	// continues it; nil: nothing was spent, or the names are erased.
	Ledger *Ref `json:"ledger,omitempty"`
	Names  bool `json:"names,omitempty"` // are erased
	// Rounds is how many were begun, and Spent bounds what any party has spent, nil without noise.
	Rounds int               `json:"rounds,omitempty"`
	Spent  *accounting.Claim `json:"spent,omitempty"`
}

// Forget erases the models and states of a federation that has ended, by an operator's order.
// ledger is the text of what its parties have spent, nil if nothing. The hold is lost then.
func (h *Hold) Forget(ctx context.Context, name string, ledger []byte, by string) (err error) {
	if h.lost != nil {
		return h.lost
	}
	gone := &Forgotten{Name: name, Time: time.Now().UTC()}
	if ledger != nil {
		gone.Ledger, err = h.records.putBytes(ctx, h.records.archive, h.id, kindLedger+h.id, ledger)
		if err != nil {
			return err
		}
	}
	if last := h.chain.Last(); last.Spent != nil {
		gone.Spent = new(accounting.Claim)
		if err := json.Unmarshal(last.Spent, gone.Spent); err != nil {
			return fmt.Errorf("%w: what was spent", ErrRecord)
		}
	}
	gone.Rounds = int(h.Round)
	err = h.records.redefine(ctx, h.id, false, func(d *Definition) {
		d.Forgotten, d.Model, d.Before = gone, nil, nil
	})
	if err != nil {
		return err
	}
	e := h.chain.Next(chain.Forget, 0, false)
	e.State, e.Model = nil, nil
	if err := h.write(ctx, e, []Line{{Event: eventForgotten, Note: by}}); err != nil {
		return err
	}
	h.lost = ErrForgotten
	return h.records.erase(ctx, h.id)
}

// erase deletes the objects of a federation that was forgotten, with their stream.
func (r *Records) erase(ctx context.Context, id string) error {
	r.mutex.Lock()
	delete(r.buckets, id)
	r.mutex.Unlock()
	err := r.retry(ctx, func(ctx context.Context) error {
		err := r.js.DeleteObjectStore(ctx, bucketObjects+id[:16])
		if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// forgotten fails with [ErrForgotten] if a federation was. It finishes what was interrupted.
func (r *Records) forgotten(ctx context.Context, id string) error {
	d, err := r.definition(ctx, id)
	if err != nil || d.Forgotten == nil {
		return err
	}
	last, err := r.lastDecided(ctx, id)
	if err != nil {
		return err
	}
	if e, err := chain.Parse(last.line); err != nil || e.Kind != chain.Forget {
		if err := r.amend(ctx, id, chain.Forget, ""); err != nil {
			return err
		}
	}
	if err := r.erase(ctx, id); err != nil {
		return err
	}
	return ErrForgotten
}

// Settle finishes what an interrupted order to forget a federation has left, and has this node keep
// a copy of its decisions.
func (r *Records) Settle(ctx context.Context, id string) error {
	if _, err := r.own(ctx, id); err != nil {
		return err
	}
	if err := r.forgotten(ctx, id); !errors.Is(err, ErrForgotten) {
		return err
	}
	return nil
}

// redefine changes a definition, in the record and in this node's copy; overwrite has JetStream
// overwrite the older one on the disk.
func (r *Records) redefine(
	ctx context.Context, id string, overwrite bool, change func(*Definition),
) error {
	var d *Definition
	err := r.retry(ctx, func(ctx context.Context) error {
		entry, err := r.definitions.Get(ctx, id)
		if err != nil {
			return err
		}
		d = new(Definition)
		if err := json.Unmarshal(entry.Value(), d); err != nil {
			return fmt.Errorf("%w: the definition of %s", ErrRecord, id)
		}
		change(d)
		b, err := json.Marshal(d)
		switch {
		case err != nil:
		case !overwrite:
			_, err = r.definitions.Update(ctx, id, b, entry.Revision())
		default: // from a node's copy, and the entries, it would come back
			if err = r.declared.SecureDeleteMsg(ctx, entry.Revision()); err == nil {
				_, err = r.definitions.Create(ctx, id, b)
			}
		}
		return err
	})
	if err != nil {
		return unavailable(err)
	}
	if r.folder == "" {
		return nil
	}
	return r.copyDefinition(d)
}

// Ledger reads what the parties of a forgotten federation have spent, nil if that is nothing, or
// erased.
func (r *Records) Ledger(ctx context.Context, d *Definition) ([]byte, error) {
	if d.Forgotten == nil || d.Forgotten.Ledger == nil {
		return nil, nil
	}
	return r.get(ctx, r.archive, d.ID, d.Forgotten.Ledger)
}

// ForgetNames erases all of a forgotten federation that has a name of a party, a member or an
// operator: its definition but for the name of its job, its ledger, and the key of the lines for
// people. What is left are decisions about numbers. It fails with [ErrKept].
func (r *Records) ForgetNames(ctx context.Context, id string) error {
	d, err := r.definition(ctx, id)
	if err != nil {
		return err
	}
	if d.Forgotten == nil {
		return ErrKept
	}
	if !d.Forgotten.Names {
		if err := r.amend(ctx, id, chain.Forget, orderNames); err != nil {
			return err
		}
	}
	// Whatever there is, also what came back from a backup since.
	var names []string
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		names, err = r.archive.names(ctx)
		return err
	})
	if err != nil {
		return unavailable(err)
	}
	for _, name := range names {
		if strings.Contains(name, id) && !strings.HasPrefix(name, kindKey) {
			if err := r.overwrite(ctx, r.archive, name); err != nil {
				return unavailable(err)
			}
		}
	}
	return r.redefine(ctx, id, true, (*Definition).eraseNames)
}

// eraseNames takes out of a definition what has names.
func (d *Definition) eraseNames() {
	d.Text, d.Roster, d.Committee, d.Succession, d.RosterAt, d.Names = nil, nil, nil, nil, nil, nil
	d.Forgotten.Ledger, d.Forgotten.Names = nil, true
}

// asForgotten returns a definition from a backup, without what an operator has had erased since, as
// the entries say that there are.
func (r *Records) asForgotten(ctx context.Context, d Definition) (*Definition, error) {
	var from uint64
	for {
		next, err := r.nextDecided(ctx, d.ID, from+1)
		if err != nil || next.sequence == 0 {
			return &d, err
		}
		from = next.sequence
		e, err := chain.Parse(next.line)
		if err != nil || e.Kind != chain.Forget {
			continue
		}
		if d.Forgotten == nil {
			d.Forgotten = &Forgotten{Name: d.ID[:16], Time: e.Time}
			d.Model, d.Before = nil, nil
		}
		if e.Order == orderNames {
			d.eraseNames()
		}
	}
}

// orderNames is the order of an entry by which names were erased.
const orderNames = "names"

// overwrite deletes an object, and has JetStream overwrite its bytes on the disk.
func (r *Records) overwrite(ctx context.Context, o *bucket, name string) error {
	return r.retry(ctx, func(ctx context.Context) error {
		info, err := o.GetInfo(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, subject := range []string{o.pieces(info.NUID), o.subject(name)} {
			for {
				m, err := o.stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(subject))
				if errors.Is(err, jetstream.ErrMsgNotFound) {
					break
				}
				if err == nil {
					err = o.stream.SecureDeleteMsg(ctx, m.Sequence)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// amend adds an entry to the chain of a federation that nobody leads.
func (r *Records) amend(ctx context.Context, id string, kind chain.Kind, order string) error {
	o, err := r.own(ctx, id)
	if err != nil {
		return err
	}
	u, err := r.union(ctx, o, true)
	if err != nil {
		return err
	}
	h := &Hold{records: r, id: id, own: o, chain: u.Chain, sequence: u.last.sequence}
	if err := h.mend(ctx, &u); err != nil {
		return err
	}
	e := u.Next(kind, 0, false)
	e.Order = order
	return h.write(ctx, e, nil)
}

// refresh takes over a definition that has changed, since its federation was forgotten.
func (r *Records) refresh(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if d, err := r.definition(ctx, id); err == nil && d.Forgotten != nil {
		_ = r.copyDefinition(d) // else at the next start
	}
}
