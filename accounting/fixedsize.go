package accounting

import "math"

// FixedSize returns a bound of the curve after drawing exactly m of n clients
// uniformly without replacement, for any mechanism. r must be the mechanism's
// curve under replace-one adjacency, and so is the result (for Gaussian noise of
// multiplier z in add/remove terms that is the curve of multiplier z/2; the
// specific [FixedSizeGaussianRDP] is smaller). pure is the mechanism's
// replace-one pure ε, +Inf if it has none: it lowers the bound.
//
// At integer α, with γ = m/n (Wang, Balle, Kasiviswanathan 2019, the general
// upper bound), (α−1)·ρ'(α) is at most
//
//	ln(1 + γ²·C(α,2)·min{4(e^{ρ(2)}−1), e^{ρ(2)}·min{2, (e^{pure}−1)²}}
//	     + Σ_{j=3..α} γ^j·C(α,j)·e^{(j−1)ρ(j)}·min{2, (e^{pure}−1)^j}).
//
// Between integers it is interpolated, since it is convex in α for the exact
// curve. At every order it is also at most ln(1−γ+γ·e^{(α−1)ρ(α)}), by joint
// convexity over whether the client is drawn. Integer orders beyond the largest
// unbroken run from 2 have the second bound alone. Errors wrap ErrConfig.
func (r RDP) FixedSize(m, n int, pure float64) (RDP, error) {
	if m < 1 || n < m {
		return RDP{}, configError("sample of %d out of %d, want 1 ≤ m ≤ n", m, n)
	}
	if !(pure >= 0) {
		return RDP{}, configError("pure epsilon is %v, want 0 or more, +Inf if there is none", pure)
	}
	if m == n || pure == 0 {
		return r.capped(pure), nil
	}
	r = r.capped(pure)
	at, full := r.integers()
	lnGamma := math.Log(float64(m) / float64(n))
	lnPure := logExpm1(pure)
	cgf := func(k int) float64 {
		a := float64(k)
		out, comb := 0.0, math.Log(a)
		for j := 2; j <= k; j++ {
			i := float64(j)
			comb += math.Log((a - i + 1) / i)
			t := (i-1)*at[j] + math.Min(math.Ln2, i*lnPure)
			if j == 2 {
				t = math.Min(t, math.Log(4)+logExpm1(at[2]))
			}
			out = logAdd(out, t+comb+i*lnGamma)
		}
		return out
	}
	cgfs := map[int]float64{1: 0}
	integer := func(k int) float64 {
		if k > full {
			return math.Inf(1)
		}
		v, ok := cgfs[k]
		if !ok {
			v = cgf(k)
			cgfs[k] = v
		}
		return v
	}
	return r.mapped(func(a, rho float64) float64 {
		k := math.Floor(a)
		v := math.Inf(1)
		if x := a - k; k <= float64(full) {
			v = integer(int(k))
			if x > 0 {
				v = (1-x)*v + x*integer(int(k)+1)
			}
		}
		v = math.Min(v, drawnOrNot(float64(m)/float64(n), (a-1)*rho))
		return math.Max(0, v/(a-1))
	}), nil
}

// capped is the curve, at most pure everywhere: Rényi divergence grows with its
// order up to that.
func (r RDP) capped(pure float64) RDP {
	return r.mapped(func(_, v float64) float64 { return math.Min(v, pure) })
}

// drawnOrNot is ln(1−γ+γ·e^c): the integral of P^α·Q^{1−α} is jointly convex in the
// pair, 1 where the client is not drawn and at most e^c where it is.
func drawnOrNot(gamma, c float64) float64 {
	return logAdd(math.Log1p(-gamma), math.Log(gamma)+c)
}

// logExpm1 is ln(e^x − 1), −Inf at 0, without overflow.
func logExpm1(x float64) float64 { return x + math.Log(-math.Expm1(-x)) }

// integers returns the curve at its integer orders and the last of the unbroken
// run 2, 3, 4, …, or 1 if 2 is missing.
func (r RDP) integers() (at map[int]float64, full int) {
	at = map[int]float64{}
	for i, a := range r.orders {
		if a == math.Trunc(a) && a <= 1<<20 {
			at[int(a)] = r.values[i]
		}
	}
	full = 1
	for _, ok := at[full+1]; ok; _, ok = at[full+1] {
		full++
	}
	return at, full
}
