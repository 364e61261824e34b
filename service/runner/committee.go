package runner

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/record"
)

// This file adds sums of one message: a committee, which asks and answers as parties do, and
// objects next to the state.

// leader decides: a drive.Server, or with a committee a drive.Committee.
type leader interface {
	Tick(now drive.Time) error
	Wake() drive.Time
	Ready() (drive.Prepared, bool)
	Advance(now drive.Time) drive.Orders
	Applied(now drive.Time, round uint64, err error)
	Status() drive.Status
	Behind(begun uint64)
	Ledger() *accounting.Ledger

	Connected(now drive.Time, party int, h drive.Hello)
	Gone(now drive.Time, party int)
	Heard(now drive.Time, party int)
	Absent(now drive.Time, party int, round uint64) bool
	Here(party int) (here, ever bool)
	Due(party int) bool
	Until() drive.Time
	Pending(party int) func(yield func(drive.Item) bool)

	Excluded(party int) bool
	Exclude(now drive.Time, party int, why string)
	Readmit(now drive.Time, party int, why string)
	Again(now drive.Time)
	Pause(now drive.Time, why string)
	Resume(now drive.Time, why string)
	End(now drive.Time, why string)
}

func (r *Runner) peer(p Peer) *peer {
	if p.Member {
		return &r.members[p.Index]
	}
	return &r.parties[p.Index]
}

// connected takes in what a party or a member says when it asks.
func (r *Runner) connected(p Peer, ask *exchange.Ask) {
	now := r.now()
	r.peer(p).heard = r.clock.time()
	hello := drive.Hello{Sessions: ask.Sessions, Least: ask.Least, Told: ask.Round}
	if p.Member {
		r.committee.MemberConnected(now, p.Index, hello)
		return
	}
	r.drive.Connected(now, p.Index, hello)
	r.drive.Absent(now, p.Index, ask.Absent)
	if r.committee != nil {
		r.committee.Offer(now, p.Index, ask.Offer)
	}
}

func (r *Runner) gone(p Peer) {
	if p.Member {
		r.committee.MemberGone(r.now(), p.Index)
	} else {
		r.drive.Gone(r.now(), p.Index)
	}
}

func (r *Runner) heard(p Peer) {
	r.peer(p).heard = r.clock.time()
	if p.Member {
		r.committee.MemberHeard(r.now(), p.Index)
	} else {
		r.drive.Heard(r.now(), p.Index)
	}
}

func (r *Runner) due(p Peer) bool {
	if p.Member {
		return r.committee.MemberDue(p.Index)
	}
	return r.drive.Due(p.Index)
}

// inOrder finds what is next where items follow each other: the one after the last that was seen,
// or that one again if its answer is due.
func (r *Runner) inOrder(p Peer, ask *exchange.Ask) (n Outgoing, again time.Duration) {
	pending := r.drive.Pending
	if p.Member {
		pending = r.committee.MemberPending
	}
	var last Outgoing // of what was seen
	for item := range pending(p.Index) {
		found := nextOf(&item)
		switch {
		case found.Kind != exchange.End && slices.Contains(ask.Seen, found.Item):
			last, n = found, Outgoing{}
		case found.Kind == exchange.Message && !p.Member && ask.Offer == item.Round:
			// The offer answers this, whichever node led then.
		case n.Kind == exchange.Nothing:
			n = found
		}
	}
	switch {
	case n.Kind != exchange.Nothing:
		r.asked(p, &n)
		return n, 0
	case last.Kind == exchange.Message && !p.Member && ask.Offer == uint64(last.Round):
	case last.Kind != exchange.Nothing && r.due(p) && r.again(p, &last, ask, &again):
		return last, 0
	}
	return Outgoing{}, again
}

// object is a long value that the state names.
type object struct {
	Name, Version string
	Ref           *record.Ref
}

// keep stores long values, once, and has those that are no longer needed deleted after the
// decision.
func (r *Runner) keep(ctx context.Context, objects []drive.Object, needed []string) error {
	for _, o := range objects {
		if r.find(o.Name, o.Version) != nil {
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
		r.forget(func(had *object) bool { return had.Name == o.Name })
		r.objects = append(r.objects, object{o.Name, o.Version, ref})
	}
	r.forget(func(had *object) bool { return !slices.Contains(needed, had.Name) })
	return nil
}

// find finds an object by its name, of that version or, with none, of any; nil: there is none.
func (r *Runner) find(name, version string) *object {
	for i := range r.objects {
		if o := &r.objects[i]; o.Name == name && (version == "" || o.Version == version) {
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
	o := r.find(name, "")
	if o == nil {
		return nil, fmt.Errorf("%w: the state names no %s", record.ErrRecord, name)
	}
	b, err := r.Hold.Get(context.Background(), o.Ref)
	return io.NopCloser(bytes.NewReader(b)), err
}

// committeeConfig returns the configuration that drive needs for a federation with a committee.
func (r *Runner) committeeConfig(c drive.ServerConfig, sums *oneshot.Config) drive.CommitteeConfig {
	c.Broadcast = r.inOpening
	return drive.CommitteeConfig{ServerConfig: c, Sums: sums, Stored: r.stored,
		Buffer: r.Federation.Settled.Buffer()}
}

// inOpening makes the broadcast of a round, and returns the digest that its opening contains.
func (r *Runner) inOpening(round uint64, fresh [32]byte) (digest [32]byte, err error) {
	b, err := r.cast(round, fresh)
	if err != nil {
		return digest, err
	}
	h := oneshot.NewBroadcastHash()
	_, err = h.Write(b)
	return [32]byte(h.Sum(nil)), err
}

// committeeStatus returns the committee's status as people see it, nil if there is none.
func (r *Runner) committeeStatus(overdue bool) (out []PartyStatus) {
	for k := range r.members {
		here, ever := r.committee.MemberHere(k)
		due := r.committee.MemberDue(k)
		p := PartyStatus{Name: r.Federation.Settled.Oneshot().Committee.Name(k), Awaited: due}
		here = here && r.drive.Status().Ended == ""
		p.State = stateOf(here, ever || r.seenMembers[k], overdue && due)
		out = append(out, p)
	}
	return out
}
