package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
)

// This file has how a federation goes on from one that has ended.

// After returns what a federation begins with that goes on from one that has ended: its job
// under another name, the same roster, its last model, and what its parties have spent. Whoever
// declares it changes what is to change.
func (n *Node) After(ctx context.Context, id string) (*federation.Files, error) {
	e, found := (*federations)(n).Find(id)
	if !found {
		return nil, record.ErrNone
	}
	before, err := n.before(ctx, id)
	if err != nil {
		return nil, err
	}
	model, err := n.Model(ctx, id)
	if err != nil {
		return nil, err
	}
	text, err := e.Federation.Continued(before != nil)
	if err != nil {
		return nil, err
	}
	return &federation.Files{Text: text, Roster: e.Files.Roster, Committee: e.Files.Committee,
		Model: model, Before: before}, nil
}

// before asks the leader of a federation that has ended what its parties have spent.
func (n *Node) before(ctx context.Context, id string) ([]byte, error) {
	out, err := n.order(ctx, id, page.Order{What: "before"})
	return out.Before, err
}

// succeeds returns an error unless a federation that says that it goes on from another may:
// an operator's word is for it, and it counts what the other's ledger has. One that this record
// does not have was held elsewhere; then only the parties know.
func (n *Node) succeeds(
	ctx context.Context, f *federation.Federation, files federation.Files,
) error {
	if files.Succession != nil {
		if _, err := f.Signer(files.Succession); err != nil {
			return err
		}
	}
	before := f.Settled.Before()
	if before == nil {
		return nil
	}
	spent, err := n.before(ctx, before.Federation)
	switch {
	case errors.Is(err, record.ErrNone):
		return nil
	case err != nil:
		return err
	case !bytes.Equal(spent, files.Before):
		return fmt.Errorf("%w: privacy.before is not what the parties of %.16s… have spent; have it "+
			"written anew by 'hushsumd federation after'", page.ErrStale, before.Federation)
	}
	return nil
}
