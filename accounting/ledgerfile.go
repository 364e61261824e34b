package accounting

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/internal/strict"
)

// ledgerVersion is the format written by MarshalJSON.
const ledgerVersion = 2

type ledgerJSON struct {
	Version  int                    `json:"version"`
	Standard Budget                 `json:"standard"`
	Budgets  map[string]Target      `json:"budgets"`
	Accounts map[string][]entryJSON `json:"accounts"`
}

type entryJSON struct {
	Count     int            `json:"count"`
	Round     *Round         `json:"round,omitempty"`
	StepCount int            `json:"step_count,omitempty"`
	Mechanism *mechanismJSON `json:"mechanism,omitempty"`
}

// mechanismJSON is a tagged union: exactly one field is set.
type mechanismJSON struct {
	Gaussian           *Gaussian           `json:"gaussian,omitempty"`
	Laplace            *Laplace            `json:"laplace,omitempty"`
	DiscreteLaplace    *DiscreteLaplace    `json:"discrete_laplace,omitempty"`
	DiscreteGaussian   *DiscreteGaussian   `json:"discrete_gaussian,omitempty"`
	Skellam            *Skellam            `json:"skellam,omitempty"`
	Binomial           *Binomial           `json:"binomial,omitempty"`
	RandomisedResponse *RandomisedResponse `json:"randomised_response,omitempty"`
	Pair               *Pair               `json:"pair,omitempty"`
	Sampled            *wrappedJSON        `json:"sampled,omitempty"`
	ReplaceOne         *wrappedJSON        `json:"replace_one,omitempty"`
}

type wrappedJSON struct {
	Rate      float64       `json:"rate"`
	Mechanism mechanismJSON `json:"mechanism"`
}

// MarshalJSON saves the ledger. Equal ledgers give equal bytes. It refuses a ledger that
// NewLedger did not make.
func (l Ledger) MarshalJSON() ([]byte, error) {
	if l.accounts == nil {
		return nil, fmt.Errorf("%w: nothing to save: make it by NewLedger", ErrLedger)
	}
	out := ledgerJSON{
		Version:  ledgerVersion,
		Standard: l.standard,
		Budgets:  l.budgets,
		Accounts: map[string][]entryJSON{},
	}
	for _, id := range l.Clients() {
		entries := make([]entryJSON, 0, len(l.accounts[id]))
		for _, c := range l.accounts[id] {
			e := entryJSON{Count: c.Count, Round: c.Round}
			if c.Step != nil {
				m, err := encodeMechanism(c.Step.Mechanism)
				if err != nil {
					return nil, err
				}
				e.StepCount, e.Mechanism = c.Step.Count, &m
			}
			entries = append(entries, e)
		}
		out.Accounts[id] = entries
	}
	return json.Marshal(out)
}

// UnmarshalJSON loads a ledger saved by MarshalJSON, including its statement, and replaces l.
// If it fails, with an error that matches ErrLedger, it leaves l unchanged.
func (l *Ledger) UnmarshalJSON(b []byte) error {
	var in ledgerJSON
	if err := strict.JSON(b, &in); err != nil {
		return fmt.Errorf("%w: %w", ErrLedger, err)
	}
	if in.Version != ledgerVersion {
		return fmt.Errorf("%w: version %d, want %d", ErrLedger, in.Version, ledgerVersion)
	}
	out, err := NewLedger(in.Standard)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLedger, err)
	}
	for _, id := range slices.Sorted(maps.Keys(in.Budgets)) {
		if err := out.SetBudget(id, in.Budgets[id]); err != nil {
			return fmt.Errorf("%w: budget of %q: %w", ErrLedger, id, err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(in.Accounts)) {
		if id == "" {
			return fmt.Errorf("%w: %w", ErrLedger, errNameless)
		}
		for _, e := range in.Accounts[id] {
			c, err := e.charge(out)
			if err != nil {
				return fmt.Errorf("%w: account of %q: %w", ErrLedger, id, err)
			}
			out.accounts[id] = append(out.accounts[id], c)
		}
	}
	*l = *out
	return nil
}

func (e entryJSON) charge(l *Ledger) (charge, error) {
	if e.Count < 1 || e.Count > maxCount || (e.Round == nil) == (e.Mechanism == nil) {
		return charge{}, configError("entry needs a positive count and either a round or a mechanism")
	}
	if e.Round != nil {
		if err := e.Round.check(); err != nil {
			return charge{}, err
		}
		if err := e.Round.Statement.Implies(l.Statement()); err != nil {
			return charge{}, err
		}
		return charge{Round: e.Round, Count: e.Count}, nil
	}
	m, err := e.Mechanism.decode()
	if err != nil {
		return charge{}, err
	}
	if e.StepCount < 0 || e.StepCount > maxCount {
		return charge{}, configError("step count is %d", e.StepCount)
	}
	if err := usable(m, l.View()); err != nil {
		return charge{}, err
	}
	c := charge{Step: &Step{m, e.StepCount}, Count: e.Count}
	if _, err := c.steps(); err != nil {
		return charge{}, err
	}
	return c, nil
}

func encodeMechanism(m Mechanism) (out mechanismJSON, err error) {
	wrap := func(inner Mechanism, rate float64) (*wrappedJSON, error) {
		e, err := encodeMechanism(inner)
		return &wrappedJSON{rate, e}, err
	}
	switch v := m.(type) {
	case Gaussian:
		out.Gaussian = &v
	case Laplace:
		out.Laplace = &v
	case DiscreteLaplace:
		out.DiscreteLaplace = &v
	case DiscreteGaussian:
		out.DiscreteGaussian = &v
	case Skellam:
		out.Skellam = &v
	case Binomial:
		out.Binomial = &v
	case RandomisedResponse:
		out.RandomisedResponse = &v
	case Pair:
		out.Pair = &v
	case Sampled:
		out.Sampled, err = wrap(v.Mechanism, v.Rate)
	case ReplaceOne:
		out.ReplaceOne, err = wrap(v.Mechanism, v.Rate)
	default:
		err = fmt.Errorf("%w: %T cannot be saved", ErrUnsupported, m)
	}
	return out, err
}

func (e mechanismJSON) decode() (Mechanism, error) {
	var found []Mechanism
	found = withSet(found, e.Gaussian)
	found = withSet(found, e.Laplace)
	found = withSet(found, e.DiscreteLaplace)
	found = withSet(found, e.DiscreteGaussian)
	found = withSet(found, e.Skellam)
	found = withSet(found, e.Binomial)
	found = withSet(found, e.RandomisedResponse)
	found = withSet(found, e.Pair)
	if e.Sampled != nil {
		m, err := e.Sampled.Mechanism.decode()
		if err != nil {
			return nil, err
		}
		found = append(found, Sampled{m, e.Sampled.Rate})
	}
	if e.ReplaceOne != nil {
		m, err := e.ReplaceOne.Mechanism.decode()
		if err != nil {
			return nil, err
		}
		found = append(found, ReplaceOne{m, e.ReplaceOne.Rate})
	}
	if len(found) != 1 {
		return nil, configError("mechanism with %d kinds, want one", len(found))
	}
	return found[0], nil
}

// withSet appends *m to found unless m is nil.
func withSet[M Mechanism](found []Mechanism, m *M) []Mechanism {
	if m == nil {
		return found
	}
	return append(found, *m)
}
