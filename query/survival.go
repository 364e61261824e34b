package query

import "math"

// This file has survival curves (Kaplan, Meier 1958) on the grid of a column's bins. The vector has
// two numbers of each bin: the rows that were last known about in it, and those that the event came
// to.
//
// The curve of the rows depends on their order within a bin, which nobody is told. With d events
// and c lost of N rows at risk, a bin's factor is Π (1 − 1/n) over its events, where n, the rows at
// risk at an event, is N less the events and the lost before it. It is least if all lost go first,
// (N − c − d)/(N − c), and greatest if all events do, (N − d)/N; both can be. So the curve of the
// rows is between the products of these at the end of each bin. Where each bin is one value of a
// column of whole numbers, events come before the lost of the same time, by the convention for
// ties, and the greater one is the curve of the rows.

// lifetimes splits the numbers of a survival curve and returns how many rows are at risk at the
// beginning of each bin.
func lifetimes(x []float64) (lost, came, risk []float64) {
	bins := len(x) / 2
	risk = make([]float64, bins)
	left := 0.0
	for bin := bins - 1; bin >= 0; bin-- {
		left += x[2*bin] + x[2*bin+1]
		risk[bin] = left
	}
	for bin := range bins {
		lost, came = append(lost, x[2*bin]), append(came, x[2*bin+1])
	}
	return lost, came, risk
}

// curve is a survival curve, at the end of each bin.
type curve struct {
	left  []float64 // the share of rows that the event has not come to
	noise []float64 // how far noise of deviation 1 in each number moves the logarithm of left
	drawn []float64 // the variance of the logarithm by which rows were drawn (Greenwood 1926)
}

// newCurve returns the curve if a share of the lost of each bin goes before its events.
func newCurve(lost, came, risk []float64, early float64) (out curve) {
	// The logarithm is Σ ln(m_i − d_i) − ln m_i over bins i up to this one, where m is N less the
	// lost that went early, and a row of bin k is in N_i for all i up to k. after sums
	// 1/(m_i − d_i) − 1/m_i up to a bin; before squares of what is in bins up to this one.
	left, after, before, drawn := 1.0, 0.0, 0.0, 0.0
	for k := range risk {
		at := risk[k] - early*lost[k]
		stay := at - came[k]
		if at > 0 {
			left *= max(0, stay) / at
		}
		earlier := after
		if stay > 0 {
			after += came[k] / stay / at
			gone, event := earlier+(1-early)*came[k]/stay/at, earlier-1/at
			before += gone*gone + event*event
			drawn += came[k] / stay / at
		} else if came[k] > 0 || at <= 0 {
			after, before, drawn = math.Inf(1), math.Inf(1), math.Inf(1)
		}
		later := float64(2 * (len(risk) - 1 - k))
		moved := before
		if later > 0 {
			moved += later * after * after
		}
		out.left = append(out.left, left)
		out.noise = append(out.noise, math.Sqrt(moved))
		out.drawn = append(out.drawn, drawn)
	}
	return out
}

// curves returns the least curve that rows can have, one with half of the lost of each bin at risk
// of its events, and the greatest.
func (a *ask) curves(lost, came, risk []float64) (least, middle, greatest curve) {
	greatest = newCurve(lost, came, risk, 0)
	if a.column.oneEach() {
		return greatest, greatest, greatest
	}
	return newCurve(lost, came, risk, 1), newCurve(lost, came, risk, 0.5), greatest
}

// ends returns the ends of an interval for a curve between two: each with so many deviations of
// noise, and of rows that were drawn, on the scale of logarithms.
func ends(least, greatest curve, bin int, reach, drawn float64) (low, high float64) {
	off := func(c curve) float64 {
		out := 0.0
		if reach > 0 {
			out = reach * c.noise[bin]
		}
		if drawn > 0 {
			out = math.Hypot(out, drawn*math.Sqrt(c.drawn[bin]))
		}
		return out
	}
	if least.left[bin] > 0 {
		low = least.left[bin] * math.Exp(-off(least))
	}
	switch {
	case greatest.left[bin] > 0:
		high = greatest.left[bin] * math.Exp(off(greatest))
	case drawn > 0: // none is left of those that were drawn, which says little of others
		high = 1
	}
	return low, high
}

// survival reads a curve: the share of rows that the event has not come to by the end of each bin.
// Intervals are to first order in the noise, and whatever the order within bins; where fewer rows
// are at risk than noise leaves to tell, they go down to 0.
func (s *sum) survival(a *ask, noisy []float64, reach float64) (out Answer) {
	x := projected(noisy, s.most())
	lost, came, risk := lifetimes(x)
	least, middle, greatest := a.curves(lost, came, risk)
	if s.absent > 0 { // at worst the event comes to all of them now; at best to none
		early := 1.0
		if a.column.oneEach() {
			early = 0
		}
		more := make([]float64, len(risk))
		for bin, n := range risk {
			at := n - early*lost[bin]
			least.left[bin] *= max(0, at) / (max(0, at) + s.absent)
			more[bin] = n + s.absent
		}
		greatest = newCurve(lost, came, more, 0)
	}
	tell := leastRows * reach / z95 * math.Sqrt(2*float64(len(risk)))
	high, highest := 1.0, 1.0
	for bin := range risk {
		c := Cell{Label: a.column.until(bin), Value: middle.left[bin]}
		p := c
		if reach == 0 || risk[bin]-came[bin] > tell {
			var low, lowest float64
			low, c.High = ends(least, greatest, bin, reach, 0)
			lowest, p.High = ends(least, greatest, bin, reach, z95)
			if reach == 0 || risk[bin]-lost[bin]-came[bin] > tell || a.column.oneEach() {
				c.Low, p.Low = low, lowest
			}
			high, highest = min(high, c.High), min(highest, p.High)
		} else {
			tell = math.Inf(1) // and of no later bin
			c = hides("how many rows are at risk by then", reach, c.Label, 0, high)
		}
		c.High, p.High = high, highest
		if c.Unknown == "" {
			c, p = c.within(0, 1), p.within(0, 1)
		}
		out.Cells = append(out.Cells, c)
		out.Population = append(out.Population, [2]float64{p.Low, p.High})
		out.Grid = append(out.Grid, max(0, greatest.left[bin]-least.left[bin]))
	}
	return out
}

// evenly returns half of the interval in the middle of a curve of the given number of rows,
// spread evenly over bins, half of them with the event, and how much of it the order within bins
// leaves.
func (a *ask) evenly(rows, reach float64) (margin, grid float64) {
	x := make([]float64, 2*a.column.bins)
	for i := range x {
		x[i] = rows / float64(len(x))
	}
	least, _, greatest := a.curves(lifetimes(x))
	middle := (a.column.bins - 1) / 2
	low, high := ends(least, greatest, middle, reach, 0)
	return (high - low) / 2, (greatest.left[middle] - least.left[middle]) / 2
}
