package runner

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/record"
)

// This file adds sums of one message: a committee, which asks and answers as parties do, and
// objects next to the state.

func (r *Runner) peer(p Peer) *peer {
	if p.Member {
		return &r.members[p.Index]
	}
	return &r.parties[p.Index]
}

// connected takes in what a party or a member says when it asks. It tells of no round: that the
// record was set back shows by a signed head, see [Runner.Hear], and not by anybody's word.
func (r *Runner) connected(p Peer, ask *exchange.Ask) {
	now := r.now()
	r.peer(p).heard = r.clock.time()
	r.drive.Connected(now, p, drive.Hello{Sessions: ask.Sessions, Least: ask.Least})
	r.drive.Said(now, p, drive.Said{Absent: ask.Absent, Offer: ask.Offer})
}

func (r *Runner) heard(p Peer) {
	r.peer(p).heard = r.clock.time()
	r.drive.Heard(r.now(), p)
}

// object is a long value that the state names.
type object struct {
	Name string
	Ref  *record.Ref
}

// keep stores long values, once, and has those that are no longer needed deleted after the
// decision.
func (r *Runner) keep(ctx context.Context, objects []drive.Object, needed []string) error {
	for _, o := range objects {
		if r.find(o.Name) != nil {
			continue
		}
		size, err := o.Body.WriteTo(io.Discard)
		if err != nil {
			return err
		}
		ref, err := r.Hold.PutFrom(ctx, o.Name, int(size), o.Body)
		if err != nil {
			return err
		}
		r.objects = append(r.objects, object{o.Name, ref})
	}
	r.forget(func(had *object) bool { return !slices.Contains(needed, had.Name) })
	return nil
}

// find finds an object by its name; nil: there is none.
func (r *Runner) find(name string) *object {
	for i := range r.objects {
		if o := &r.objects[i]; o.Name == name {
			return o
		}
	}
	return nil
}

// forget has objects deleted with the next decision.
func (r *Runner) forget(is func(*object) bool) {
	r.objects = slices.DeleteFunc(r.objects, func(o object) bool {
		gone := is(&o)
		if gone {
			r.spent = append(r.spent, o.Ref)
		}
		return gone
	})
}

// stored opens an object that the state names.
func (r *Runner) stored(name string) (io.ReadCloser, error) {
	o := r.find(name)
	if o == nil {
		return nil, fmt.Errorf("%w: the state names no %s", record.ErrRecord, name)
	}
	b, err := r.Hold.Get(context.Background(), o.Ref)
	return io.NopCloser(bytes.NewReader(b)), err
}

// committeeStatus returns the committee's status as people see it, nil if there is none.
func (r *Runner) committeeStatus(overdue bool) (out []PartyStatus) {
	for k := range r.members {
		at := r.drive.At(Peer{Index: k, Member: true})
		p := PartyStatus{Name: r.sums.Committee.Name(k), Awaited: at.Due}
		here := at.Here && r.drive.Status().Ended == ""
		p.State = stateOf(here, at.Ever || r.seenMembers[k], overdue && at.Due)
		out = append(out, p)
	}
	return out
}
