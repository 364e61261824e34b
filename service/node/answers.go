package node

import (
	"context"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/tensor"
)

// This file returns the queries that a federation asks, and their answers.

// Answers returns the queries that a federation asks, with the answers if there are any. It fails
// with [record.ErrNone], [federation.ErrAsks], and the errors of the record.
func (n *Node) Answers(ctx context.Context, id string) (*federation.Asked, error) {
	n.mutex.Lock()
	e := n.entries[id]
	var kept *federation.Asked
	if e != nil {
		kept = e.asked
	}
	n.mutex.Unlock()
	switch {
	case e == nil:
		return nil, record.ErrNone
	case e.federation.Questions() == nil:
		return nil, federation.ErrAsks
	case kept != nil:
		return kept, nil
	}
	// The status first: the model, which is read after it, includes any sum that the status
	// mentions.
	status, err := (shows{n}).Status(ctx, id)
	if err != nil {
		return nil, err
	}
	if !status.Known() { // a history that is not known is not an empty one
		if status, err = runner.RecordedStatus(ctx, e.federation, n.records); err != nil {
			return nil, err
		}
	}
	parties := 0
	for _, p := range status.History {
		parties = max(parties, p.Parties)
	}
	var model []float64
	if parties > 0 {
		b, err := n.Model(ctx, id)
		if err != nil {
			return nil, err
		}
		var notes map[string]string
		if _, model, notes, err = tensor.Parse(b); err != nil {
			return nil, err
		}
		if notes["after"] == "0" { // the record here is behind
			return nil, record.ErrUnavailable
		}
	}
	out, err := e.federation.Asked(model, parties)
	if err == nil && out.Parties > 0 { // which no longer changes
		n.mutex.Lock()
		e.asked = out
		n.mutex.Unlock()
	}
	return out, err
}

// Plan computes what the queries of a job would cost and give in a federation that continues an
// ended federation. It asks no queries.
func (n *Node) Plan(ctx context.Context, id string, text []byte) (*page.Planned, error) {
	j, err := job.Parse("", text)
	if err != nil {
		return nil, err
	}
	files, err := n.After(ctx, id)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for at := id; at != ""; {
		e, found := (*federations)(n).Find(at)
		if !found { // it was held elsewhere
			break
		}
		if e.Federation.Questions() != nil {
			asked, err := n.Answers(ctx, at)
			if err != nil {
				return nil, err
			}
			for i := range asked.Answers {
				known[asked.Questions[i]] = asked.Name
			}
		}
		at = ""
		if before := e.Federation.Settled.Before(); before != nil {
			at = before.Federation
		}
	}
	batch, err := federation.Next(j, *files, func(question string) bool {
		_, found := known[question]
		return found
	})
	if err != nil {
		return nil, err
	}
	return page.NewPlanned(batch, j, known), nil
}
