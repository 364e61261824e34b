package node

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file has federations that operators had forgotten: nobody leads them, their decisions stay,
// and their parties are told.

// forgets takes a forgotten federation out of those that this node may lead.
func (n *Node) forgets(d *record.Definition) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if e := n.entries[d.ID]; e != nil {
		e.sendOn(nil)
		delete(n.entries, d.ID)
	}
	n.forgotten[d.ID] = d.Forgotten
}

// leavesForgotten has this node no longer lead a federation that was forgotten.
func (n *Node) leavesForgotten(id string) {
	d, err := n.records.Definition(n.ctx, id)
	if err == nil && d.Forgotten != nil {
		n.forgets(d)
		n.Log.Info("a federation was forgotten", "federation", d.Forgotten.Name)
	} // else the next look at the record finds it
}

// wasForgotten returns what is known of a forgotten federation, nil of any other.
func (n *Node) wasForgotten(id string) *record.Forgotten {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.forgotten[id]
}

// statusOf returns the status of a forgotten federation.
func statusOf(id string, f *record.Forgotten) *runner.Status {
	out := &runner.Status{Name: f.Name, ID: id, State: runner.Forgotten, Orders: runner.Forgotten,
		Recorded: &f.Time, Why: "an operator had its models and states erased", Round: f.Rounds,
		Spent: f.Spent}
	if f.Names {
		out.Why += ", and all names"
	}
	return out
}

// archive returns the status of all forgotten federations, by name.
func (n *Node) archive() (out []*runner.Status) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for id, f := range n.forgotten {
		out = append(out, statusOf(id, f))
	}
	slices.SortFunc(out, func(a, b *runner.Status) int {
		return strings.Compare(a.Name+a.ID, b.Name+b.ID)
	})
	return out
}

// Archive lists the federations that were forgotten, for parties.
func (f *federations) Archive() (out []exchange.Listed) {
	for _, s := range (*Node)(f).archive() {
		out = append(out, exchange.Listed{Name: s.Name, ID: s.ID, Forgotten: true})
	}
	return out
}

// forgetOrder carries out an order about a federation that is forgotten, or is to be.
func (n *Node) forgetOrder(ctx context.Context, id string, o page.Order) (*runner.Status, error) {
	gone := n.wasForgotten(id)
	switch {
	case gone == nil && o.What == page.Forget:
		if _, err := n.order(ctx, id, o); err != nil {
			return nil, err
		}
		n.Log.Warn("a federation was forgotten", "id", id, "by", o.Who)
	case gone == nil:
		return nil, record.ErrKept
	case o.What == page.ForgetNames:
		if err := n.records.ForgetNames(ctx, id); err != nil {
			return nil, err
		}
		n.Log.Warn("the names of a federation were erased", "id", id, "by", o.Who)
	}
	d, err := n.records.Definition(ctx, id)
	if err != nil {
		return nil, err
	}
	if d.Forgotten == nil {
		return nil, runner.ErrStopped
	}
	n.forgets(d)
	return statusOf(id, d.Forgotten), nil
}

// afterForgotten returns the files that a forgotten federation was declared by, and what its
// parties have spent: an operator names the latter in the former. The model is erased.
func (n *Node) afterForgotten(ctx context.Context, id string) (*federation.Files, error) {
	d, err := n.records.Definition(ctx, id)
	if err != nil {
		return nil, err
	}
	if d.Forgotten == nil || d.Forgotten.Names {
		return nil, errNames
	}
	before, err := n.records.Ledger(ctx, d)
	if err != nil {
		return nil, err
	}
	return &federation.Files{Text: d.Text, Roster: d.Roster, Committee: d.Committee, Before: before},
		nil
}

// errNames: what a successor would need was erased.
var errNames = errors.New("node: the names of the federation were erased, and with them what its " +
	"parties have spent; no federation can continue it")
