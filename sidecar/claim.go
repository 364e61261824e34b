package sidecar

import (
	"encoding/json"

	"github.com/hushsum/hushsum/accounting"
)

// claimed is a claim, with what it says in words.
type claimed struct {
	Claim accounting.Claim `json:"claim"`
	Words string           `json:"words"`
}

func said(c accounting.Claim) claimed { return claimed{c, c.String()} }

// claimCall holds forms of a claim and of a budget, as this program or another has written them.
type claimCall struct {
	Claim  json.RawMessage `json:"claim"`
	Budget json.RawMessage `json:"budget"`
}

func (w *claimCall) claim() (c accounting.Claim, err error) {
	if err := c.UnmarshalJSON(w.Claim); err != nil {
		return c, fieldError("claim", "give one as this program writes it", "%v", err)
	}
	return c, nil
}

func (w *claimCall) budget() (b accounting.Budget, err error) {
	if err := b.UnmarshalJSON(w.Budget); err != nil {
		return b, fieldError("budget", "give one as this program writes it", "%v", err)
	}
	return b, nil
}

// wordsOfClaim says a claim, or a budget, in words.
func wordsOfClaim(_ *sidecar, r *request) (any, [][]byte, error) {
	var with claimCall
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	var out struct {
		Words string `json:"words"`
	}
	if with.Budget != nil {
		b, err := with.budget()
		out.Words = b.String()
		return out, nil, err
	}
	c, err := with.claim()
	out.Words = c.String()
	return out, nil, err
}

// claimWithin fails if a claim is beyond a budget, or is about something else.
func claimWithin(_ *sidecar, r *request) (any, [][]byte, error) {
	var with claimCall
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	c, err := with.claim()
	if err != nil {
		return nil, nil, err
	}
	b, err := with.budget()
	if err != nil {
		return nil, nil, err
	}
	return struct{}{}, nil, c.Within(b)
}
