package falsify

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/training"
)

// coins come up as they are told to: eight bytes each, as training tosses them.
type coins []bool

func (c *coins) Read(b []byte) (int, error) {
	for i := 0; i < len(b); i += 8 {
		up := len(*c) > 0 && (*c)[0]
		if len(*c) > 0 {
			*c = (*c)[1:]
		}
		for k := range 8 {
			b[i+k] = 0xff
			if up {
				b[i+k] = 0
			}
		}
	}
	return len(b), nil
}

// ofRecords has a party sum the gradients of its records, with one of them and without. The coins
// of the others are the same.
func ofRecords(s *job.Settled, random *rand.Rand) error {
	tr, err := training.Of(s)
	if err != nil {
		return err
	}
	o := tr.Options()
	most := o.Records.Coins.Count
	n := 1 + random.IntN(min(most, 12))
	if random.IntN(8) == 0 {
		n = most + random.IntN(2)
	}
	perPerson := 1
	if o.Records.Persons {
		perPerson = 3
	}
	rows := anyRows(random, o.Model, n, perPerson)
	units := unitsOf(rows, o.Records.Persons)
	out := random.IntN(len(units))
	if random.IntN(2) == 0 {
		out = 0 // the others may be alike
	}
	up := make([]bool, len(units))
	for i := range up {
		up[i] = i == out || random.IntN(4) > 0
	}
	limit := o.Records.Coins.Most()
	for i := range up { // more is an overrun, whose probability is charged
		if drawn(up) > limit && i != out {
			up[i] = false
		}
	}
	weights := anyWeights(random, o.Model, rows, units[(out+1)%len(units)][0])
	broadcast := broadcastOf(random)
	noise, dither := random.Uint64(), random.Uint64()
	send := func(rows *learning.Dataset, up coins) ([][]uint64, error) {
		party, err := tr.Party(0, rows, nil)
		if err != nil {
			return nil, refusal(err)
		}
		standing := tr.First()
		standing.Model, standing.Public, standing.Number = slices.Clone(weights), broadcast, 1
		toss := up
		o.Records.Random = &toss
		m, err := party.Message(context.Background(), standing)
		if err != nil { // then zeros leave
			return blank(s, sourceOf(noise, dither))
		}
		return s.Encode(broadcast, m, sourceOf(noise, dither))
	}
	with, err := send(rows, up)
	if err != nil {
		return leaves(s, nil, err)
	}
	var rest []int
	for i, unit := range units {
		if i != out {
			rest = append(rest, unit...)
		}
	}
	slices.Sort(rest)
	without, err := without(s, rows, rest, slices.Delete(slices.Clone(up), out, out+1), send,
		sourceOf(noise, dither))
	if err != nil {
		return leaves(s, nil, err)
	}
	return within(minus(with, without, s.Layout()), s.Round())
}

// without sends what is left of rows, or zeros if there is none.
func without(
	s *job.Settled, rows *learning.Dataset, rest []int, up coins,
	send func(rows *learning.Dataset, up coins) ([][]uint64, error), zeros source,
) ([][]uint64, error) {
	if len(rest) == 0 {
		return blank(s, zeros)
	}
	left, err := rows.Subset(rest)
	if err != nil {
		return nil, err
	}
	return send(left, up)
}

func drawn(up []bool) (n int) {
	for _, x := range up {
		if x {
			n++
		}
	}
	return n
}

// unitsOf are the rows of each record or person, in the order of their first ones.
func unitsOf(rows *learning.Dataset, persons bool) (units [][]int) {
	at := map[int]int{}
	for i := range rows.Len() {
		k, known := at[rows.Writers[i]]
		if !persons || !known {
			k = len(units)
			at[rows.Writers[i]] = k
			units = append(units, nil)
		}
		units[k] = append(units[k], i)
	}
	return units
}

// ofSums has a program of the party's own add up what its records make, each within the clip.
func ofSums(s *job.Settled, random *rand.Rand) error {
	c := s.Coins()
	n := 1 + random.IntN(min(c.Most, 40))
	if random.IntN(4) == 0 {
		n = min(c.Most, 1500)
	}
	out := random.IntN(n)
	d := s.Length()
	with, without := make([]float64, d), make([]float64, d)
	alike, short := random.IntN(2) == 0, random.IntN(3) == 0
	if short { // a sum as long as sums may be, which has the fewest digits left
		alike, n = true, min(c.Most, 1500)
		out = random.IntN(n)
	}
	var last []float64
	for i := range n {
		v := anyVector(random, d, c.Clip)
		if short {
			for k := range v {
				v[k] = c.Clip * random.NormFloat64()
			}
		}
		if alike && last != nil && i != out {
			v = slices.Clone(last)
		}
		last = slices.Clone(v)
		if !clipped(v, c.Clip) {
			continue
		}
		for k, x := range v {
			with[k] += x
			if i != out {
				without[k] += x
			}
		}
	}
	broadcast, noise, dither := broadcastOf(random), random.Uint64(), random.Uint64()
	if short { // in half the memory, if that is accepted
		a, err := encodeTo(s, broadcast, shortened(with), sourceOf(noise, dither))
		if err != nil {
			return nil
		}
		b, err := encodeTo(s, broadcast, shortened(without), sourceOf(noise, dither))
		if err != nil {
			return err
		}
		return within(minus(a, b, s.Layout()), s.Round())
	}
	a, err := encodeTo(s, broadcast, with, sourceOf(noise, dither))
	if err != nil {
		return err
	}
	b, err := encodeTo(s, broadcast, without, sourceOf(noise, dither))
	if err != nil {
		return err
	}
	return within(minus(a, b, s.Layout()), s.Round())
}

func shortened(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

// clipped clips a vector, and reports whether there is anything to add.
func clipped(v []float64, clip float64) bool {
	square := 0.0
	for _, x := range v {
		square += (x / clip) * (x / clip)
	}
	if math.IsNaN(square) || math.IsInf(square, 0) {
		return false
	}
	if norm := math.Sqrt(square); norm > 1 {
		for i := range v {
			v[i] /= norm * (1 + 0x1p-50)
		}
	}
	return true
}

// plans are made once: their figures take longer than a neighbour.
var plans sync.Map

func planOf(s *job.Settled) (*query.Plan, error) {
	if p, found := plans.Load(s); found {
		return p.(*query.Plan), nil
	}
	p, err := query.New(s)
	if err == nil && !suite.Long() {
		plans.Store(s, p)
	}
	return p, err
}

// ofRows has a party answer queries, with a row and without: where noise hides a party, with all of
// them and with none.
func ofRows(s *job.Settled, random *rand.Rand) error {
	plan, err := planOf(s)
	if err != nil {
		return err
	}
	j := s.Job()
	n := 1 + random.IntN(6)
	if random.IntN(6) == 0 {
		n = plan.Counted() + random.IntN(2)
	}
	var lines []string
	for range min(n, 60) {
		lines = append(lines, anyLine(random, j.Column))
	}
	broadcast, noise, dither := broadcastOf(random), random.Uint64(), random.Uint64()
	var model []float64 // of a fit, or of a server that says anything
	if plan.Rounds() > 1 && random.IntN(3) > 0 {
		model = make([]float64, plan.Length())
		for i := range model {
			model[i] = math.Round(random.ExpFloat64()*4) * math.Exp(random.NormFloat64()*float64(i%4))
		}
		if random.IntN(4) == 0 {
			model[random.IntN(len(model))] = pick(random, math.NaN(), math.Inf(1), -1, -1e300)
		}
	}
	send := func(lines []string) ([][]uint64, error) {
		text := header(j.Column) + "\n" + strings.Join(lines, "\n") + "\n"
		rows, _, err := query.NewSchema(j).Read("a.csv", strings.NewReader(text), nil)
		if err == nil {
			err = plan.Check("a.csv", rows)
		}
		if err != nil {
			return nil, refusal(err)
		}
		vector, err := plan.Vector(rows, model)
		if err != nil {
			return nil, err
		}
		m := job.Update[float64]{Vector: vector, Samples: 1}
		return s.Encode(broadcast, m, sourceOf(noise, dither))
	}
	with, err := send(lines)
	if err != nil {
		return leaves(s, nil, err)
	}
	var without [][]uint64
	if at := random.IntN(len(lines)); j.PerRecord() && len(lines) > 1 {
		without, err = send(slices.Delete(slices.Clone(lines), at, at+1))
	} else {
		without, err = blank(s, sourceOf(noise, dither))
	}
	if err != nil {
		return leaves(s, nil, err)
	}
	return within(minus(with, without, s.Layout()), s.Round())
}

func header(columns []job.Column) string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return strings.Join(names, ",")
}

// endOf draws a value that counts.
func endOf(random *rand.Rand, c *job.Column) string {
	switch {
	case c.Numeric():
		return strconv.FormatFloat(c.Range[random.IntN(2)], 'g', -1, 64)
	case c.Type == "text":
		return pick(random, "flu", "жук")
	}
	return pick(random, c.Categories...)
}

// anyLine draws the text of a row.
func anyLine(random *rand.Rand, columns []job.Column) string {
	var values []string
	whole := random.IntN(2) == 0 // nothing is missing, and numbers are the ends of their ranges
	for _, c := range columns {
		if whole {
			values = append(values, endOf(random, &c))
			continue
		}
		text := pick(random, "", "a", "b", "d", "flu", "жук", "nineteen characters", "?")
		if c.Numeric() {
			x := c.Range[random.IntN(2)]
			if random.IntN(2) == 0 {
				x = c.Range[0] + random.Float64()*(c.Range[1]-c.Range[0])
			}
			if random.IntN(4) == 0 {
				x = pick(random, 0, 1, 2.5, -7, 1e300, 20, 30, 40, 5e-324, math.Copysign(0, -1))
			}
			if c.Type == "whole" {
				x = math.Round(x)
			}
			text = strconv.FormatFloat(x, 'g', -1, 64)
			if random.IntN(20) == 0 {
				text = ""
			}
		}
		values = append(values, text)
	}
	return strings.Join(values, ",")
}
