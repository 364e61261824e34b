package learning

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// newton minimises the loss of m on d to convergence, by a method that shares
// nothing with Train. Rows are mostly zeros, so the Hessian is summed over
// non-zero pairs. The result is checked with Gradient.
func newton(t testing.TB, m Logistic, d *Dataset) []float64 {
	t.Helper()
	p, n := m.NumParams(), float64(d.Len())
	type entry struct {
		j int
		v float64
	}
	rows := make([][]entry, d.Len())
	for i := range rows {
		for j, v := range d.Row(i) {
			if v != 0 {
				rows[i] = append(rows[i], entry{j, v})
			}
		}
	}
	w := make([]float64, p)
	h := mat.NewSymDense(p, nil)
	raw := h.RawSymmetric()
	g, step := mat.NewVecDense(p, nil), mat.NewVecDense(p, nil)
	var chol mat.Cholesky
	for range 40 {
		clear(raw.Data)
		for j := range p {
			// The tiny ridge keeps columns that are zero throughout solvable.
			raw.Data[j*raw.Stride+j] = m.Lambda + 1e-12
			g.SetVec(j, m.Lambda*w[j])
		}
		for i, row := range rows {
			var z float64
			for _, e := range row {
				z += e.v * w[e.j]
			}
			q := 1 / (1 + math.Exp(-z))
			for k, a := range row {
				g.SetVec(a.j, g.AtVec(a.j)+(q-float64(d.Labels[i]))*a.v/n)
				for _, b := range row[k:] {
					raw.Data[a.j*raw.Stride+b.j] += q * (1 - q) * a.v * b.v / n
				}
			}
		}
		if !chol.Factorize(h) {
			t.Fatal("the Hessian is not positive definite")
		}
		if err := chol.SolveVecTo(step, g); err != nil {
			t.Fatal(err)
		}
		for j := range w {
			w[j] -= step.AtVec(j)
		}
		if mat.Norm(step, math.Inf(1)) < 1e-9 {
			break
		}
	}
	grad := make([]float64, p)
	if err := m.Gradient(grad, w, d); err != nil {
		t.Fatal(err)
	}
	for j, x := range grad {
		if math.Abs(x) > 1e-9 {
			t.Fatalf("no minimum: derivative %d is %v", j, x)
		}
	}
	return w
}
