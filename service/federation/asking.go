package federation

import (
	"errors"
	"sync"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/tensor"
)

// This file holds federations that ask queries. The model of one is the mean of what its parties
// have submitted, in float64: zeros before its one sum, and afterwards the values that its answers
// are read from.

// ErrAsks: the federation asks no queries.
var ErrAsks = errors.New("federation: it asks no queries")

// settleQueries compiles the queries, if there are any.
func (f *Federation) settleQueries() (err error) {
	if !f.Job.Asks() {
		return nil
	}
	f.Spec.DType = tensor.Float64 // no answer is rounded
	if f.asks, err = query.New(f.Settled); err != nil {
		return err
	}
	f.expected = sync.OnceValue(f.asks.Expected)
	return nil
}

// Expected returns what each query will cost and give: see [query.Plan.Expected]. It is computed
// only once.
func (f *Federation) Expected() []query.Expected {
	if f.asks == nil {
		return nil
	}
	return f.expected()
}

// Questions returns the plan of the queries that the federation asks, nil if it asks none.
func (f *Federation) Questions() *query.Plan { return f.asks }

// Asked holds the queries that a federation asks, and their answers.
type Asked struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	// Before is the federation that this federation continues, if what was spent in Before counts.
	Before  string `json:"before,omitempty"`
	Parties int    `json:"parties"` // in the sum; 0: there are no answers
	Of      int    `json:"of"`      // parties of the roster
	// Spent bounds what the queries spend together, on their own; nil without noise.
	Spent *accounting.Claim `json:"spent,omitempty"`
	// Questions has the canonical text of each query, in the order of the queries: see
	// [query.Plan.Questions].
	Questions []string       `json:"questions"`
	Answers   []query.Answer `json:"answers,omitempty"`
}

// Asked returns the federation's queries, and the answers that follow from a model made from a sum
// of the given number of parties; 0: there is no sum yet. It fails with [ErrAsks]. There
// are no answers before the last round.
func (f *Federation) Asked(model []float64, parties int) (*Asked, error) {
	if f.asks == nil {
		return nil, ErrAsks
	}
	if !f.asks.Answered(model) {
		parties = 0
	}
	out := &Asked{Name: f.Job.Name, ID: f.ID, Parties: parties, Of: f.Settled.Roster().Len()}
	var err error
	if out.Questions, err = f.asks.Questions(); err != nil {
		return nil, err
	}
	if before := f.Settled.Before(); before != nil {
		out.Before = before.Federation
	}
	spent, err := f.asks.Spent()
	if err != nil {
		return nil, err
	}
	if f.Job.Noisy() {
		out.Spent = &spent
	}
	if parties > 0 {
		out.Answers, err = f.asks.Answers(model, parties)
	}
	return out, err
}
