package ring

// The modulus leaves so much room in a word that nothing is reduced between the
// levels of a transform but the products: MaxModulusBits + log₂ N ≤ 62.

// ntt replaces a, with entries below q, by its values at the odd powers of ψ in
// bit-reversed order (Longa, Naehrig 2016, Algorithm 1, with the multiplication of
// Harvey 2014). Entries grow by 2q a level. Its time does not depend on them.
func (r *Ring) ntt(a []uint64) {
	q, q2 := r.q, 2*r.q
	t := r.n / 2
	m := 1
	for ; t >= 4; m, t = 2*m, t/2 {
		for i := range m {
			w, ws := r.psi[m+i], r.psiShoup[m+i]
			x, y := a[2*i*t:][:t], a[2*i*t+t:][:t]
			for len(x) >= 4 && len(y) >= 4 {
				xs, ys := (*[4]uint64)(x), (*[4]uint64)(y)
				v := mulLazy(ys[0], w, ws, q)
				xs[0], ys[0] = xs[0]+v, xs[0]+q2-v
				v = mulLazy(ys[1], w, ws, q)
				xs[1], ys[1] = xs[1]+v, xs[1]+q2-v
				v = mulLazy(ys[2], w, ws, q)
				xs[2], ys[2] = xs[2]+v, xs[2]+q2-v
				v = mulLazy(ys[3], w, ws, q)
				xs[3], ys[3] = xs[3]+v, xs[3]+q2-v
				x, y = x[4:], y[4:]
			}
		}
	}
	for ; t >= 1; m, t = 2*m, t/2 {
		w, ws := r.psi[m:2*m], r.psiShoup[m:2*m]
		for i := range w {
			b := a[2*i*t:][:2*t]
			for j := range t {
				v := mulLazy(b[t+j], w[i], ws[i], q)
				b[j], b[t+j] = b[j]+v, b[j]+q2-v
			}
		}
	}
	for i, u := range a {
		a[i] = r.once(mulLazy(u, 1, r.oneShoup, q))
	}
}

// inverse undoes ntt (Longa, Naehrig 2016, Algorithm 2). Entries, below q, double
// with each level.
func (r *Ring) inverse(a []uint64) {
	q, above := r.q, 2*r.q // above every entry, and a multiple of q
	t := 1
	m := r.n / 2
	for ; m >= 1 && t < 4; m, t = m/2, 2*t {
		w, ws := r.psiInv[m:2*m], r.psiInvShoup[m:2*m]
		for i := range w {
			b := a[2*i*t:][:2*t]
			for j := range t {
				u, v := b[j], b[t+j]
				b[j], b[t+j] = u+v, mulLazy(u+above-v, w[i], ws[i], q)
			}
		}
		above *= 2
	}
	for ; m >= 1; m, t = m/2, 2*t {
		for i := range m {
			w, ws := r.psiInv[m+i], r.psiInvShoup[m+i]
			x, y := a[2*i*t:][:t], a[2*i*t+t:][:t]
			for len(x) >= 4 && len(y) >= 4 {
				xs, ys := (*[4]uint64)(x), (*[4]uint64)(y)
				u, v := xs[0], ys[0]
				xs[0], ys[0] = u+v, mulLazy(u+above-v, w, ws, q)
				u, v = xs[1], ys[1]
				xs[1], ys[1] = u+v, mulLazy(u+above-v, w, ws, q)
				u, v = xs[2], ys[2]
				xs[2], ys[2] = u+v, mulLazy(u+above-v, w, ws, q)
				u, v = xs[3], ys[3]
				xs[3], ys[3] = u+v, mulLazy(u+above-v, w, ws, q)
				x, y = x[4:], y[4:]
			}
		}
		above *= 2
	}
	for i, u := range a {
		a[i] = r.once(mulLazy(u, r.nInv, r.nInvShoup, q))
	}
}
