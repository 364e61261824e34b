package sidecar

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/privacy/spending"
)

var accountingCalls = map[string]handler{
	"account.epsilon":   accountEpsilon,
	"account.delta":     accountDelta,
	"account.calibrate": accountCalibrate,
	"ledger.new":        newLedger,
	"ledger.load":       loadLedger,
	"ledger.spend":      ledger(spendOfLedger),
	"ledger.spent":      ledger(spentOfLedger),
	"ledger.budget":     ledger(budgetOfLedger),
	"ledger.save":       ledger(saveLedger),
	"claim.words":       wordsOfClaim,
	"claim.within":      claimWithin,
}

// runJSON describes a run that a call is about.
type runJSON struct {
	Mechanism       string   `json:"mechanism"`
	NoiseMultiplier float64  `json:"noise_multiplier"`
	Scale           float64  `json:"scale"`
	Variance        float64  `json:"variance"`
	Rate            *float64 `json:"rate"`
	Rounds          *int     `json:"rounds"`
	Participations  int      `json:"participations"`
	Of              int      `json:"of"`
	Factorise       int      `json:"factorise"`
	Unit            string   `json:"unit"` // "party", "record"
	Sensitivity     *float64 `json:"sensitivity"`
	Dimension       *int     `json:"dimension"`
	Shares          *int     `json:"shares"`
	ReplaceOne      bool     `json:"replace_one"`
	Adversary       string   `json:"adversary"` // "public", "server"
}

// or returns the value that a pointer points to, or the default for nil.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// run makes and checks a run, in which searched is to be found.
func (j *runJSON) run(searched string) (*spending.Run, error) {
	view, err := parseView(j.Adversary)
	if err != nil {
		return nil, err
	}
	r := &spending.Run{
		Mechanism:       strings.ReplaceAll(j.Mechanism, "_", "-"),
		NoiseMultiplier: j.NoiseMultiplier,
		Scale:           j.Scale,
		Variance:        j.Variance,
		Rate:            or(j.Rate, 1),
		Rounds:          or(j.Rounds, 1),
		Sensitivity:     or(j.Sensitivity, 1),
		Dimension:       or(j.Dimension, 1),
		Shares:          or(j.Shares, 1),
		ReplaceOne:      j.ReplaceOne,
		View:            view,
		Participations:  j.Participations,
		Of:              j.Of,
		Factorise:       j.Factorise,
	}
	if j.Unit != "" {
		if err := r.Unit.UnmarshalText([]byte(j.Unit)); err != nil {
			return nil, fieldError("unit", `use "party" or "record"`, "%.40q is none", j.Unit)
		}
	}
	return r, fieldNames(r.Check(searched))
}

// fieldNames turns an error about a run's field into one about the call's field.
func fieldNames(err error) error {
	var e *privacy.ConfigError
	if !errors.As(err, &e) {
		return err
	}
	return fieldError(snakeCase(e.Field), e.Advice, "%s", e.Reason)
}

func parseView(name string) (accounting.View, error) {
	switch name {
	case "", accounting.PublicView.String():
		return accounting.PublicView, nil
	case accounting.ServerView.String():
		return accounting.ServerView, nil
	}
	return 0, fieldError("adversary", `use "public" or "server"`, "%.40q is none", name)
}

func checkDelta(delta float64) error {
	if !(delta >= 0 && delta < 1) {
		return fieldError("delta", "use a small number, such as 1e-5", "%v is not a probability below 1",
			delta)
	}
	return nil
}

func accountEpsilon(_ *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		runJSON
		Delta *float64 `json:"delta"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	run, err := with.run("")
	if err != nil {
		return nil, nil, err
	}
	delta := or(with.Delta, 1e-5)
	if err := checkDelta(delta); err != nil {
		return nil, nil, err
	}
	spent, err := run.Epsilon(delta)
	return said(spent), nil, err
}

func accountDelta(_ *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		runJSON
		Epsilon float64 `json:"epsilon"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	run, err := with.run("")
	if err != nil {
		return nil, nil, err
	}
	if !(with.Epsilon >= 0) {
		return nil, nil, fieldError("epsilon", "use 0 or more", "%v is below 0", with.Epsilon)
	}
	b, err := run.Delta(with.Epsilon)
	return said(accounting.NewClaim(run.Statement(), accounting.Figures{Delta: b.Upper,
		Bound: accounting.Bound{Upper: with.Epsilon}, Accountant: "PLD"})), nil, err
}

// found names the fields that calibration finds.
var found = map[string]string{
	"noise_multiplier": "NoiseMultiplier", "rounds": "Rounds", "rate": "Rate",
}

func accountCalibrate(_ *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		runJSON
		Epsilon float64  `json:"epsilon"`
		Delta   *float64 `json:"delta"`
		Find    string   `json:"find"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	field, known := found[with.Find]
	if !known {
		return nil, nil, fieldError("find", "use noise_multiplier, rounds or rate",
			"%.40q cannot be found", with.Find)
	}
	run, err := with.run(field)
	if err != nil {
		return nil, nil, err
	}
	delta := or(with.Delta, 1e-5)
	if err := checkDelta(delta); err != nil {
		return nil, nil, err
	}
	if !(with.Epsilon > 0) || math.IsInf(with.Epsilon, 1) {
		return nil, nil, fieldError("epsilon", "use a number above 0, such as 1", "%v is not a budget",
			with.Epsilon)
	}
	if field == "Rate" && run.View == accounting.ServerView && run.Unit == accounting.PartyUnit {
		return nil, nil, fieldError("find", `use adversary="public"`,
			"sampling does not count against the server")
	}
	target := accounting.Target{Epsilon: with.Epsilon, Delta: delta}
	if err := run.Calibrate(field, target); err != nil {
		return nil, nil, err
	}
	if run.In() == 0 {
		return nil, nil, accounting.ErrUnreachable
	}
	spent, err := run.Epsilon(delta)
	if err != nil {
		return nil, nil, err
	}
	return struct {
		NoiseMultiplier float64 `json:"noise_multiplier"`
		Rounds          int     `json:"rounds"`
		Rate            float64 `json:"rate"`
		claimed
	}{run.NoiseMultiplier, run.In(), run.Rate, said(spent)}, nil, nil
}

// ledgerObject is a ledger that the program has made.
type ledgerObject struct {
	mutex  sync.Mutex
	ledger *accounting.Ledger
}

// ledgerCall holds the arguments of calls on a ledger.
type ledgerCall struct {
	Ledger  uint64   `json:"ledger"`
	Clients []string `json:"clients"`
	Run     *runJSON `json:"run"`
	Client  *string  `json:"client"`
	Epsilon float64  `json:"epsilon"`
	Delta   float64  `json:"delta"`
}

type ledgerJSON struct {
	Ledger uint64 `json:"ledger"`
}

func newLedger(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Adversary string  `json:"adversary"`
		Unit      string  `json:"unit"`
		Epsilon   float64 `json:"epsilon"`
		Delta     float64 `json:"delta"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	view, err := parseView(with.Adversary)
	if err != nil {
		return nil, nil, err
	}
	var unit accounting.Unit
	if with.Unit != "" {
		if err := unit.UnmarshalText([]byte(with.Unit)); err != nil {
			return nil, nil, fieldError("unit", `use "party" or "record"`, "%.40q is none", with.Unit)
		}
	}
	about := view.Of(accounting.Calculated(unit))
	if unit.OfRecords() {
		about = about.Assuming(accounting.AssumesCoins)
	}
	budget, err := accounting.NewBudget(about, with.Epsilon, with.Delta)
	if err != nil {
		return nil, nil, err
	}
	l, err := accounting.NewLedger(budget)
	if err != nil {
		return nil, nil, err
	}
	id, err := s.add(&ledgerObject{ledger: l})
	return ledgerJSON{id}, nil, err
}

func loadLedger(s *sidecar, r *request) (any, [][]byte, error) {
	if err := r.take(&struct{}{}, 1); err != nil {
		return nil, nil, err
	}
	l := new(accounting.Ledger)
	if err := strict.JSON(r.blobs[0].private(), l); err != nil {
		return nil, nil, notLedger()
	}
	id, err := s.add(&ledgerObject{ledger: l})
	return ledgerJSON{id}, nil, err
}

// ledger finds the ledger of a call.
func ledger(
	work func(l *accounting.Ledger, with *ledgerCall) (any, [][]byte, error),
) handler {
	return func(s *sidecar, r *request) (any, [][]byte, error) {
		var with ledgerCall
		if err := r.take(&with, 0); err != nil {
			return nil, nil, err
		}
		o, err := lookup[*ledgerObject](s, with.Ledger, "ledger")
		if err != nil {
			return nil, nil, err
		}
		o.mutex.Lock()
		defer o.mutex.Unlock()
		return work(o.ledger, &with)
	}
}

func spendOfLedger(l *accounting.Ledger, with *ledgerCall) (any, [][]byte, error) {
	if with.Run == nil {
		return nil, nil, fieldError("run", "", "there is none")
	}
	if len(with.Clients) == 0 {
		return nil, nil, fieldError("clients", "name those that take part", "there are none")
	}
	if with.Run.Adversary != "" {
		return nil, nil, fieldError("adversary", "leave it out", "the ledger sets it")
	}
	with.Run.Adversary = l.View().String()
	run, err := with.Run.run("")
	if err != nil {
		return nil, nil, err
	}
	switch {
	case run.Lanes() && run.Unit != l.Statement().Unit():
		return nil, nil, fieldError("unit", "use a ledger of that unit", "the ledger is about %s",
			l.Statement().Unit().Words())
	case run.Lanes():
		return nil, nil, l.SpendRounds(run.Round(), run.Charges(), with.Clients...)
	case run.Unit != accounting.PartyUnit:
		return nil, nil, fieldError("unit", "say how many coordinates vectors have",
			"a ledger records vectors only under noise on the integers")
	}
	return nil, nil, l.Spend(run.Steps()[0], with.Clients...)
}

func spentOfLedger(l *accounting.Ledger, with *ledgerCall) (any, [][]byte, error) {
	if with.Client == nil {
		return struct {
			Clients []string `json:"clients"`
		}{append([]string{}, l.Clients()...)}, nil, nil
	}
	spent, err := l.Spent(*with.Client)
	return struct {
		claimed
		Budget accounting.Budget `json:"budget"`
	}{said(spent), l.Budget(*with.Client)}, nil, err
}

func budgetOfLedger(l *accounting.Ledger, with *ledgerCall) (any, [][]byte, error) {
	if with.Client == nil {
		return nil, nil, fieldError("client", "", "there is none")
	}
	return nil, nil, l.SetBudget(*with.Client,
		accounting.Target{Epsilon: with.Epsilon, Delta: with.Delta})
}

func saveLedger(l *accounting.Ledger, _ *ledgerCall) (any, [][]byte, error) {
	b, err := json.Marshal(l)
	return nil, [][]byte{b}, err
}
