package committee

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/shamir"
)

// exact is the variance of keys, and of errors in exact sums: 6.4².
var exact = big.NewRat(1024, 25)

// law samples a discrete Gaussian law. nil randomness means crypto/rand.
func law(variance *big.Rat, random io.Reader) (*noise.Sampler, error) {
	l, err := noise.DiscreteGaussian(variance)
	if err != nil {
		return nil, err
	}
	table, err := noise.NewTable(l)
	if err != nil {
		return nil, err
	}
	return table.NewSampler(random), nil
}

// masked returns a·key + T·e + input, not packed, for a in transformed form.
func (w *world) masked(a []uint64, key, input []int64) ([]uint64, error) {
	sampler, err := law(exact, nil)
	if err != nil {
		return nil, err
	}
	size := length + w.figures.Spare
	e := make([]int64, size)
	if err := sampler.Fill(e); err != nil {
		return nil, err
	}
	for i := range e {
		e[i] *= w.figures.Scale
		if i < length {
			e[i] += input[i]
		}
	}
	r := ring.New(degree, w.figures.Modulus)
	y := make([]uint64, degree)
	r.MulInto(y, a, r.NewFactor(key))
	r.AddSigned(y[:size], e)
	return y[:size], nil
}

// runMasks reads inputs off masked values.
func runMasks(r *runner) error {
	w, err := newWorld(r.o.Seed, 0, true)
	if err != nil {
		return err
	}
	rq := ring.New(degree, w.figures.Modulus)
	zero := make([]uint64, degree)

	// A party that takes a from the server gets zero, and sends its input and noise.
	y, err := w.masked(zero, victimKey(), w.inputs[0])
	if err != nil {
		return err
	}
	d, err := w.submit(0)
	if err != nil {
		return err
	}
	r.counts("a chosen by the server", "inputs recovered exactly",
		slices.Equal(w.reduce(rq, y), w.inputs[0]),
		slices.Equal(w.read(d.masked, make([]int64, degree)), w.inputs[0]))

	// A party that answers twice under one context and with one key gives the difference.
	a := make([]uint64, degree)
	rq.NewExpander(&[32]byte{1}).Expand(a, 0)
	var two [2][]uint64
	for i := range two {
		if two[i], err = w.masked(a, victimKey(), w.inputs[i]); err != nil {
			return err
		}
	}
	rq.SubFrom(two[0], two[1])
	difference := minus(w.inputs[0], w.inputs[1])
	party, err := oneshot.NewParty(w.config, w.partyKeys[0], nil)
	if err != nil {
		return err
	}
	if _, err := party.Submit(w.opening, []byte(model), w.inputs[0]); err != nil {
		return err
	}
	_, err = party.Submit(w.opening, []byte(model), w.inputs[1])
	r.counts("one key for two answers", "differences recovered exactly",
		slices.Equal(w.reduce(rq, two[0]), difference),
		!errors.Is(err, oneshot.ErrReplay))
	return w.solve(r)
}

// solve finds the key of a toy ring of degree 64 from 64 coordinates whose input is known, by
// Gaussian elimination: without errors the result is the key, with errors it is not.
func (w *world) solve(r *runner) error {
	const n = 64
	q := w.figures.Modulus
	rq := ring.New(n, q)
	sampler, err := law(exact, nil)
	if err != nil {
		return err
	}
	key, e := make([]int64, n), make([]int64, n)
	if err := errors.Join(sampler.Fill(key), sampler.Fill(e)); err != nil {
		return err
	}
	a := make([]uint64, n)
	rq.NewExpander(&[32]byte{2}).Expand(a, 0)
	columns := make([][]uint64, n) // a·X^j
	for j := range columns {
		unit := make([]int64, n)
		unit[j] = 1
		columns[j] = make([]uint64, n)
		rq.MulInto(columns[j], a, rq.NewFactor(unit))
	}
	found := func(e []int64) bool {
		y := make([]uint64, n)
		rq.MulInto(y, a, rq.NewFactor(key))
		rq.AddSigned(y, e)
		return slices.Equal(gauss(columns, y, q), key)
	}
	r.counts("errors left out", "keys found by elimination", found(make([]int64, n)), found(e))
	return r.errors()
}

// errors takes the sum of the keys off sums of what honest parties sent, as a server does, and
// measures what is left under the inputs. Without errors it would be nothing.
func (r *runner) errors() error {
	const rounds = 10
	var squares []float64
	for i := range rounds {
		w, err := newWorld(r.o.Seed+uint64(i), 0, true)
		if err != nil {
			return err
		}
		var set []*dealing
		total := make([]int64, length+w.figures.Spare)
		for party := range parties {
			d, err := w.submit(party)
			if err != nil {
				return err
			}
			set = append(set, d)
			for k, v := range w.inputs[party] {
				total[k] += v
			}
		}
		key, ok, err := w.sum(all, set)
		if err != nil || !ok {
			return fmt.Errorf("there is no sum of honest parties: %w", err)
		}
		rq := ring.New(degree, w.figures.Modulus)
		for k, y := range w.unmasked(rq, w.add(set...), key) {
			e := float64((rq.Centred(y) - total[k]) / w.figures.Scale)
			squares = append(squares, e*e)
		}
	}
	n := len(squares)
	mean, _ := attacks.MeanAndError(squares)
	variance, _ := exact.Float64()
	// Of 200 normal errors the mean square is so far out with a probability below 1e-6.
	r.rows = append(r.rows, attacks.Row{Case: "errors under the sum of keys",
		Metric: "variance, of what Parameters reckons with", Defended: attacks.Near(
			mean/(variance*parties), math.Sqrt(2/float64(n)), n, 1)})
	return nil
}

// gauss solves Σ x_j·columns[j] = y modulo q and returns x, centred; nil if there is none.
func gauss(columns [][]uint64, y []uint64, q uint64) []int64 {
	n := len(y)
	modulus := new(big.Int).SetUint64(q)
	rows := make([][]*big.Int, n)
	for i := range rows {
		for j := range columns {
			rows[i] = append(rows[i], new(big.Int).SetUint64(columns[j][i]))
		}
		rows[i] = append(rows[i], new(big.Int).SetUint64(y[i]))
	}
	for i := range n {
		at := slices.IndexFunc(rows[i:], func(row []*big.Int) bool { return row[i].Sign() != 0 })
		if at < 0 {
			return nil
		}
		rows[i], rows[i+at] = rows[i+at], rows[i]
		inverse := new(big.Int).ModInverse(rows[i][i], modulus)
		for j := i; j <= n; j++ {
			rows[i][j].Mul(rows[i][j], inverse).Mod(rows[i][j], modulus)
		}
		for k := range n {
			if k == i || rows[k][i].Sign() == 0 {
				continue
			}
			factor := new(big.Int).Set(rows[k][i])
			for j := i; j <= n; j++ {
				rows[k][j].Sub(rows[k][j], new(big.Int).Mul(factor, rows[i][j])).Mod(rows[k][j], modulus)
			}
		}
	}
	out := make([]int64, n)
	for i := range out {
		x := rows[i][n].Uint64()
		out[i] = int64(x)
		if x > q/2 {
			out[i] -= int64(q)
		}
	}
	return out
}

// runBroadcast gives a victim an opening with another model than the members'.
func runBroadcast(r *runner) error {
	const victim = 1
	var taken [2]bool
	for i, real := range []bool{false, true} {
		w, err := newWorld(r.o.Seed, 0, real)
		if err != nil {
			return err
		}
		other := *w
		other.opening = slices.Clone(w.opening)
		copy(other.opening[46:], h(labels.OneshotBroadcast, []byte("another model")))
		var set []*dealing
		for party := range 3 {
			d, err := w.submit(party)
			if err != nil {
				return err
			}
			if party == victim && !real { // its context does not have the broadcast
				parts, err := w.split(victimKey())
				if err != nil {
					return err
				}
				if d, err = w.deal(0, party, d.masked, parts, w.partyKeys[party]); err != nil {
					return err
				}
			} else if party == victim {
				p, err := oneshot.NewParty(w.config, w.partyKeys[party], nil)
				if err != nil {
					return err
				}
				message, err := p.Submit(other.opening, []byte("another model"), w.inputs[party])
				if err != nil {
					return err
				}
				d = w.parse(party, message[46:])
			}
			set = append(set, d)
		}
		if _, taken[i], err = w.sum(all, set); err != nil {
			return err
		}
	}
	r.counts("", "sums over two models", taken[0], taken[1])
	r.rows[0].Note = "without the defence the context is the same for every broadcast"
	return nil
}

// runRamp counts what pooled parts say of the secrets of one polynomial: with f of them nothing,
// where its uniform coefficients are, and with each one more an equation.
func runRamp(r *runner) error {
	const privacy = 2 // f
	p := shamir.Packing{PerPolynomial: 3, Privacy: privacy}
	fixed, err := equations(p, privacy, repeats{})
	if err != nil {
		return err
	}
	learnt, err := equations(p, privacy, nil)
	if err != nil {
		return err
	}
	more, err := equations(p, privacy+1, nil)
	if err != nil {
		return err
	}
	const metric = "equations a polynomial"
	r.rows = append(r.rows,
		attacks.Row{Case: "f parts", Metric: metric, Undefended: attacks.Exactly(fixed, 1, privacy),
			Defended: attacks.Exactly(learnt, 1, 0), Note: "undefended: coefficients that are known"},
		attacks.Row{Case: "f + 1 parts", Metric: metric, Defended: attacks.Exactly(more, 1, 1),
			Limit: true, Note: "a ramp: each part beyond f tells something"})
	return r.league(metric)
}

// league has more members pool their parts than may be faulty: four of eight, where f is 1. A fifth
// is one more than the committee is made for. Where members are parties, four in league are four
// parties too.
func (r *runner) league(metric string) error {
	const pool, faults, committee = 4, 1, 8
	terms := oneshot.Terms{Length: length, Bits: 8, MinSurvivors: pool + 2, Colluders: pool,
		Faults: faults}
	var known, more [2]float64
	for i, inLeague := range []int{faults, pool} {
		terms.InLeague = inLeague
		f, err := oneshot.Parameters(committee, committee, terms)
		if err != nil {
			return err
		}
		p := shamir.Packing{PerPolynomial: f.PerPolynomial, Privacy: f.InLeague}
		if known[i], err = equations(p, pool, nil); err != nil {
			return err
		}
		if more[i], err = equations(p, pool+1, nil); err != nil {
			return err
		}
	}
	r.rows = append(r.rows, attacks.Row{Case: "4 parts of 8, f = 1", Metric: metric,
		Undefended: attacks.Exactly(known[0], 1, pool-faults), Defended: attacks.Exactly(known[1], 1, 0),
		Note: "undefended: t is f; with: t is 4"},
		attacks.Row{Case: "t + 1 parts of 8, t = 4", Metric: metric,
			Defended: attacks.Exactly(more[1], 1, 1), Limit: true,
			Note: "one party more in league than the committee is made for"})

	// With c = 3, sums of five parties are of one honest party for four in league.
	terms.InLeague, terms.Colluders, terms.MinSurvivors = pool, pool-1, pool+1
	var taken [2]bool
	for i, kind := range []byte{'m', 'p'} {
		_, roster, err := identities('p', committee)
		if err != nil {
			return err
		}
		_, members, err := identities(kind, committee)
		if err != nil {
			return err
		}
		c := &oneshot.Config{Label: "attacks", Roster: roster, Committee: members, Terms: terms}
		_, err = c.Parameters()
		if err != nil && !errors.Is(err, oneshot.ErrRoles) {
			return err
		}
		taken[i] = err == nil
	}
	r.counts("4 in league are parties, and 3 parties are to collude", "sums of one honest party",
		taken[0], taken[1])
	r.rows[len(r.rows)-1].Note = "without: keys that nobody compares; with: a configuration that is " +
		"refused"
	return nil
}
