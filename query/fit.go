package query

import (
	"fmt"
	"math"
)

// This file has the server's part of models by steps: what is made of a round's sum, and what is
// answered in the end.
//
// The first rounds are Newton's steps. Then each round has coefficients θ, and its sums say that
// the information times (estimate − θ) is the score, with fresh noise in both: the estimate that
// all these rounds make together has the noise of their mean, and the next round is at that
// estimate. What noise in the information does to it is small, because it multiplies a difference
// that is small.

const (
	newtonSteps = 3 // rounds before those that count, at least
	newtonOdds  = 5 // of a logistic model, whose odds may be steep
	// Where the estimate is this far from the coefficients of a round, and by more than the noise of
	// a round makes it, in deviations, a model's curvature would bias what the round says: the count
	// begins again, in the first half of all rounds.
	farStep, farNoise = 0.4, 3.0
	longestStep       = 2.0 // of a coefficient, between two rounds
	// cutRow is how many times the events of the average row are expected of rows whose information
	// counts in full.
	cutRow = 2.0
	// leastPivot and leastKnown are how many deviations of its noise an information has at least, to
	// be inverted as it is, and for a coefficient to be known.
	leastPivot = 1.5
	leastKnown = 3
)

// progress holds all that the rounds so far say: the model that a round's broadcast has.
type progress struct {
	rounds  float64 // of which there is a sum; below 0: noise hid too much
	parties float64 // in the first sum
	cut     float64 // expected events of a row whose information counts in full
	kept    float64 // rounds that the estimate is made of
	// Variances of these rounds' noise, added up: of a score, and of an information.
	score, information float64
	square             float64   // Σ|θ|²
	theta              []float64 // coefficients of the next round
	right              []float64 // Σ information·θ + score
	sum                []float64 // Σ θ
	left               []float64 // Σ information
}

// fitLength is how many numbers a fit has.
func fitLength(size int) int { return 7 + 3*size + products(size) }

// fitOf reads a fit, whose lists are parts of the numbers.
func fitOf(v []float64, size int) *progress {
	return &progress{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7 : 7+size], v[7+size : 7+2*size],
		v[7+2*size : 7+3*size], v[7+3*size : 7+3*size+products(size)]}
}

// write writes the numbers that are not in lists.
func (f *progress) write(v []float64) {
	copy(v, []float64{f.rounds, f.parties, f.cut, f.kept, f.score, f.information, f.square})
}

func (f *progress) failed() bool { return f.rounds < 0 }

// begin is a fit before the first round.
func (s *steps) begin(v []float64, noisy bool) *progress {
	f := fitOf(v, s.size)
	if f.rounds != 0 {
		return f
	}
	if f.cut = min(1, s.most); !noisy {
		f.cut = s.most
	}
	if s.timed {
		for i := 0; i < s.baseline; i += len(s.terms[0]) {
			f.theta[i] = -math.Log(float64(len(s.terms)))
		}
	}
	return f
}

// matrix returns the symmetric matrix of a triangle.
func matrix(triangle []float64, size int) [][]float64 {
	out := make([][]float64, size)
	for i := range out {
		out[i] = make([]float64, size)
	}
	at := 0
	for i := range out {
		for k := i; k < size; k++ {
			out[i][k], out[k][i] = triangle[at], triangle[at]
			at++
		}
	}
	return out
}

// inverted returns the inverse of an information, of whose noise it is given the deviation: with as
// much added to its diagonal as makes all pivots stand out of that. It is nil if none is found.
func inverted(a [][]float64, deviation float64) [][]float64 {
	most := 0.0
	for i := range a {
		most = max(most, math.Abs(a[i][i]))
	}
	least := max(leastPivot*deviation, 1e-12*most)
	ridge := 0.0
	for ridge <= 1e3*(most+least) {
		if inv := inverse(a, least); inv != nil {
			return inv
		}
		more := max(ridge, least)
		for i := range a {
			a[i][i] += more
		}
		ridge += more
	}
	return nil
}

// next makes the fit after a round from its sum, in the scale of a row, with the deviation of its
// numbers. rounds is how many there are in all.
func (s *steps) next(
	f *progress, sum []float64, deviation float64, parties, rounds int, noisy bool,
) {
	byScore, byInformation := s.scales(f)
	f.rounds++
	score, information := make([]float64, s.size), make([]float64, s.products())
	for i := range score {
		score[i] = sum[i] / byScore
	}
	for i := range information {
		information[i] = sum[s.size+i] / byInformation
	}
	offScore, off := deviation/byScore, deviation/byInformation
	if f.rounds == 1 {
		f.parties = float64(parties)
		s.start(f, score, information, math.Hypot(offScore, off), off, noisy)
		return
	}
	last := int(f.rounds) == rounds
	first := newtonSteps
	if s.odds {
		first = newtonOdds
	}
	if !noisy {
		first = rounds - 1
	}
	if int(f.rounds) <= first {
		if inv := inverted(matrix(information, s.size), off); inv != nil {
			f.move(times(inv, score), false)
		}
		return
	}
	f.kept++
	f.score += offScore * offScore
	f.information += off * off
	now := times(matrix(information, s.size), f.theta)
	for i := range score {
		f.right[i] += now[i] + score[i]
		f.sum[i] += f.theta[i]
		f.square += f.theta[i] * f.theta[i]
	}
	for i, x := range information {
		f.left[i] += x
	}
	all := matrix(f.left, s.size)
	rest := times(all, f.sum)
	for i := range rest {
		rest[i] = f.right[i] - rest[i]/f.kept
	}
	inv := inverted(all, math.Sqrt(f.information))
	if inv == nil {
		f.rounds = -1
		return
	}
	step := times(inv, rest)
	for i := range step {
		step[i] += f.sum[i]/f.kept - f.theta[i]
	}
	far := false
	for i, x := range step {
		one := offScore * f.kept * math.Sqrt(dot(inv[i], inv[i])) // by noise, of a round
		far = far || math.Abs(x) > max(farStep, farNoise*one)
	}
	f.move(step, last)
	if far && 2*int(f.rounds) <= rounds {
		f.restart()
	}
}

// restart forgets what the estimate is made of, but not where it is.
func (f *progress) restart() {
	f.kept, f.score, f.information, f.square = 0, 0, 0, 0
	clear(f.right)
	clear(f.sum)
	clear(f.left)
}

// move makes a step, which is limited unless the fit ends with it.
func (f *progress) move(step []float64, last bool) {
	longest := 0.0
	for _, x := range step {
		longest = max(longest, math.Abs(x))
	}
	part := 1.0
	if !last {
		part = min(1, longestStep/longest)
	}
	for i, x := range step {
		f.theta[i] += part * x
		if !(math.Abs(f.theta[i]) <= steepest) {
			f.rounds = -1
		}
	}
}

func times(a [][]float64, x []float64) []float64 {
	out := make([]float64, len(x))
	for i := range a {
		for k := range x {
			out[i] += a[i][k] * x[k]
		}
	}
	return out
}

// start sets each baseline to what makes the expected events those that there were, with slopes of
// 0: from there a few of Newton's steps suffice.
func (s *steps) start(
	f *progress, score, information []float64, off, offInformation float64, noisy bool,
) {
	if s.odds {
		s.startOdds(f, score, information, off, noisy)
		return
	}
	width := len(s.terms[0])
	events, rows := 0.0, 0.0
	for i := 0; i < s.baseline; i += width {
		expected := information[triangle(i, i, s.size)]
		came := score[i] + expected
		if !(came > leastPivot*off && expected > leastPivot*offInformation) {
			f.rounds = -1
			return
		}
		f.theta[i] += math.Log(came / expected)
		events += came
		rows += expected
	}
	if noisy {
		// Of counts 1 is expected of each row at first; of follow-up no more than 1, so that rows are
		// at least so many, and the average row's events at most this.
		f.cut = min(s.most, cutRow*events/rows)
		if s.timed {
			f.cut = min(f.cut, 1)
		}
	}
}

// startOdds sets the intercept to the logarithm of the odds of all rows together.
func (s *steps) startOdds(f *progress, score, information []float64, off float64, noisy bool) {
	rows := 4 * information[0] // with slopes of 0 the variance is 1/4
	came := rows/2 + score[0]  // which has up to twice the noise of both
	if !(came > 2*leastPivot*off && rows-came > 2*leastPivot*off) {
		f.rounds = -1
		return
	}
	f.theta[0] = math.Log(came / (rows - came))
	if noisy {
		f.cut = min(s.most, cutRow*came/rows*(1-came/rows))
	}
}

// steps reads a model from its fit. Its intervals are for the model of all rows of the parties that
// are present.
func (s *sum) steps(a *ask, f *progress) (out Answer) {
	m := a.steps
	var inv [][]float64
	if !f.failed() {
		inv = inverted(matrix(f.left, m.size), math.Sqrt(f.information))
	}
	away := f.square // Σ |θ − estimate|², of the rounds that count
	for i, x := range f.theta {
		away += f.kept*x*x - 2*x*f.sum[i]
	}
	variance := f.score
	if f.kept > 0 {
		variance += f.information * max(0, away) / f.kept
	}
	labels := m.labels()
	for i, row := range m.inUnits() {
		c := Cell{Label: labels[i]}
		for k, x := range row {
			c.Value += x * f.theta[k]
		}
		noise, sampling, known := f.noise(inv, row, variance)
		if !known {
			out.Cells = append(out.Cells, hides("how its columns go with the outcome",
				variance, c.Label, math.Inf(-1), math.Inf(1)))
			out.Errors = append(out.Errors, math.NaN())
			continue
		}
		c.Low, c.High = c.Value-z95*noise, c.Value+z95*noise
		out.Cells = append(out.Cells, c)
		out.Errors = append(out.Errors, math.Hypot(math.Sqrt(sampling*f.kept), noise))
	}
	return out
}

// noise returns the deviation by noise, and the variance by sampling over the rounds that are kept,
// of what a row makes of the coefficients. inv is the inverse of all information, nil if there is
// none, and variance that of the scores; known says that noise does not hide it.
func (f *progress) noise(inv [][]float64, row []float64, variance float64) (
	noise, sampling float64, known bool,
) {
	if inv == nil {
		return 0, 0, false
	}
	length := 0.0
	for k, w := range times(inv, row) {
		length += w * w
		sampling += w * row[k]
	}
	// The information of the coefficient is 1/sampling, and may be less by one deviation of its
	// noise: intervals that ignored that would be too narrow.
	doubt := math.Sqrt(f.information) * length / sampling
	return math.Sqrt(variance*length) / (1 - doubt), sampling, leastKnown*doubt < 1
}

// Rounds returns how many rounds the queries take: each has a sum, of which [Plan.Next] makes the
// model that the next begins with.
func (p *Plan) Rounds() int { return p.settled.Rounds() }

// Next returns the model after a round, from the model that the round began with (nil: zeros) and
// the mean of the given number of parties' vectors. With one round that is the mean. It fails with
// [ErrConfig] as [Plan.Answers] does.
func (p *Plan) Next(model, mean []float64, parties int) ([]float64, error) {
	if err := p.fits(mean, parties); err != nil || p.Rounds() == 1 {
		return mean, err
	}
	next := make([]float64, p.length)
	if err := p.takes(model); err != nil {
		return nil, err
	}
	copy(next, model)
	rounds := p.done(model)
	if rounds == 0 {
		copy(next, mean)
	}
	over := p.over(parties)
	for i := range p.asks {
		a := &p.asks[i]
		if a.steps == nil {
			continue
		}
		v := next[a.from : a.from+a.length]
		clear(v)
		if model != nil {
			copy(v, model[a.from:])
		}
		scale := a.scale * p.louder(rounds)
		sums := make([]float64, a.length)
		for k := range sums {
			sums[k] = mean[a.from+k] * over / scale
		}
		f := a.steps.begin(v, p.job.Noisy())
		if !f.failed() {
			a.steps.next(f, sums, p.deviation(parties)/scale, parties, p.Rounds(), p.job.Noisy())
		}
		if f.failed() { // it counts on, so that all know which round it is
			f.rounds = -float64(rounds + 1)
		}
		f.write(v)
	}
	return next, nil
}

// Answered reports whether a model, of [Plan.Next], has seen all rounds: with several rounds there
// are no answers before.
func (p *Plan) Answered(model []float64) bool {
	return p.Rounds() == 1 || len(model) == p.length && p.done(model) == p.Rounds()
}

// takes fails if a model is not one of this plan.
func (p *Plan) takes(model []float64) error {
	if model != nil && len(model) != p.length {
		return fmt.Errorf("%w: a model of %d numbers, of %d", ErrConfig, len(model), p.length)
	}
	return nil
}

// done returns how many rounds a model has seen.
func (p *Plan) done(model []float64) int {
	if model == nil {
		return 0
	}
	for i := range p.asks {
		if p.asks[i].steps != nil {
			if n := math.Abs(model[p.asks[i].from]); n <= 1<<32 {
				return int(n)
			}
		}
	}
	return 0
}

// inFirst returns how many parties were in the first sum, according to a model.
func (p *Plan) inFirst(model []float64) int {
	for i := range p.asks {
		if p.asks[i].steps != nil {
			if n := model[p.asks[i].from+1]; n >= 0 && n <= 1<<32 {
				return int(n)
			}
		}
	}
	return 0
}

// louder is by how much queries of several rounds are scaled after some rounds: behind the first
// they have the budget alone.
func (p *Plan) louder(rounds int) float64 {
	if rounds == 0 || !p.job.Noisy() {
		return 1
	}
	share := 0.0
	for i := range p.asks {
		if p.asks[i].steps != nil {
			share += p.asks[i].Share
		}
	}
	return 1 / math.Sqrt(share)
}
