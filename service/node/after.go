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

// This file lets a federation continue one that has ended.

// After returns the files for a federation that continues an ended federation: the job under
// another name, the same roster, the last model, and what the parties have spent. The operator
// changes what should differ, then declares the new federation.
func (n *Node) After(ctx context.Context, id string) (*federation.Files, error) {
	if n.wasForgotten(id) != nil {
		return n.afterForgotten(ctx, id)
	}
	e, found := (*federations)(n).Find(id)
	if !found {
		return nil, record.ErrNone
	}
	before, err := n.before(ctx, id)
	if err != nil {
		return nil, err
	}
	var model []byte
	if e.Federation.Questions() == nil {
		if model, err = n.Model(ctx, id); err != nil {
			return nil, err
		}
	}
	var taken []string
	for _, other := range (*federations)(n).Entries() {
		taken = append(taken, other.Federation.Job.Name)
	}
	text, err := e.Federation.Continued(before != nil, taken...)
	if err != nil {
		return nil, err
	}
	return &federation.Files{Text: text, Roster: e.Files.Roster, Committee: e.Files.Committee,
		Model: model, Before: before}, nil
}

// before asks the leader of a federation that has ended what its parties have spent.
func (n *Node) before(ctx context.Context, id string) ([]byte, error) {
	if n.wasForgotten(id) != nil {
		files, err := n.afterForgotten(ctx, id)
		if err != nil {
			return nil, err
		}
		return files.Before, nil
	}
	out, err := n.order(ctx, id, page.Order{What: "before"})
	return out.Before, err
}

// succeeds returns an error unless a federation that claims to continue another may: an operator's
// word is for it, and it counts what the other's ledger has. If the other is not in this record it
// was held elsewhere; then only the parties know.
func (n *Node) succeeds(
	ctx context.Context, f *federation.Federation, files federation.Files,
) error {
	if files.Succession != nil {
		if _, err := f.Signer(files.Succession); err != nil {
			return err
		}
	}
	if err := n.studies(f); err != nil {
		return err
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
		return f.Job.Mistake("privacy.before", "have it written again by hushsumd federation after",
			"it is not what the parties of %.16s… have spent", before.Federation)
	}
	return nil
}

// studies returns an error if a federation would have a study spend its budget twice: it begins one
// for a roster that has one here, or continues a federation that another continues already.
func (n *Node) studies(f *federation.Federation) error {
	if f.Job.Privacy.Study == 0 {
		return nil
	}
	before := f.Settled.Before()
	for _, e := range (*federations)(n).Entries() {
		other := e.Federation
		was := other.Settled.Before()
		switch {
		case other.ID == f.ID || other.Job.Privacy.Study == 0:
		case before == nil && other.Settled.Roster().Digest() == f.Settled.Roster().Digest():
			return f.Job.Mistake("privacy.study", fmt.Sprintf("continue its last federation: hushsumd "+
				"federation after %s", other.Job.Name), "these parties have a study, and a budget is not "+
				"spent twice")
		case before != nil && was != nil && was.Federation == before.Federation:
			return f.Job.Mistake("privacy.before", fmt.Sprintf("continue that one: hushsumd federation "+
				"after %s", other.Job.Name), "%s continues the same federation, and a study spends its "+
				"budget once", other.Job.Name)
		}
	}
	return nil
}
