package consent

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// This file has oracle F4 of internal/falsify: games of a server that declares one job after
// another, each by all that it has seen, with records that it cuts and forges, against one party's
// book. Whatever the party accepts, what has left together must be within each budget that was
// stated: by a lower bound that shares no code with the accountant.

const chainParties = 8

// declaration has the fields of a job that a server may choose.
type declaration struct {
	name                string
	rounds              int
	epsilon, multiplier float64
	delta               float64
	study               float64 // 0: none
	colluders           int
	adversary           string
	dropOut             float64
	unit                string
	committee           bool // the members add the noise
	faults              int
	before              []byte // text of a record; nil: none
}

func (d *declaration) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name = %q\nrounds = %d\n", d.name, d.rounds)
	fmt.Fprintf(&b, "parties = { roster = \"r\", drop_out = %v, colluders = %d }\n", d.dropOut,
		d.colluders)
	if d.committee {
		fmt.Fprintf(&b, "sum = { protocol = \"oneshot\", committee = \"c\", faults = %d }\n", d.faults)
	} else {
		fmt.Fprintf(&b, "sum.adversary = %q\n", d.adversary)
	}
	b.WriteString("[[model.tensor]]\nname = \"w\"\nshape = [6]\n[privacy]\nclip = 1.0\n")
	b.WriteString("noise = \"discrete-gaussian\"\n")
	fmt.Fprintf(&b, "multiplier = %v\ndelta = %v\n", d.multiplier, d.delta)
	if d.epsilon > 0 {
		fmt.Fprintf(&b, "epsilon = %v\n", d.epsilon)
	}
	if d.study > 0 {
		fmt.Fprintf(&b, "study = %v\n", d.study)
	}
	if d.unit != "" {
		fmt.Fprintf(&b, "unit = %q\nrecords = 100\nsubmit_after = \"1s\"\n", d.unit)
	}
	if d.committee {
		b.WriteString("noise_by = \"committee\"\n")
	}
	if d.before != nil {
		b.WriteString("before = \"before.json\"\n")
	}
	return b.String()
}

func (d *declaration) settle() (*job.Settled, error) {
	members := 0
	if d.committee {
		members = 7
	}
	return settle(d.text(), chainParties, members, d.before)
}

// played is a job of a game.
type played struct {
	declaration
	f        *job.Settled
	after    *played // that it continues; nil: none
	left     int     // submissions of the party
	guard    *drive.Guard
	open     bool            // the party takes part, and has not seen it end
	earlier  map[*played]int // submissions of those that it continues, when it began
	answered map[uint64]bool
	states   []drive.Guard // that were saved
}

// counted are submissions of a job.
type counted struct {
	*played
	often int
}

// until are a job and those that it continues, with what had left of these when it began.
func (p *played) until() []counted {
	out := []counted{{p, p.left}}
	for o, often := range p.earlier {
		out = append(out, counted{o, often})
	}
	return out
}

// now are jobs with all that has left.
func now(of []*played) (out []counted) {
	for _, p := range of {
		out = append(out, counted{p, p.left})
	}
	return out
}

// smallest is how many shares of the noise hide the party from a server of the given declaration,
// in the smallest sum that it may have of this job.
func (p *played) smallest(against *declaration) int {
	strength := map[string]int{"curious": 1, "semi-malicious": 2, "cheating": 3}
	strong := func(d *declaration) int {
		if d.committee {
			return 3
		}
		return strength[d.adversary]
	}
	switch {
	case strong(&p.declaration) < strong(against):
		return 1 // it reads single inputs: the party's own share is left
	case p.committee && !against.committee:
		return 0 // of members that the other declaration trusts nobody for
	case p.committee:
		return 7 - 2*max(p.faults, against.faults)
	}
	fewest := chainParties - int(math.Floor(p.dropOut*chainParties+1e-9))
	return max(1, fewest-against.colluders)
}

// spent is a lower bound on what has left of some jobs, at δ, to a server of the given
// declaration, nil: of each one's own. It is of an integer vector as long as is charged for, under
// noise of the honest shares, which is a continuous normal law's once one of variance 2 is added.
func spent(of []counted, against *declaration, delta float64) float64 {
	square := 0.0
	for _, p := range of {
		if p.often == 0 {
			continue
		}
		who := against
		if who == nil {
			who = &p.declaration
		}
		r := p.f.Round()
		sigma, norm := r.Update.ShareSigma, r.Update.Sensitivity.L2
		v := sigma * sigma * float64(p.smallest(who))
		if p.committee { // and what hides the keys of parties, each 6.4² of it
			v += 41 * chainParties
		}
		if r.SecretRate > 0 && r.SecretRate < 1 {
			continue // a coin lessens it: left out of a lower bound
		}
		square += float64(p.often) * math.Floor(norm*norm*(1-1e-12)) / (v + 2)
	}
	mu := math.Sqrt(square)
	if mu == 0 {
		return 0
	}
	curve := func(e float64) float64 {
		return math.Erfc((e/mu-mu/2)/math.Sqrt2)/2 - math.Exp(e)*math.Erfc((e/mu+mu/2)/math.Sqrt2)/2
	}
	lo, hi := 0.0, 600.0
	for range 100 {
		if mid := (lo + hi) / 2; curve(mid) > delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// game is one, against one book.
type game struct {
	random *rand.Rand
	book   *Book
	now    time.Time
	policy *Policy
	all    []*played // that were declared, whether or not the party took part
	log    []string
}

func (g *game) note(format string, a ...any) { g.log = append(g.log, fmt.Sprintf(format, a...)) }

func choose[T any](g *game, of ...T) T { return of[g.random.IntN(len(of))] }

// first is a declaration that continues none.
func (g *game) first() declaration {
	d := declaration{rounds: 1 + g.random.IntN(4), epsilon: choose(g, 1.0, 1, 2), delta: 1e-5,
		multiplier: choose(g, 6.0, 9, 12), adversary: choose(g, "cheating", "curious", "curious"),
		dropOut: choose(g, 0.13, 0.26, 0.38), colluders: g.random.IntN(3)}
	switch g.random.IntN(6) {
	case 0:
		d.epsilon = 0 // none is promised
	case 1, 2, 3:
		d.study = d.epsilon
	}
	if g.random.IntN(4) == 0 {
		d.committee, d.faults, d.dropOut, d.adversary = true, 1+g.random.IntN(2), 0.13, ""
	}
	return d
}

// next is a declaration that continues another, with a field or two of its own.
func (g *game) next(of *played) declaration {
	d := of.declaration
	for range 1 + g.random.IntN(2) {
		switch g.random.IntN(14) {
		case 0:
			d.epsilon = choose(g, d.epsilon*2, d.epsilon, 20)
		case 1:
			d.delta = choose(g, 1e-4, 1e-3, 1e-2, 0.1, 1e-6)
		case 2:
			d.study = choose(g, 0, 1, 50, d.epsilon)
		case 3, 12:
			if d.colluders = g.random.IntN(5); d.committee {
				d.colluders, d.faults = g.random.IntN(3), 3-d.faults
			}
		case 4, 11:
			d.adversary, d.committee = choose(g, "cheating", "curious", "semi-malicious"), false
		case 5, 13:
			d.committee, d.faults = true, 1+g.random.IntN(2)
			d.dropOut, d.adversary = 0.13, ""
		case 6:
			d.rounds = 1 + g.random.IntN(6)
		case 7:
			d.multiplier = choose(g, 0.5, 2, 6, 12)
		case 8:
			d.dropOut = choose(g, 0.13, 0.26, 0.38)
		case 9:
			d.unit = choose(g, "", "record")
		case 10: // by what it has seen: less noise after little
			if of.left == 0 {
				d.multiplier = 1
			}
		}
	}
	d.before = g.record(of)
	return d
}

// record is of what a job has spent, as an operator writes it: as it was, shortened, or
// forged.
func (g *game) record(of *played) []byte {
	ledger, err := of.f.Ledger()
	if err != nil || ledger == nil {
		return nil
	}
	left, study, plan := of.left, of.f.Study(), of.f.StudyPlan()
	kind := g.random.IntN(8)
	round := of.f.Round()
	switch kind {
	case 0:
		left = 0
	case 1:
		left = left / 2
	case 2: // other lines of the same ε, or nearly
		round.Update.ShareSigma *= 2
		left *= 4
	case 3: // of a coin that nobody tossed
		round.SecretRate = 0.01
	case 4:
		other, err := accounting.NewBudget(round.Statement, choose(g, 50, of.epsilon), of.delta)
		if study = &other; err != nil || g.random.IntN(3) == 0 {
			study = nil
		}
		plan = choose(g, accounting.GaussianPlan, accounting.AddsPlan)
	case 5: // nothing of what was before
		budget, err := accounting.NewBudget(round.Statement, of.epsilon, of.delta)
		if err == nil {
			ledger, err = accounting.NewLedger(budget)
		}
		if err != nil {
			return nil
		}
	}
	if left > 0 {
		if err := ledger.SpendRounds(round, left, bookParty); err != nil {
			return nil // more than its budget
		}
	}
	b := job.Before{Federation: idOf(of.f), Study: study, Plan: plan, Ledger: ledger}
	text, err := b.MarshalText()
	if err != nil {
		return nil
	}
	g.note("its record is of kind %d, %d submissions", kind, left)
	return text
}

// study lists a job and all that continue it, on any branch.
func (g *game) study(first *played) (out []*played) {
	for _, p := range g.all {
		if slices.Contains(p.chain(), first) {
			out = append(out, p)
		}
	}
	return out
}

// chain lists a job and those that it continues.
func (p *played) chain() (out []*played) {
	for ; p != nil; p = p.after {
		out = append(out, p)
	}
	return out
}

// step has the server declare a job, and the party take part in it or not.
func (g *game) step(number int) error {
	var after *played
	var d declaration
	if len(g.all) == 0 || g.random.IntN(6) == 0 {
		d = g.first()
	} else {
		after = g.all[len(g.all)-1-g.random.IntN(min(2, len(g.all)))]
		d = g.next(after)
		if d.before == nil {
			after = nil
		}
	}
	d.name = fmt.Sprint("chain-", number)
	g.now = g.now.Add(time.Duration(g.random.IntN(60)) * 24 * time.Hour)
	f, err := d.settle()
	if err != nil {
		g.note("%s is refused by its job: %v", d.name, err)
		return nil
	}
	p := &played{declaration: d, f: f, after: after, earlier: map[*played]int{},
		answered: map[uint64]bool{}}
	for _, o := range after.chain() {
		p.earlier[o] = o.left
	}
	err = g.policy.Check(f)
	if err == nil {
		err = g.book.begin(g.policy, f, partyKey)
	}
	if err != nil {
		g.note("%s is refused by the party: %v", d.name, err)
		if after != nil && g.random.IntN(2) == 0 {
			if err := g.book.Decline(f); err != nil {
				return err
			}
			g.note("%s is passed over", d.name)
			g.all = append(g.all, p)
		}
		return nil
	}
	limits, err := f.Limits(seedOf(0).Public())
	if err == nil {
		p.guard, err = drive.NewGuard(limits, 0)
	}
	if err != nil {
		return err
	}
	g.note("%s is accepted: %+v", d.name, short(d))
	p.open = true
	g.all = append(g.all, p)
	return nil
}

// goOn has the server ask for rounds of the jobs that have not ended, in any order and some
// of them twice, and end some.
func (g *game) goOn() error {
	for _, p := range g.all {
		if !p.open || g.random.IntN(4) == 0 {
			continue
		}
		for range g.random.IntN(3 * p.rounds) {
			round := uint64(1 + g.random.IntN(p.rounds+1))
			if p.guard.Charge(round) != nil {
				continue
			}
			if p.answered[round] || round > uint64(p.rounds) {
				return fmt.Errorf("%w: round %d of %d is answered, and was before: %v", errGame, round,
					p.rounds, p.answered[round])
			}
			p.answered[round] = true
			p.left++
			p.states = append(p.states, *p.guard)
			if err := g.book.count(p.f, *p.guard); err != nil {
				return err
			}
			if g.random.IntN(8) == 0 {
				if err := g.setBack(p); err != nil {
					return err
				}
			}
		}
		g.note("%s: %d submissions have left", p.name, p.left)
		if err := g.judge(p); err != nil {
			return err
		}
		if g.random.IntN(2) == 0 { // else its end is not seen, now or ever
			g.note("%s ends", p.name)
			p.open = false
			if err := g.book.end(p.f, *p.guard); err != nil {
				return err
			}
		}
	}
	return nil
}

// setBack has the party go on with an older state, as after a backup was restored. Its book refuses
// that unless nothing has left since; then the owner says the last round in which something may
// have.
func (g *game) setBack(p *played) error {
	old := p.states[g.random.IntN(len(p.states))]
	err := g.book.count(p.f, old)
	g.note("%s: its state is set back to %d submissions: %v", p.name, old.Count(), err)
	switch {
	case err == nil:
		p.guard = &old
		return nil
	case !errors.Is(err, ErrBook):
		return err
	}
	limits, err := p.f.Limits(seedOf(0).Public())
	if err != nil {
		return err
	}
	p.guard, err = drive.NewGuard(limits, p.guard.Last())
	if err != nil {
		return err
	}
	return g.book.count(p.f, *p.guard)
}

func short(d declaration) declaration {
	d.before = nil
	return d
}

// errGame: a server has won.
var errGame = errors.New("a budget is overspent")

// judge holds what has left against all budgets that were stated and cover it.
func (g *game) judge(p *played) error {
	chain := p.chain()
	got := spent(p.until(), &p.declaration, p.delta)
	if p.epsilon > 0 && got > p.epsilon*(1+1e-9) {
		return fmt.Errorf("%w: %s may spend epsilon %v at delta %v with what it continues, and at "+
			"least %v has left", errGame, p.name, p.epsilon, p.delta, got)
	}
	// The first of a study states the budget of all that continue it.
	for i := len(chain) - 1; i >= 0; i-- {
		s := chain[i]
		if s.study == 0 || !s.f.Job().Noisy() {
			continue
		}
		if s.left == 0 && i > 0 {
			continue // nothing was said to the party about it
		}
		if got := spent(now(g.study(s)), &s.declaration, s.delta); got > s.study*(1+1e-9) {
			return fmt.Errorf("%w: the study that %s began may spend epsilon %v at delta %v, and at "+
				"least %v has left", errGame, s.name, s.study, s.delta, got)
		}
		break
	}
	if g.policy.MaxEpsilonYear == 0 {
		return nil
	}
	var year []*played
	for _, o := range g.all {
		if o.left > 0 { // a game takes less than a year or more: what is older counts no more
			year = append(year, o)
		}
	}
	if g.now.Sub(chainBegan) < 364*24*time.Hour {
		if got := spent(now(year), nil, g.policy.delta()); got > g.policy.MaxEpsilonYear*(1+1e-9) {
			return fmt.Errorf("%w: the policy allows epsilon %v a year, and at least %v has left",
				errGame, g.policy.MaxEpsilonYear, got)
		}
	}
	return nil
}

var chainBegan = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// play plays a game of a seed.
func play(t *testing.T, key *keyexchange.SealKey, seed uint64) (log []string, left int, err error) {
	t.Helper()
	g := &game{random: rand.New(rand.NewPCG(seed, 4)), now: chainBegan, policy: new(Policy)}
	g.book = &Book{File: filepath.Join(t.TempDir(), "book"), Key: key,
		Now: func() time.Time { return g.now }}
	if g.random.IntN(3) == 0 {
		g.policy.MaxEpsilonYear = 3
	}
	for number := 1; number <= 6 && err == nil; number++ {
		if err = g.step(number); err == nil {
			err = g.goOn()
		}
	}
	for _, p := range g.all {
		left += p.left
	}
	return g.log, left, err
}

// F4: no server wins.
func TestChains(t *testing.T) {
	games := 150
	if suite.Long() {
		games = 3000
	}
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	today := uint64(time.Now().UTC().Unix() / 86400)
	t.Logf("games of seeds from 1, and from %d by date", today*10_000)
	left, won := 0, 0
	for i := range games {
		seed := uint64(1 + i)
		if i%4 == 3 {
			seed += today * 10_000
		}
		log, n, err := play(t, key, seed)
		left += n
		if err == nil {
			continue
		}
		t.Errorf("F4 refutes a book (seed %d): %v\n  %s", seed, err, strings.Join(log, "\n  "))
		if won++; won == 3 {
			break
		}
	}
	t.Logf("%d submissions left", left)
	if won == 0 && left < games {
		t.Errorf("%d submissions in %d games: they are about nothing", left, games)
	}
}

// A server that has seen the outcome of one job chooses the next: of all declarations that the
// party accepts, or none, the one that tells most of what is still in doubt. The probability of
// guessing right that this gains stays below the δ of the study that covers both.
//
// The same calculation refutes the figure that would hold if jobs were fixed ahead: of rounds with
// a coin, each path has an ε of 1, and the choice by outcome has not.
func TestLateChoice(t *testing.T) {
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	game := func(seed uint64) (first *played, next []*played) {
		g := &game{random: rand.New(rand.NewPCG(seed, 5)), now: chainBegan, policy: new(Policy)}
		g.book = &Book{File: filepath.Join(t.TempDir(), "book"), Key: key,
			Now: func() time.Time { return g.now }}
		d := declaration{name: "first", rounds: 3, epsilon: 1, study: 1, delta: 1e-5, dropOut: 0.26,
			multiplier: choose(g, 9.0, 12, 16), adversary: "cheating"}
		f, err := d.settle()
		if err == nil {
			err = g.book.begin(g.policy, f, partyKey)
		}
		if err != nil {
			t.Fatal(err)
		}
		first = &played{declaration: d, f: f, left: 1}
		limits, err := f.Limits(partyKey)
		if err != nil {
			t.Fatal(err)
		}
		if first.guard, err = drive.NewGuard(limits, 1); err == nil {
			err = g.book.count(f, *first.guard)
		}
		if err != nil {
			t.Fatal(err)
		}
		for number := range 12 {
			d := first.declaration
			d.name = fmt.Sprint("next-", number)
			d.rounds, d.multiplier = 1+g.random.IntN(8), choose(g, 3.0, 4, 6, 9, 12, 24)
			if d.before = g.record(first); d.before == nil {
				continue
			}
			f, err := d.settle()
			if err != nil || g.policy.Check(f) != nil || g.book.Check(g.policy, f, partyKey) != nil {
				continue
			}
			limits, err := f.Limits(partyKey)
			if err != nil {
				continue
			}
			guard, err := drive.NewGuard(limits, 0)
			p := &played{declaration: d, f: f}
			for round := uint64(1); err == nil && guard.Charge(round) == nil; round++ {
				p.left++
			}
			next = append(next, p)
		}
		return first, next
	}
	choices := 0
	for seed := range uint64(6) {
		first, next := game(seed)
		by := []shifted{{}}
		for _, p := range next {
			by = append(by, shifted{mu: muOf(p)})
		}
		choices += len(next)
		if got := chosenLate(muOf(first), by, first.study); got > first.delta {
			t.Errorf("seed %d: of %d jobs after %+v the choice has delta %v at epsilon %v, want at most %v",
				seed, len(next), short(first.declaration), got, first.study, first.delta)
		}
	}
	if choices < 12 {
		t.Errorf("%d jobs to choose from: they are about nothing", choices)
	}
	coin := []shifted{{mu: 0.179}, {mu: 1.445, rate: 0.01}}
	for _, one := range coin {
		if got := chosenLate(0.2, []shifted{one}, 1); got > 1.03e-5 {
			t.Errorf("%+v alone has delta %v", one, got)
		}
	}
	if got := chosenLate(0.2, coin, 1); got < 1.7e-5 {
		t.Errorf("the choice between a coin and none has delta %v, want some 1.8e-5", got)
	}
}

// muOf is how far apart all that left of a job is with and without the party, in deviations: as
// spent has it.
func muOf(p *played) float64 {
	r := p.f.Round()
	variance := r.Update.ShareSigma * r.Update.ShareSigma * float64(p.smallest(&p.declaration))
	norm := r.Update.Sensitivity.L2
	return math.Sqrt(float64(p.left) * math.Floor(norm*norm*(1-1e-12)) / (variance + 2))
}

// shifted is a pair of laws: N(0, 1), and N(mu, 1) with a probability of rate, 0: 1.
type shifted struct{ mu, rate float64 }

// delta is the most that the probability of an event under the second law is above e^epsilon times
// the one under the first.
func (s shifted) delta(epsilon float64) float64 {
	if s.mu == 0 {
		return max(0, 1-math.Exp(epsilon))
	}
	rate := s.rate
	if rate == 0 {
		rate = 1
	}
	// (1−q)·N(0) + q·N(μ) − e^ε·N(0) is q times the same of N(μ) at this threshold.
	over := (math.Exp(epsilon) - 1 + rate) / rate
	if over <= 0 {
		return 1 - math.Exp(epsilon)
	}
	e := math.Log(over)
	above := func(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }
	return rate * (above(e/s.mu-s.mu/2) - over*above(e/s.mu+s.mu/2))
}

// chosenLate is delta at epsilon of one law N(mu, 1) for N(0, 1), and then of that of the given
// ones which gains most at the outcome: by the midpoints of cells of a thousandth.
func chosenLate(mu float64, next []shifted, epsilon float64) (delta float64) {
	const cell = 1e-3
	for x := -12.0; x < 12; x += cell {
		outcome := mu + x
		most := 0.0
		for _, s := range next {
			most = max(most, s.delta(epsilon-mu*outcome+mu*mu/2))
		}
		delta += most * math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) * cell
	}
	return delta
}
