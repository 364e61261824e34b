package sidecar

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/keyexchange"
)

var planCalls = map[string]handler{
	"plan.parse":   parsePlan,
	"plan.settle":  settlePlan,
	"plan.explain": explainPlan,
	"plan.spent":   planSpent,
}

// memberJSON is a party of a roster.
type memberJSON struct {
	Name string `json:"name"`
	Key  string `json:"key"` // 64 hexadecimal digits
}

func parseRoster(members []memberJSON) (*keyexchange.Roster, error) {
	var list []keyexchange.Entry
	for i, m := range members {
		key, err := hex.DecodeString(m.Key)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, fieldError("roster", "give the public key that the party generated",
				"party %d: its key is not 64 hexadecimal digits", i)
		}
		list = append(list, keyexchange.Entry{Name: m.Name, Key: key})
	}
	return keyexchange.NewRoster(list)
}

// parsePlan returns a plan with its defaults filled in.
func parsePlan(_ *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Plan json.RawMessage `json:"plan"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	p, err := hushsum.ParsePlan(with.Plan)
	if err != nil {
		return nil, nil, err
	}
	return filledIn(p), nil, nil
}

// filledIn returns the plan with the defaults that its digest has.
func filledIn(p *hushsum.Plan) map[string]any {
	text, err := json.Marshal(p.WithDefaults())
	if err != nil {
		panic("sidecar: " + err.Error()) // a valid plan has no NaN
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		panic("sidecar: " + err.Error())
	}
	return out
}

// settledJSON is what a plan comes to.
type settledJSON struct {
	Settled      uint64  `json:"settled"`
	Digest       string  `json:"digest"` // 64 hexadecimal digits
	MinSurvivors int     `json:"min_survivors"`
	StdDev       float64 `json:"std_dev"` // of the noise in a mean of the fewest parties
}

func settlePlan(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Plan      json.RawMessage `json:"plan"`
		Roster    []memberJSON    `json:"roster"`
		Committee []memberJSON    `json:"committee"` // of a plan whose sums are of one message
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	p, err := hushsum.ParsePlan(with.Plan)
	if err != nil {
		return nil, nil, err
	}
	roster, err := parseRoster(with.Roster)
	if err != nil {
		return nil, nil, err
	}
	settled, err := settle(p, roster, with.Committee)
	if err != nil {
		return nil, nil, err
	}
	id, err := s.add(settled)
	if err != nil {
		return nil, nil, err
	}
	digest := settled.Digest()
	return settledJSON{
		Settled:      id,
		Digest:       hex.EncodeToString(digest[:]),
		MinSurvivors: settled.MinSurvivors(),
		StdDev:       settled.StdDev(settled.MinSurvivors()),
	}, nil, nil
}

func settle(
	p *hushsum.Plan, roster *keyexchange.Roster, members []memberJSON,
) (*hushsum.Settled, error) {
	if members == nil {
		return p.Settle(roster)
	}
	committee, err := parseRoster(members)
	if err != nil {
		return nil, err
	}
	return p.SettleOneshot(roster, committee)
}

// pairwise fails for a plan whose sums are of one message.
func pairwise(s *hushsum.Settled) error {
	if s.Oneshot() == nil {
		return nil
	}
	return fault.New(hushsum.ErrConfig, "use the parties, members and servers of oneshot",
		"the plan's sums are of one message")
}

// planSpent says what rounds of a plan spend of every party.
func planSpent(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Settled uint64 `json:"settled"`
		Rounds  int    `json:"rounds"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	settled, err := lookup[*hushsum.Settled](s, with.Settled, "plan")
	if err != nil {
		return nil, nil, err
	}
	plan := settled.Plan()
	if with.Rounds < 0 || with.Rounds > plan.Rounds {
		return nil, nil, fieldError("rounds", "", "%d is outside 0 to the plan's %d", with.Rounds,
			plan.Rounds)
	}
	if plan.Noise == 0 {
		return spentJSON(accounting.Spent{
			Bound: accounting.Bound{Upper: infinity, Lower: infinity, Reason: "the plan has no noise"},
			View:  accounting.ServerView,
		}), nil, nil
	}
	if with.Rounds == 0 {
		return spentJSON(accounting.Spent{View: accounting.ServerView}), nil, nil
	}
	spent, err := settled.Round().Spent(accounting.ServerView, with.Rounds, plan.Delta)
	return spentJSON(spent), nil, err
}
