package learning

import (
	"math"
	"math/cmplx"
)

// A plane makes discrete Fourier transforms of squares of n × n numbers, by one order of operations
// for each n: along columns by Stockham's algorithm, all columns at once, and along rows as columns
// of the square turned over.
type plane struct {
	n       int
	factors []int
	root    []complex128 // exp(−2πi·k/n)
	other   []complex128
}

func newPlane(n int) *plane {
	p := &plane{n: n, other: make([]complex128, n*n)}
	left := n
	for _, f := range []int{4, 2, 3} {
		for left%f == 0 {
			p.factors, left = append(p.factors, f), left/f
		}
	}
	for f := 5; left > 1; f += 2 {
		for left%f == 0 {
			p.factors, left = append(p.factors, f), left/f
		}
	}
	for k := range n {
		p.root = append(p.root, cmplx.Rect(1, -2*math.Pi*float64(k)/float64(n)))
	}
	return p
}

// transform replaces z by its transform, or by n² times the inverse of that.
func (p *plane) transform(z []complex128, inverse bool) {
	for range 2 {
		p.columns(z, inverse)
		n := p.n
		for i := range n {
			for j := range i {
				z[i*n+j], z[j*n+i] = z[j*n+i], z[i*n+j]
			}
		}
	}
}

// power returns exp(−2πi·k/n), or its conjugate.
func (p *plane) power(k int, inverse bool) complex128 {
	w := p.root[k%p.n]
	if inverse {
		return cmplx.Conj(w)
	}
	return w
}

// columns transforms each column. Of the lines that a stage takes, those left apart by the stages
// before are each other's neighbours.
func (p *plane) columns(z []complex128, inverse bool) {
	from, to, n := z, p.other, p.n
	left, apart := n, 1
	line := func(of []complex128, i int) []complex128 { return of[i*n : (i+1)*n : (i+1)*n] }
	for _, f := range p.factors {
		m := left / f
		for k := range m {
			for q := range apart {
				in := func(i int) []complex128 { return line(from, q+apart*(k+i*m)) }
				out := func(i int) []complex128 { return line(to, q+apart*(f*k+i)) }
				w := func(i int) complex128 { return p.power(k*apart*i, inverse) }
				switch f {
				case 2:
					two(out(0), out(1), in(0), in(1), w(1))
				case 3:
					turn := imag(p.power(n/3, inverse))
					three(out(0), out(1), out(2), in(0), in(1), in(2), w(1), w(2), turn)
				case 4:
					turn := imag(p.power(n/4, inverse))
					four([4][]complex128{out(0), out(1), out(2), out(3)},
						[4][]complex128{in(0), in(1), in(2), in(3)}, w(1), w(2), w(3), turn)
				default:
					for i := range f {
						sum, by := out(i), w(i)
						clear(sum)
						for j := range f {
							part := by * p.power(n/f*(i*j%f), inverse)
							for c, x := range in(j) {
								sum[c] += part * x
							}
						}
					}
				}
			}
		}
		from, to = to, from
		left, apart = m, apart*f
	}
	if len(p.factors)%2 == 1 {
		copy(z, from)
	}
}

func two(y0, y1, x0, x1 []complex128, w complex128) {
	y0, y1, x1 = y0[:len(x0)], y1[:len(x0)], x1[:len(x0)]
	for c, a := range x0 {
		b := x1[c]
		y0[c], y1[c] = a+b, (a-b)*w
	}
}

// three has the imaginary part of a third of a turn.
func three(y0, y1, y2, x0, x1, x2 []complex128, w1, w2 complex128, turn float64) {
	n := len(x0)
	y0, y1, y2, x1, x2 = y0[:n], y1[:n], y2[:n], x1[:n], x2[:n]
	for c, a := range x0 {
		sum, difference := x1[c]+x2[c], x1[c]-x2[c]
		y0[c] = a + sum
		middle := complex(real(a)-real(sum)/2, imag(a)-imag(sum)/2)
		aside := complex(-turn*imag(difference), turn*real(difference))
		y1[c], y2[c] = (middle+aside)*w1, (middle-aside)*w2
	}
}

// four has the imaginary part of a fourth of a turn, 1 or −1.
func four(y, x [4][]complex128, w1, w2, w3 complex128, turn float64) {
	n := len(x[0])
	x1, x2, x3 := x[1][:n], x[2][:n], x[3][:n]
	y0, y1, y2, y3 := y[0][:n], y[1][:n], y[2][:n], y[3][:n]
	for c, a := range x[0] {
		sum, difference := a+x2[c], a-x2[c]
		others, aside := x1[c]+x3[c], x1[c]-x3[c]
		aside = complex(-turn*imag(aside), turn*real(aside))
		y0[c], y2[c] = sum+others, (sum-others)*w2
		y1[c], y3[c] = (difference+aside)*w1, (difference-aside)*w3
	}
}
