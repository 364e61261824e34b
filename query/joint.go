package query

import "math"

// This file has covariances and correlations: of y and z, columns scaled to −1 to 1, the count and
// the sums of y, z and yz, and of a correlation those of 2y² − 1 and 2z² − 1. Intervals are to
// first order in the noise.

// joint returns moments of y and z, and false if the noise leaves nothing of the count.
func (s *sum) joint(x []float64, reach float64) (n, y, z, yz float64, ok bool) {
	n = x[0]
	if !(n > leastRows*reach/z95) || n <= 0 {
		return 0, 0, 0, 0, false
	}
	return n, x[1] / n, x[2] / n, x[3] / n, true
}

// scaledCovariance has the covariance of y and z.
func (s *sum) scaledCovariance(x []float64, reach float64) Cell {
	n, y, z, yz, ok := s.joint(x, reach)
	if !ok {
		return Cell{Low: -1, High: 1}
	}
	value := yz - y*z
	// The derivatives by count and sums, times n.
	off := reach / n * math.Sqrt(1+y*y+z*z+math.Pow(2*y*z-yz, 2))
	c := Cell{Value: value, Low: value - off, High: value + off}
	if s.absent > 0 { // rows that are missing: of any covariance, and any means
		part := s.absent / (max(1, n-reach) + s.absent)
		far := part + part*(1-part)*(1+math.Abs(y))*(1+math.Abs(z))
		c.Low, c.High = (1-part)*c.Low-far, max(0, c.High)+far
		c.Low = min(c.Low, value-off-far)
	}
	return c.within(-1, 1)
}

func (s *sum) covariance(a *ask, x []float64, reach float64) Cell {
	c, unit := s.scaledCovariance(x, reach), a.column.half()*a.by.half()
	return Cell{Value: unit * c.Value, Low: unit * c.Low, High: unit * c.High}
}

// correlation has an interval that is even on Fisher's scale, artanh. If a variance is within its
// noise it is all that can be.
func (s *sum) correlation(a *ask, x []float64, reach float64) Cell {
	n, y, z, yz, ok := s.joint(x, reach)
	all := Cell{Low: -1, High: 1}
	if !ok {
		return all
	}
	squareY, squareZ := (x[4]/n+1)/2, (x[5]/n+1)/2
	u, w, v := squareY-y*y, squareZ-z*z, yz-y*z
	// Derivatives, times n, by: count, sums of y, z, yz, 2y² − 1 and 2z² − 1.
	du := [6]float64{0.5 - squareY + 2*y*y, -2 * y, 0, 0, 0.5, 0}
	dw := [6]float64{0.5 - squareZ + 2*z*z, 0, -2 * z, 0, 0, 0.5}
	dv := [6]float64{2*y*z - yz, -z, -y, 1, 0, 0}
	length := func(d [6]float64) float64 {
		sum := 0.0
		for _, x := range d {
			sum += x * x
		}
		return math.Sqrt(sum)
	}
	const least = 3 // deviations that a variance must be away from 0
	each := reach / z95 / n
	if !(u > least*each*length(du)) || !(w > least*each*length(dw)) {
		if !(u > 0) || !(w > 0) {
			return all
		}
		all.Value = min(max(v/math.Sqrt(u*w), -1), 1)
		return all
	}
	r := v / math.Sqrt(u*w)
	var d [6]float64
	for i := range d {
		d[i] = dv[i]/math.Sqrt(u*w) - r/2*(du[i]/u+dw[i]/w)
	}
	inner := min(max(r, -1+1e-9), 1-1e-9)
	middle, off := math.Atanh(inner), reach/n*length(d)/(1-inner*inner)
	c := Cell{Value: r, Low: math.Tanh(middle - off), High: math.Tanh(middle + off)}
	if s.absent > 0 {
		c = s.apart(c, x, reach, u, w)
	}
	return c.within(-1, 1)
}

// apart widens a correlation by what rows that are missing may change: covariance and variances
// each as far as they go.
func (s *sum) apart(c Cell, x []float64, reach, u, w float64) Cell {
	n := max(1, x[0]-reach)
	v := s.scaledCovariance(x, reach)
	spread := func(variance, mean float64) (least, most float64) {
		return mixed(variance, variance, mean, n, s.absent)
	}
	leastU, mostU := spread(u, x[1]/x[0])
	leastW, mostW := spread(w, x[2]/x[0])
	end := func(v float64, low bool) float64 {
		scale := math.Sqrt(leastU * leastW)
		if low == (v > 0) {
			scale = math.Sqrt(mostU * mostW)
		}
		return v / max(scale, 1e-12)
	}
	c.Low, c.High = min(c.Low, end(v.Low, true)), max(c.High, end(v.High, false))
	return c
}
