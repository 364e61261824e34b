package query

import "math"

// This file has survival curves (Kaplan, Meier 1958) on the grid of a column's bins. The vector has
// two numbers of each bin: the rows that were last known about in it, and those that the event came
// to. Within a bin events count before rows that are lost.

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

// slopes returns, for each bin, the length of the gradient of the logarithm of the curve at its
// end, by all numbers of the vector: how far noise of deviation 1 in each of them moves it. The
// given number of later bins follow these.
func slopes(came, risk []float64, later int) []float64 {
	// The logarithm is Σ ln(N_i − d_i) − ln N_i over bins i up to this one, and a row of bin k is
	// in N_i for all i up to k. after sums 1/(N_i − d_i) up to a bin, at 1/N_i.
	var after, at, before float64 // before: squares of what is in bins up to this one
	out := make([]float64, len(risk))
	for k := range risk {
		lower := after
		after += 1 / (risk[k] - came[k])
		at += 1 / risk[k]
		lost, event := after-at, lower-at
		before += lost*lost + event*event
		out[k] = math.Sqrt(before + 2*float64(len(risk)-1-k+later)*lost*lost)
	}
	return out
}

// survival reads a curve: the share of rows that the event has not come to by the end of each bin.
// Intervals are to first order, on the scale of logarithms; where fewer rows are at risk than noise
// leaves to tell, they go down to 0.
func (s *sum) survival(a *ask, noisy []float64, reach float64) (cells []Cell) {
	x := projected(noisy, s.most())
	_, came, risk := lifetimes(x)
	bins := len(risk)
	least := leastRows * reach / z95 * math.Sqrt(2*float64(bins))
	sure := bins // bins of which enough rows are at risk, and are left
	for bin := range bins {
		if !(risk[bin]-came[bin] > least) || !(risk[bin] > 0) {
			sure = bin
			break
		}
	}
	gradient := slopes(came[:sure], risk[:sure], bins-sure)
	value, high, more := 1.0, 1.0, 1.0
	for bin := range bins {
		if risk[bin] > 0 {
			value *= 1 - came[bin]/risk[bin]
		}
		c := Cell{Label: a.column.until(bin), Value: value, High: high}
		if bin < sure {
			off := reach * gradient[bin]
			c.Low, c.High = value*math.Exp(-off), value*math.Exp(off)
			if s.absent > 0 { // at worst the event comes to all of them now; at best to none
				more *= (1 - came[bin]/(risk[bin]+s.absent)) / (1 - came[bin]/risk[bin])
				c.Low, c.High = c.Low*risk[bin]/(risk[bin]+s.absent), c.High*more
			}
			high = min(high, c.High)
		}
		cells = append(cells, c.within(0, 1))
	}
	return cells
}

// evenly returns half of the interval in the middle of a curve of the given number of rows,
// spread evenly over bins, half of them with the event.
func (a *ask) evenly(rows, reach float64) float64 {
	bins := a.column.bins
	x := make([]float64, 2*bins)
	for i := range x {
		x[i] = rows / float64(len(x))
	}
	_, came, risk := lifetimes(x)
	middle, value := (bins-1)/2, 1.0
	for bin := range middle + 1 {
		value *= 1 - came[bin]/risk[bin]
	}
	return value * reach * slopes(came[:middle+1], risk[:middle+1], bins-1-middle)[middle]
}
