package query

import "math"

// mean reads a count and a sum of y, where a value is mid + half·y. Its interval is Fieller's: the
// μ for which the sum less μ times the count is within its noise.
func (s *sum) mean(a *ask, x []float64, reach float64) Cell {
	n, total := x[0], x[1]
	c := Cell{Low: -1, High: 1}
	if square := n*n - reach*reach; n > 0 && square > 0 {
		middle := n * total / square
		half := reach * math.Sqrt(max(0, n*n+total*total-reach*reach)) / square
		c.Value, c.Low, c.High = total/n, middle-half, middle+half
		if s.absent > 0 { // all of them at one end
			rows := max(1, n-reach)
			c.Low = (rows*c.Low - s.absent) / (rows + s.absent)
			c.High = (rows*c.High + s.absent) / (rows + s.absent)
		}
	}
	c = c.within(-1, 1)
	mid, half := a.column.mid(), a.column.half()
	c.Value, c.Low, c.High = mid+half*c.Value, mid+half*c.Low, mid+half*c.High
	return c.within(a.column.Range[0], a.column.Range[1])
}

// leastRows is how many deviations of its noise a count must have for the interval of a variance to
// be more than all that can be: below, it is no longer linear.
const leastRows = 5

// variance reads a count, and sums of y and 2y² − 1. Its interval is to first order in the noise.
func (s *sum) variance(a *ask, x []float64, reach float64) Cell {
	n := x[0]
	c := Cell{Low: 0, High: 1}
	if n > leastRows*reach/z95 && n > 0 {
		mean, square := x[1]/n, x[2]/n
		value := (square+1)/2 - mean*mean
		// The derivatives by the three numbers, times n.
		off := reach / n * math.Sqrt(0.25+4*mean*mean+math.Pow(2*mean*mean-square/2, 2))
		c.Value, c.Low, c.High = value, value-off, value+off
		if s.absent > 0 {
			c.Low, c.High = mixed(c.Low, c.High, mean, max(1, n-reach), s.absent)
		}
	}
	c = c.within(0, 1)
	unit := a.column.half() * a.column.half()
	return Cell{Value: unit * c.Value, Low: unit * c.Low, High: unit * c.High}
}

// mixed bounds the variance of rows when more of them are added anywhere in −1 to 1: at the mean,
// or at the ends, for which all parts of them are tried, and all shares at both ends.
func mixed(low, high, mean, rows, more float64) (least, most float64) {
	part := more / (rows + more)
	least, most = (1-part)*max(0, low), high
	const steps = 64
	for i := range steps + 1 {
		p := part * float64(i) / steps
		for k := range steps + 1 {
			at := 2*float64(k)/steps - 1 // mean of those at both ends
			most = max(most, (1-p)*high+p*(1-at*at)+p*(1-p)*(mean-at)*(mean-at))
		}
	}
	return least, most
}
