package query

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/privacy"
)

// Plan holds all queries of a settled job, compiled into one vector. It is safe for concurrent
// use.
type Plan struct {
	settled *job.Settled
	job     *job.Job
	asks    []ask
	groups  []*together // of queries that are answered together
	length  int
}

// ask is a query with its place in the vector.
type ask struct {
	*job.Query
	conditions []condition
	event      []condition // of survival, Cox's and a logistic model
	column, by *axis       // nil: the query has none
	on         []*axis     // of a model
	logit      *logit      // of a logistic model
	steps      *steps      // of a model by steps
	group      *together   // of which it is a member; nil: it is answered by itself
	member     int
	from       int // first coordinate
	length     int
	code       *code             // of frequent words
	weight     float64           // L2 norm of what a row adds, 0 without noise
	scale      float64           // of what a unit row adds to the vector
	exact      bool              // without noise, and of whole numbers
	root       float64           // largest magnitude of the range
	spends     *accounting.Claim // see [Answer]
}

// condition is one of a query, with the place of its column.
type condition struct {
	job.Condition
	at int
}

// New compiles the queries of a settled job. It fails with [ErrConfig] if the job has none, and
// with the errors of the accounting.
func New(settled *job.Settled) (*Plan, error) {
	j := settled.Job()
	if !j.Asks() {
		return nil, fmt.Errorf("%w: the job has no queries", ErrConfig)
	}
	p, err := newPlan(settled, j.Together())
	if err != nil {
		return nil, err
	}
	if p.length != settled.Length() {
		return nil, fmt.Errorf("%w: the job's vector has %d numbers, its queries %d", ErrConfig,
			settled.Length(), p.length)
	}
	return p, nil
}

// newPlan compiles the queries of a settled job, of which groups are answered together.
func newPlan(settled *job.Settled, groups []job.Together) (*Plan, error) {
	j := settled.Job()
	p := &Plan{settled: settled, job: j}
	for i := range j.Query {
		a, err := p.compile(&j.Query[i])
		if err != nil {
			return nil, err
		}
		p.asks = append(p.asks, a)
	}
	for i := range p.asks {
		a := &p.asks[i]
		if k := slices.IndexFunc(groups, func(g job.Together) bool {
			return slices.Contains(g.Queries, i)
		}); k >= 0 {
			if i == groups[k].Queries[0] {
				p.groups = append(p.groups, p.newTogether(&groups[k], p.asks))
				p.length += len(groups[k].Strategy.Counts)
			}
			a.group = p.groups[slices.IndexFunc(p.groups, func(t *together) bool {
				return slices.Contains(t.asks, i)
			})]
			a.member = slices.Index(a.group.asks, i)
		} else {
			a.from = p.length
			p.length += a.length
		}
		var err error
		if a.spends, err = p.alone(a); err != nil {
			return nil, fmt.Errorf("query: %s: %w", a.Name, err)
		}
	}
	return p, nil
}

// compile works one query out.
func (p *Plan) compile(q *job.Query) (ask, error) {
	a := ask{Query: q, length: 1, scale: 1}
	place := func(name string) int {
		return slices.IndexFunc(p.job.Column, func(c job.Column) bool { return c.Name == name })
	}
	on := func(name string, bins int) *axis {
		k := place(name)
		if k < 0 {
			return nil
		}
		c := &p.job.Column[k]
		if c.Type == "category" {
			bins = len(c.Words())
		}
		return &axis{Column: c, at: k, bins: bins}
	}
	a.column, a.by = on(q.Column, q.Bins), on(q.By, q.ByBins)
	for _, name := range q.On {
		a.on = append(a.on, on(name, 0))
	}
	for _, from := range []struct {
		read func(*job.Query) ([]job.Condition, error)
		into *[]condition
	}{{p.job.Conditions, &a.conditions}, {p.job.Event, &a.event}} {
		conditions, err := from.read(q)
		if err != nil {
			return a, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		for _, c := range conditions {
			*from.into = append(*from.into, condition{c, place(c.Column)})
		}
	}
	if a.column != nil && a.column.Numeric() {
		a.root = max(math.Abs(a.column.Range[0]), math.Abs(a.column.Range[1]))
	}
	parts := 1.0 // coordinates that a row changes by 1 at most, all at once
	switch q.Kind {
	case "sum":
		a.exact = a.column.Type == "whole"
		parts = a.root * a.root
	case "mean":
		a.length, parts = 2, 2
	case "variance":
		a.length, parts = 3, 3
	case "covariance":
		a.length, parts = 4, 4
	case "correlation":
		a.length, parts = 6, 6
	case "survival":
		a.length, a.exact = 2*a.column.bins, true
	case "logrank":
		a.length, a.exact = 2*a.column.bins*a.by.bins, true
	case "cindex":
		a.length, a.exact = 2*a.column.bins*a.by.bins, true
	case "evaluation":
		a.length, a.exact = 2*q.Bins, true
		if a.by != nil {
			a.length *= a.by.bins
		}
	case "linear":
		a.length = products(len(a.on) + 2)
		parts = float64(a.length)
	case "logistic", "cox", "poisson":
		if p.job.Steps(q) {
			a.steps = newSteps(p.job, q, a.column, a.by, a.on)
			a.length = a.steps.length()
			break
		}
		a.logit = newLogit(a.on, p.job.Degree(q), p.job.Noisy())
		a.length = a.logit.length()
	case "histogram":
		a.length, a.exact = a.column.bins, true
	case "crosstab":
		a.length, a.exact = a.column.bins*a.by.bins, true
	case "quantiles":
		a.length, a.exact = 2*a.column.bins-1, true
		parts = float64(bits.Len(uint(a.column.bins))) // levels
	case "heavy":
		a.code = newCode(p.job.Name, q.Name, q.Buckets(), a.column.Longest)
		a.length = a.code.buckets * a.code.width()
	default:
		a.exact = true
	}
	if !p.job.Noisy() {
		return a, nil
	}
	a.exact = false
	a.weight = math.Sqrt(q.Share)
	a.scale = a.weight / math.Sqrt(parts)
	if !p.job.PerRecord() {
		a.scale /= float64(p.job.Parties.Rows)
	}
	return a, nil
}

// Length returns how many numbers a party's vector has.
func (p *Plan) Length() int { return p.length }

// Counted returns how many rows of a party count at most; if there are more, [Plan.Vector] takes
// the first. Where noise hides a party it is parties.rows. Where it hides a record, all that
// parties.rows expects count, and more, up to privacy.records: otherwise removing a row would let
// in one that was left out, and a record would move the sum by two rows instead of one.
func (p *Plan) Counted() int {
	if p.job.PerRecord() {
		return p.job.Privacy.Records
	}
	return p.job.Parties.Rows
}

// Check fails with a [RowsError] if a party has more rows than all parties have records,
// according to the job, where noise hides a record: ε would then protect no row. File is the name
// of the rows.
func (p *Plan) Check(file string, rows *Rows) error {
	if !p.job.PerRecord() || rows.Len() <= p.Counted() {
		return nil
	}
	return &RowsError{File: file,
		Reason: fmt.Sprintf("it has %d rows, and privacy.records says that all parties together "+
			"have %d: noise hides a row if all count", rows.Len(), p.Counted()),
		Advice: "declare that many in the job, or bring fewer, chosen by what each row is by itself"}
}

// Vector returns what a party contributes to the sum of a round, from rows that a [Schema] of the
// same job has read: from those that count, see [Plan.Counted]. It is as secret as the rows are.
// The model is that with which the round begins; nil: the first, and there is only one if no query
// takes several (see [Plan.Rounds]). Queries of one round are asked in the first. It fails with
// [ErrConfig] if the model is not one that [Plan.Next] has made.
func (p *Plan) Vector(rows *Rows, model []float64) ([]float64, error) {
	if err := p.takes(model); err != nil {
		return nil, err
	}
	v := make([]float64, p.length)
	if p.Rounds() > 1 {
		p.step(v, rows, model)
		if p.done(model) > 0 {
			return v, nil
		}
	}
	bins := make([]int32, len(p.asks))
	for _, row := range rows.values[:min(len(rows.values), p.Counted())] {
		for i := range p.asks {
			if p.asks[i].group == nil && p.asks[i].steps == nil {
				p.asks[i].add(v[p.asks[i].from:], row, rows.words)
			}
		}
		for _, t := range p.groups {
			t.add(v[t.from:], row, p.asks, bins)
		}
	}
	return v, nil
}

// Vectors returns a function that is [Plan.Vector] of these rows, round by round. What does not
// depend on the model is computed at once, before a round that it would delay.
func (p *Plan) Vectors(rows *Rows) (func(model []float64) ([]float64, error), error) {
	if p.Rounds() > 1 {
		return func(model []float64) ([]float64, error) { return p.Vector(rows, model) }, nil
	}
	vector, err := p.Vector(rows, nil)
	return func([]float64) ([]float64, error) { return slices.Clone(vector), nil }, err
}

// step adds rows to queries of several rounds.
func (p *Plan) step(v []float64, rows *Rows, model []float64) {
	for i := range p.asks {
		a := &p.asks[i]
		if a.steps == nil {
			continue
		}
		kept := make([]float64, a.length)
		if model != nil {
			copy(kept, model[a.from:])
		}
		f := a.steps.begin(kept, p.job.Noisy())
		scale := a.scale * p.louder(p.done(model))
		for _, row := range rows.values[:min(len(rows.values), p.Counted())] {
			if !a.counts(row) {
				continue
			}
			came, known := a.came(row)
			if known {
				a.steps.add(v[a.from:], row, came, f, scale)
			}
		}
	}
}

// counts reports whether all conditions hold for a row.
func (a *ask) counts(row []float64) bool {
	for i := range a.conditions {
		if c := &a.conditions[i]; !c.Holds(row[c.at]) {
			return false
		}
	}
	return true
}

// add adds a row to a query's coordinates, if it counts. Its texts are places among words.
func (a *ask) add(v, row []float64, words []string) {
	if !a.counts(row) {
		return
	}
	x, y, bin := 0.0, 0.0, 0
	if a.column != nil {
		if x = row[a.column.at]; math.IsNaN(x) {
			return
		}
		if a.column.Numeric() {
			y = a.column.scaled(x)
		}
		bin = a.column.bin(x)
	}
	switch a.Kind {
	case "sum":
		v[0] += a.scale * x
	case "mean":
		v[0] += a.scale
		v[1] += a.scale * y
	case "variance":
		v[0] += a.scale
		v[1] += a.scale * y
		v[2] += a.scale * (2*y*y - 1) // its norm is least where y² is between 0 and 1
	case "covariance", "correlation":
		other := row[a.by.at]
		if math.IsNaN(other) {
			return
		}
		z := a.by.scaled(other)
		for i, term := range []float64{1, y, z, y * z, 2*y*y - 1, 2*z*z - 1}[:a.length] {
			v[i] += a.scale * term
		}
	case "survival":
		came, known := a.came(row)
		if known {
			v[2*bin+came] += a.scale
		}
	case "logrank":
		group := row[a.by.at]
		if came, known := a.came(row); known && !math.IsNaN(group) {
			v[2*(a.by.bin(group)*a.column.bins+bin)+came] += a.scale
		}
	case "cindex":
		score := row[a.by.at]
		if came, known := a.came(row); known && !math.IsNaN(score) {
			v[2*(bin*a.by.bins+a.by.bin(score))+came] += a.scale
		}
	case "evaluation":
		came, known := a.came(row)
		group := 0.0
		if a.by != nil {
			group = row[a.by.at]
		}
		if known && !math.IsNaN(group) {
			at := min(int(job.ScorePlace(x)*float64(a.Bins)), a.Bins-1)
			v[2*(int(group)*a.Bins+at)+came] += a.scale
		}
	case "logistic":
		came, known := a.came(row)
		if known {
			a.logit.add(v, row, float64(came)-0.5, a.scale)
		}
	case "linear":
		terms := []float64{1}
		for _, on := range a.on {
			if math.IsNaN(row[on.at]) {
				return
			}
			terms = append(terms, on.scaled(row[on.at]))
		}
		terms = append(terms, y)
		at := 0
		for i := range terms {
			for _, term := range terms[i:] {
				v[at] += a.scale * terms[i] * term
				at++
			}
		}
	case "crosstab":
		other := row[a.by.at]
		if math.IsNaN(other) {
			return
		}
		v[bin*a.by.bins+a.by.bin(other)] += a.scale
	case "heavy":
		word := words[int(x)]
		bucket, _ := a.code.place(word)
		for i, sign := range a.code.vector(word) {
			v[bucket*a.code.width()+i] += a.scale * sign
		}
	case "quantiles":
		for node := a.column.bins + bin; node > 0; node /= 2 {
			v[node-1] += a.scale
		}
	default:
		v[bin] += a.scale
	}
}

// came returns 1 if the event has come to a row, and 0 if not, and whether the row tells.
func (a *ask) came(row []float64) (came int, known bool) {
	came = 1
	for i := range a.event {
		c := &a.event[i]
		if math.IsNaN(row[c.at]) {
			return 0, false
		}
		if !c.Holds(row[c.at]) {
			came = 0
		}
	}
	return came, true
}

// Spent returns what all answers together spend of one unit's privacy, against the server;
// without noise it has no bound.
func (p *Plan) Spent() (accounting.Claim, error) {
	if !p.job.Noisy() {
		return accounting.NewClaim(accounting.Calculated(p.job.Unit()), accounting.Figures{
			Bound: accounting.Bound{Upper: math.Inf(1)}}), nil
	}
	return p.settled.Round().Spent(accounting.ServerView, p.Rounds(), p.job.Privacy.Delta)
}

// alone bounds what a query would spend if it were the only one, with the noise that it has: by
// the accounting of a release of its own.
func (p *Plan) alone(a *ask) (*accounting.Claim, error) {
	m := p.settled.Mechanism()
	if m == nil {
		return nil, nil
	}
	weight, numbers := a.weight, a.length
	if a.group != nil {
		weight = math.Sqrt(a.group.Share) * a.group.norm(a.member)
		numbers = a.bins()
	}
	if weight == 0 { // it counts nothing
		none := accounting.NewClaim(p.settled.Statement(),
			accounting.Figures{Delta: p.job.Privacy.Delta})
		return &none, nil
	}
	multiplier := m.Vector.SumStdDev(m.Vector.Shares.MinHonest) / m.Vector.Sensitivity.L2
	release := privacy.Release{
		Promise: p.settled.Promise(),
		Noise: privacy.Noise{
			Family:     accounting.FamilyDiscreteGaussian,
			Multiplier: multiplier / weight,
			Clip:       p.job.Privacy.Clip,
			Bits:       max(p.job.Privacy.Bits, m.Encoder.Bits),
		},
		Dimension: numbers,
		Records:   p.job.Records(),
		Overrun:   p.settled.Round().Overrun,
		Assumes:   p.settled.Statement().Assumes(),
	}
	round, err := release.Round()
	for ; errors.Is(err, noise.ErrTooLarge) && release.Noise.Bits > 16; round, err = release.Round() {
		release.Noise.Bits -= 4 // the finest that could be sampled
	}
	if err != nil {
		return nil, err
	}
	rounds := 1
	if a.steps != nil {
		rounds = p.Rounds()
	}
	spent, err := round.Spent(accounting.ServerView, rounds, p.job.Privacy.Delta)
	return &spent, err
}
