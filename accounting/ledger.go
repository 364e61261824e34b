package accounting

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
)

// Ledger is a client-level odometer and filter: it records what each client has
// spent and refuses the round that would take any of its clients over its
// budget. Rounds may use different mechanisms. It is not safe for concurrent
// use.
//
// The bound is that of a composition fixed in advance: parameters of later
// rounds must not depend on what earlier rounds released. Stopping early, or
// leaving a client out because its budget is spent, depends on parameters only
// and is covered.
//
// A line is recorded only if its [Statement] implies that of the ledger's budget.
type Ledger struct {
	standard Budget
	budgets  map[string]Target
	accounts map[string][]charge
}

// NewLedger returns an empty ledger. standard is the budget of every client without one of its own.
// A budget that is about [PublicServer] has the ledger count as [PublicView], any other as
// [ServerView].
func NewLedger(standard Budget) (*Ledger, error) {
	if err := standard.Target().check(); err != nil {
		return nil, err
	}
	return &Ledger{
		standard: standard,
		budgets:  map[string]Target{},
		accounts: map[string][]charge{},
	}, nil
}

// SetBudget gives one client its own budget. It may be below what the client
// has spent already: then every further round with it is refused.
func (l *Ledger) SetBudget(client string, t Target) error {
	if client == "" {
		return errNameless
	}
	if err := t.check(); err != nil {
		return err
	}
	l.budgets[client] = t
	return nil
}

var errNameless = configError("a client needs a name")

// Clone returns a copy of the ledger that records independently from then on, such as for a round
// that may still fail.
func (l *Ledger) Clone() *Ledger {
	return &Ledger{
		standard: l.standard,
		budgets:  maps.Clone(l.budgets),
		accounts: maps.Clone(l.accounts), // whose lines are replaced, and never changed
	}
}

// View returns the view whose spending the ledger records.
func (l *Ledger) View() View { return l.Statement().View() }

// Statement returns what the ledger's budgets are about.
func (l *Ledger) Statement() Statement { return l.standard.statement }

// Budget returns a client's budget.
func (l *Ledger) Budget(client string) Budget {
	if t, ok := l.budgets[client]; ok {
		return Budget{l.Statement(), t.Epsilon, t.Delta}
	}
	return l.standard
}

// Spent returns what a client has spent at its budget's delta, or an error from
// the accountant.
func (l *Ledger) Spent(client string) (Claim, error) {
	out, err := spend(l.accounts[client], l.View(), l.Budget(client).delta)
	out.Statement = l.Statement()
	return out, err
}

// SpentBy returns what each of the clients has spent at its budget's delta. It fails with errors of
// the accountant.
func (l *Ledger) SpentBy(clients ...string) ([]Claim, error) {
	out, known := make([]Claim, len(clients)), make(map[string]Claim)
	for k, id := range clients {
		key := l.account(id)
		claim, found := known[key]
		if !found {
			var err error
			if claim, err = l.Spent(id); err != nil {
				return nil, err
			}
			known[key] = claim
		}
		out[k] = claim
	}
	return out, nil
}

// account returns a text that clients with equal accounts and budgets share, and so a computation.
func (l *Ledger) account(client string) string {
	return fmt.Sprintf("%x %s", l.Budget(client).delta, fingerprint(l.accounts[client]))
}

// Most returns which of the clients has spent most, each at its budget's delta, and how much: the
// first of those in order; "" and a claim of 0 if none has spent any. Without clients it asks all.
// It fails with errors of the accountant.
func (l *Ledger) Most(clients ...string) (client string, most Claim, err error) {
	return l.most(clients, NewClaim(l.Statement(), Figures{Delta: l.standard.delta}), l.Spent)
}

// MostBy is Most with lines that add up by a plan, at the delta of a budget that is about it.
func (l *Ledger) MostBy(p Plan, of Budget, clients ...string) (
	client string, most Claim, err error,
) {
	return l.most(clients, NewClaim(of.statement, Figures{Delta: of.delta}),
		func(id string) (Claim, error) { return l.Spending(id).At(of.delta, p) })
}

func (l *Ledger) most(clients []string, none Claim, spent func(client string) (Claim, error),
) (client string, most Claim, err error) {
	if len(clients) == 0 {
		clients = l.Clients()
	}
	most = none
	known := map[string]bool{}
	for _, id := range slices.Sorted(slices.Values(clients)) {
		key := l.account(id)
		if len(l.accounts[id]) == 0 || known[key] {
			continue
		}
		known[key] = true
		is, err := spent(id)
		if err != nil {
			return "", Claim{}, err
		}
		if client == "" || is.figures.Upper > most.figures.Upper {
			client, most = id, is
		}
	}
	return client, most, nil
}

// Spending returns the lines of a client's account that are rounds.
func (l *Ledger) Spending(client string) Spending {
	var out Spending
	for _, c := range l.accounts[client] {
		if c.Round != nil {
			out.charges = append(out.charges, c)
		}
	}
	return out
}

// Clients returns the clients that have spent anything, sorted.
func (l *Ledger) Clients() []string {
	out := make([]string, 0, len(l.accounts))
	for c := range l.accounts {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}

// SpendRound records one round for the given clients: in the server's view those that take part,
// in the public view all that might be scheduled. If the round would take any of them over its
// budget, nothing is recorded and the error is an *OverBudget for the first such client in order.
// A name that occurs twice counts once.
func (l *Ledger) SpendRound(r Round, clients ...string) error {
	return l.SpendRounds(r, 1, clients...)
}

// SpendRounds records count equal rounds, 1 to 2^40, each as [Ledger.SpendRound] records one: all
// of them or none.
func (l *Ledger) SpendRounds(r Round, count int, clients ...string) error {
	if count < 1 || count > maxCount {
		return configError("%d rounds, want 1 to 2^40", count)
	}
	if err := r.Statement.Implies(l.Statement()); err != nil {
		return err
	}
	r = r.owned()
	return l.spend(charge{Round: &r, Count: count}, clients)
}

// Left returns for each client how many more equal rounds its budget allows, counting up to most.
func (l *Ledger) Left(r Round, most int, clients ...string) ([]int, error) {
	out, known := make([]int, len(clients)), map[string]int{}
	for i, id := range clients {
		// Clients with equal accounts and budgets share one search.
		t := l.Budget(id)
		k := fmt.Sprintf("%x %x %s", t.epsilon, t.delta, fingerprint(l.accounts[id]))
		n, ok := known[k]
		if !ok {
			var failed error
			n = sort.Search(most, func(n int) bool {
				err := l.Clone().SpendRounds(r, n+1, id)
				if err != nil && !errors.Is(err, ErrBudget) {
					failed = err
				}
				return err != nil
			})
			if failed != nil {
				return nil, failed
			}
			known[k] = n
		}
		out[i] = n
	}
	return out, nil
}

// Spend records mechanisms instead of a round, under the same rule. In the server's view sampling
// does not count: [Sampled] then counts as its Mechanism, and [ReplaceOne] as if its rate were 1.
func (l *Ledger) Spend(s Step, clients ...string) error {
	if s.Mechanism == nil || s.Count < 0 || s.Count > maxCount {
		return configError("step needs a mechanism and a count from 0 to 2^40")
	}
	if err := Calculated(l.Statement().unit).Implies(l.Statement()); err != nil {
		return err
	}
	if err := usable(s.Mechanism, l.View()); err != nil {
		return err
	}
	s.Mechanism = owned(s.Mechanism)
	return l.spend(charge{Step: &s, Count: 1}, clients)
}

// usable checks m as a view has it. Mechanisms too large for a table have Rényi
// bounds.
func usable(m Mechanism, v View) error {
	if v == ServerView {
		if err := checkRate(rateOf(m)); err != nil {
			return err
		}
		if m = unsampled(m); m == nil {
			return configError("Sampled has no mechanism")
		}
	}
	if _, err := m.law(); err != nil && !errors.Is(err, ErrTooLarge) {
		return err
	}
	return nil
}

// owned is m with slices of its own.
func owned(m Mechanism) Mechanism {
	switch x := m.(type) {
	case Pair:
		x.P, x.Q = slices.Clone(x.P), slices.Clone(x.Q)
		return x
	case Sampled:
		x.Mechanism = owned(x.Mechanism)
		return x
	case ReplaceOne:
		x.Mechanism = owned(x.Mechanism)
		return x
	}
	return m
}

func (l *Ledger) spend(c charge, clients []string) error {
	if len(clients) == 0 {
		return configError("no clients: name all that spend")
	}
	unique := slices.Compact(slices.Sorted(slices.Values(clients)))
	if unique[0] == "" {
		return errNameless
	}
	// Clients with equal accounts and budgets share one computation.
	seen := map[string]float64{} // ε after the round
	next := make([][]charge, len(unique))
	for i, id := range unique {
		var err error
		if next[i], err = appendCharge(l.accounts[id], c); err != nil {
			return err
		}
		t := l.Budget(id)
		k := fmt.Sprintf("%x %x %s", t.epsilon, t.delta, fingerprint(next[i]))
		eps, ok := seen[k]
		if !ok {
			s, err := spendAtMost(next[i], l.View(), t.delta)
			if err != nil {
				return err
			}
			eps = s.Upper
			seen[k] = eps
		}
		if eps > t.epsilon || math.IsNaN(eps) {
			return &OverBudget{Client: id, Budget: t, Would: eps, Delta: t.delta}
		}
	}
	for i, id := range unique {
		l.accounts[id] = next[i]
	}
	return nil
}

// appendCharge adds c to an account, merging with an equal line.
func appendCharge(account []charge, c charge) ([]charge, error) {
	out := slices.Clone(account)
	k := c.key()
	for i := range out {
		if out[i].key() == k {
			if out[i].Count > maxCount-c.Count {
				return nil, configError("counts of equal lines add up to more than 2^40")
			}
			out[i].Count += c.Count
			return out, nil
		}
	}
	return append(out, c), nil
}

func (c charge) key() string {
	if c.Step != nil {
		return fmt.Sprintf("step %d %s", c.Step.Count, c.Step.Mechanism.key())
	}
	r := *c.Round
	signs := Lane{}
	if r.Signs != nil {
		signs = *r.Signs
	}
	about := r.Statement.stated()
	r.Signs, r.Statement = nil, Statement{}
	return fmt.Sprintf("round %q %+v %+v %q %d %d %d %x %d", c.Job, r, signs, string(about.unit),
		int(about.adjacency), int(about.server), int(about.colluders), about.committees,
		uint(about.assumes))
}

func fingerprint(account []charge) string {
	lines := make([]string, len(account))
	for i, c := range account {
		lines[i] = fmt.Sprintf("%d × %s", c.Count, c.key())
	}
	slices.Sort(lines)
	return fmt.Sprint(lines)
}

// Carry adds what clients have spent by another ledger to this one, whether or not their budgets
// allow it, since it is already spent. Each of these lines must imply this ledger's statement, or
// Carry fails with a [StatementError]. A client without an account has spent nothing.
func (l *Ledger) Carry(from *Ledger, clients ...string) error {
	if l.View() != from.View() {
		return configError("the ledgers are against %v and %v", l.View(), from.View())
	}
	next := map[string][]charge{}
	for _, id := range clients {
		account := l.accounts[id]
		for _, c := range from.accounts[id] {
			statement := Calculated(l.Statement().unit)
			if c.Round != nil {
				statement = c.Round.Statement
			}
			err := statement.Implies(l.Statement())
			if err == nil {
				account, err = appendCharge(account, c)
			}
			if err != nil {
				return err
			}
		}
		if len(account) > 0 {
			next[id] = account
		}
	}
	maps.Copy(l.accounts, next)
	return nil
}
