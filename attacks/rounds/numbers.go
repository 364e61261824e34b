package rounds

import (
	"math"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// sealKey seals states that stay in memory.
var sealKey = keyexchange.SealKey{1}

// runRoundAgain has a coordinator ask for what it has had, or may not have.
func runRoundAgain(r *runner) error {
	for _, run := range []func(*runner) error{runAgain, runBeyond} {
		if err := run(r); err != nil {
			return err
		}
	}
	return nil
}

// runAgain holds the one round of a job again, with a coordinator that knows nothing of it and no
// longer lets one party connect. The sums differ by what that party has submitted.
func runAgain(r *runner) error {
	again := func(forget bool) (recovered, most, declined int, err error) {
		w, err := newWorld(r, options{rounds: 1, deaf: true})
		if err != nil {
			return 0, 0, 0, err
		}
		if err = w.join(); err == nil {
			err = w.run(w.ended)
		}
		if err != nil {
			return 0, 0, 0, err
		}
		w.parties[bad].away = true
		for _, p := range w.parties[:bad] {
			if forget {
				err = p.renew(true)
			}
			if err != nil {
				return 0, 0, 0, err
			}
		}
		if err = w.resume(0, 0, 0); err == nil {
			err = w.run(w.ended)
		}
		for _, p := range w.parties {
			most, declined = max(most, len(p.submitted)), declined+p.declined
		}
		sums := w.sumsOf(1)
		for _, s := range sums[1:] {
			if equal(minus(sums[0].values, s.values), w.parties[bad].vector) {
				recovered++
			}
		}
		return recovered, most, declined, err
	}
	without, twice, _, err := again(true)
	if err != nil {
		return err
	}
	with, once, declined, err := again(false)
	if err != nil {
		return err
	}
	const name = "less one party"
	r.measured(name, "inputs recovered exactly", 1, exactly(without, 1), exactly(with, 0))
	r.measured(name, "submissions in one round", 2, exactly(twice, 2), exactly(once, 1))
	r.refusals(name, declined, bad)
	return nil
}

// runBeyond has a coordinator go on after the last round that parties have agreed to.
func runBeyond(r *runner) error {
	const agreed, asked = 1, 4
	beyond := func(limit uint64) (sums, declined int, err error) {
		w, err := newWorld(r, options{rounds: asked})
		if err != nil {
			return 0, 0, err
		}
		for _, p := range w.parties {
			p.limit = limit
		}
		if err = w.join(); err == nil {
			err = w.run(w.ended)
		}
		for _, p := range w.parties {
			declined += p.declined
		}
		return len(w.sums) - agreed, declined, err
	}
	without, _, err := beyond(math.MaxUint64)
	if err != nil {
		return err
	}
	with, declined, err := beyond(agreed)
	if err != nil {
		return err
	}
	const name = "after the last round"
	r.measured(name, "sums beyond the plan", asked-agreed, exactly(without, asked-agreed),
		exactly(with, 0))
	r.refusals(name, declined, parties*(asked-agreed))
	return nil
}

// refusals adds a row of how often guards have refused, which only the target with them does.
func (r *runner) refusals(name string, got, want int) {
	r.rows = append(r.rows, attacks.Row{Case: name, Metric: "refused by guards",
		Defended: exactly(got, float64(want)).measure(want)})
}

// runNumbersTold has parties lie about numbers, and a coordinator propose one that is far away.
func runNumbersTold(r *runner) error {
	for _, run := range []func(*runner) error{runNumber, runRound, runFar} {
		if err := run(r); err != nil {
			return err
		}
	}
	return nil
}

// lied plays a job of six rounds in which some parties lie.
func lied(r *runner, colluders int, lie func(p *party), liars ...int) (*world, error) {
	w, err := newWorld(r, options{rounds: 6, colluders: colluders})
	if err != nil {
		return nil, err
	}
	for _, i := range liars {
		lie(w.parties[i])
	}
	if err = w.join(); err == nil {
		err = w.run(w.ended)
	}
	return w, err
}

// runNumber has parties say that they may join no session but the last that there can be.
func runNumber(r *runner) error {
	far := func(p *party) { p.least = math.MaxUint64 }
	without, err := lied(r, 0, far, bad-1, bad)
	if err != nil {
		return err
	}
	with, err := lied(r, 2, far, bad-1, bad)
	if err != nil {
		return err
	}
	alone, err := lied(r, 0, far, bad)
	if err != nil {
		return err
	}
	const name, metric, jump = "two of a session's number", "numbers passed over", 1 << 20
	passed := func(w *world) float64 { return float64(w.number) - float64(w.forms) }
	r.measured(name, metric, jump, count{passed(without), jump, math.Inf(1)},
		count{passed(with), 0, 0})
	r.measured(name, "rounds lost, of 6", 6, unmeasured, exactly(with.lost, 0))
	r.measured("one of a session's number, c = 0", metric, jump, unmeasured,
		count{passed(alone), 0, 0})
	return nil
}

// runRound has parties say that all rounds were held.
func runRound(r *runner) error {
	done := func(p *party) { p.told = p.world.rounds }
	without, err := lied(r, 0, done, bad-1, bad)
	if err != nil {
		return err
	}
	with, err := lied(r, 2, done, bad-1, bad)
	if err != nil {
		return err
	}
	alone, err := lied(r, 0, done, bad)
	if err != nil {
		return err
	}
	const metric = "sums, of 6"
	r.measured("two of the job's round", metric, 6, exactly(len(without.sums), 0),
		exactly(len(with.sums), 6))
	r.measured("one of the job's round, c = 0", metric, 6, unmeasured, exactly(len(alone.sums), 6))
	return nil
}

// runFar proposes to a party the last possible number, and then, as it should, the least that the
// party may use. A party without bounds is one to which the far number was the least.
func runFar(r *runner) error {
	joins := func(least uint64) (int, error) {
		w, err := newWorld(r, options{rounds: 1})
		if err != nil {
			return 0, err
		}
		p := w.parties[0]
		if err := p.begin(0, least); err != nil {
			return 0, err
		}
		if err := p.machine.Receive(joining(protocol.MaxNumber)); err != nil {
			return 0, err
		}
		p.machine.Ready()
		p.machine.Advance()
		if err := p.machine.Receive(joining(max(1, p.machine.Hello().Least))); err != nil {
			return 0, err
		}
		ready, _ := p.machine.Ready()
		joined := slices.ContainsFunc(ready.Reports, func(r drive.Report) bool {
			return r.Kind == drive.Joined
		})
		if joined {
			return 1, nil
		}
		return 0, nil
	}
	without, err := joins(protocol.MaxNumber)
	if err != nil {
		return err
	}
	with, err := joins(0)
	if err != nil {
		return err
	}
	r.measured("coordinator names the last number", "sessions that the party may join", 1,
		exactly(without, 0), exactly(with, 1))
	return nil
}

func joining(number uint64) drive.Item { return drive.Item{Kind: drive.Join, Session: number} }
