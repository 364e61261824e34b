package learning

// This file multiplies rows of float32 by weights in float64. What it makes of a row depends on
// the row and on what it is multiplied by, in one order of operations, and on no row next to it.

const (
	productClasses = 5 // that are worked on at once
	productLanes   = 8 // of which rows have a multiple
	productRows    = 4 // that are added at once
	// productBlock is how many numbers of a row are worked on before the next row: what a block of
	// weights takes fits a processor's nearest cache.
	productBlock = 512
)

// A products is a way of multiplying. Rows and lines have a multiple of productLanes numbers;
// stride is from a line, of a class, to the next.
type products struct {
	// scores adds to out the products of two rows with productClasses lines of w.
	scores func(out *[2 * productClasses]float64, x0, x1 []float32, w []float64, stride int)
	// add adds to productClasses lines of g what rows have times the numbers in a: of each row one
	// for each class, each productRows times.
	add func(g []float64, stride int, x *[productRows][]float32, a *productFactors)
	// square is the squared norm of (x − mean)·scale.
	square func(x []float32, mean, scale []float64) float64
}

type productFactors [productRows * productClasses * productRows]float64

var portable = products{scores: scoresPortable, add: addPortable, square: squarePortable}

func scoresPortable(
	out *[2 * productClasses]float64, x0, x1 []float32, w []float64, stride int,
) {
	for k := range productClasses {
		line := w[k*stride:][:len(x0)]
		var a, b float64
		for j, v := range line {
			a += float64(x0[j]) * v
			b += float64(x1[j]) * v
		}
		out[k] += a
		out[productClasses+k] += b
	}
}

func addPortable(g []float64, stride int, x *[productRows][]float32, a *productFactors) {
	for k := range productClasses {
		line := g[k*stride:][:len(x[0])]
		for r, row := range x {
			by := a[(r*productClasses+k)*productRows]
			for j, v := range row[:len(line)] {
				line[j] += by * float64(v)
			}
		}
	}
}

func squarePortable(x []float32, mean, scale []float64) (sum float64) {
	for j, v := range x {
		y := (float64(v) - mean[j]) * scale[j]
		sum += y * y
	}
	return sum
}

// scoresOf sets out, rows × lines, to the products of rows with the lines of w, as many numbers as
// mean and scale have, and squares to the squared norms of rows that mean and scale standardise;
// lines is a multiple of productClasses.
func (p *products) scoresOf(
	out, squares []float64, x [][]float32, w, mean, scale []float64, lines int,
) {
	stride := len(mean)
	clear(out)
	clear(squares)
	var two [2 * productClasses]float64
	for lo := 0; lo < stride; lo += productBlock {
		hi := min(lo+productBlock, stride)
		for i, row := range x {
			squares[i] += p.square(row[lo:hi], mean[lo:hi], scale[lo:hi])
		}
		for k := 0; k < lines; k += productClasses {
			for i := 0; i < len(x); i += 2 {
				next := min(i+1, len(x)-1)
				clear(two[:])
				p.scores(&two, x[i][lo:hi], x[next][lo:hi], w[k*stride+lo:], stride)
				for c := range productClasses {
					out[i*lines+k+c] += two[c]
					if next > i {
						out[next*lines+k+c] += two[productClasses+c]
					}
				}
			}
		}
	}
}

// addTo adds to the lines of g the rows times their numbers in a, rows × lines.
func (p *products) addTo(g []float64, x [][]float32, a []float64, stride, lines int) {
	var four [productRows][]float32
	var by productFactors
	for lo := 0; lo < stride; lo += productBlock {
		hi := min(lo+productBlock, stride)
		for k := 0; k < lines; k += productClasses {
			for i := 0; i < len(x); i += productRows {
				clear(by[:])
				for r := range productRows {
					four[r] = x[min(i+r, len(x)-1)][lo:hi]
					if i+r >= len(x) {
						continue
					}
					for c := range productClasses {
						for l := range productRows {
							by[(r*productClasses+c)*productRows+l] = a[(i+r)*lines+k+c]
						}
					}
				}
				p.add(g[k*stride+lo:], stride, &four, &by)
			}
		}
	}
}
