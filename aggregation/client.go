package aggregation

import "fmt"

// Adjust changes the gradient of a mini-batch at the weights w, in place, before the step w ← w −
// η_l·gradient. A client's rule hooks an Adjust into training; Adjust panics if the vectors are not
// as long as those for which the rule was made.
type Adjust = func(gradient, w []float64)

// Proximal is FedProx (Li 2020, "Federated Optimization in Heterogeneous Networks"):
// the client minimises f_i(w) + μ/2·‖w − start‖², so gradient + μ·(w − start). With μ =
// 0 it changes nothing. start is copied. It fails with [ErrConfig] if μ is negative or
// not finite, with [ErrLength] if start is empty, and with [ErrNotFinite].
func Proximal(mu float64, start []float64) (Adjust, error) {
	if !(mu >= 0 && finite(mu)) {
		return nil, fmt.Errorf("%w: the proximal weight is %v, want a finite number of 0 or more",
			ErrConfig, mu)
	}
	if err := checkVectors(start); err != nil {
		return nil, err
	}
	if mu == 0 {
		return func(_, _ []float64) {}, nil // not even −0 becomes 0
	}
	anchor := append([]float64(nil), start...)
	return func(gradient, w []float64) {
		for i, a := range anchor {
			gradient[i] += float64(mu * (w[i] - a))
		}
	}, nil
}

// Scaffold is SCAFFOLD at one client (Karimireddy 2020, Algorithm 1): the control
// variates c of the server and c_i of the client, both zero at first. A round is
//
//  1. the client trains with [Scaffold.Adjust];
//  2. it finds c_i⁺ and c_i⁺ − c_i with [Scaffold.FromGradient] (option I) or
//     [Scaffold.FromSteps] (option II);
//  3. it sends its update and c_i⁺ − c_i, both as lanes of one submission
//     ([Lanes]), so that the server sees sums only;
//  4. the server moves c with [AdvanceVariate].
//
// A client keeps c_i⁺ only if its submission was counted; otherwise c is no longer the mean of all
// c_i. (Even then c is that mean only up to the roundings of a [Mean] lane.) No method changes its
// receiver.
type Scaffold struct {
	Server []float64 // c
	Own    []float64 // c_i
}

// Adjust returns gradient − c_i + c. It copies both, and fails with [ErrLength]
// or [ErrNotFinite].
func (s Scaffold) Adjust() (Adjust, error) {
	if err := checkVectors(s.Server, s.Own); err != nil {
		return nil, err
	}
	correction, err := subtract(s.Server, s.Own)
	if err != nil {
		return nil, err
	}
	return func(gradient, _ []float64) {
		for i, x := range correction {
			gradient[i] += x
		}
	}, nil
}

// FromGradient is option I: c_i⁺ is the client's gradient at the server's model,
// which costs another pass over its data. It returns c_i⁺, a copy, and
// c_i⁺ − c_i, and fails with [ErrLength] or [ErrNotFinite].
func (s Scaffold) FromGradient(gradient []float64) (own, change []float64, err error) {
	if err := checkVectors(s.Server, s.Own, gradient); err != nil {
		return nil, nil, err
	}
	change, err = subtract(gradient, s.Own)
	if err != nil {
		return nil, nil, err
	}
	return append([]float64(nil), gradient...), change, nil
}

// FromSteps is option II: c_i⁺ = c_i − c + (start − end)/(steps·rate), the mean of
// the gradients on the way, where start is the server's model and end that of the
// client after the given number of plain steps (no momentum) at the given rate.
// It returns c_i⁺ and c_i⁺ − c_i. It fails with [ErrConfig] if steps is below 1 or
// the rate is not a finite number above 0, [ErrLength] or [ErrNotFinite].
func (s Scaffold) FromSteps(
	start, end []float64, steps int, rate float64,
) (own, change []float64, err error) {
	if err := checkVectors(s.Server, s.Own, start, end); err != nil {
		return nil, nil, err
	}
	if steps < 1 || !(rate > 0 && finite(rate)) {
		return nil, nil, fmt.Errorf("%w: %d steps at rate %v, want at least 1 and a finite rate above 0",
			ErrConfig, steps, rate)
	}
	own = make([]float64, len(start))
	change = make([]float64, len(start))
	path := float64(steps) * rate
	for i := range own {
		change[i] = (start[i]-end[i])/path - s.Server[i]
		own[i] = s.Own[i] + change[i]
	}
	if err := checkVectors(own, change); err != nil {
		return nil, nil, err
	}
	return own, change, nil
}

// AdvanceVariate returns the server's next control variate,
// c + survivors/population · mean, where mean is that of c_i⁺ − c_i over the
// survivors and population counts all clients that hold a c_i, in the round or
// not. It fails with [ErrConfig] unless 1 ≤ survivors ≤ population, with
// [ErrLength] or [ErrNotFinite].
func AdvanceVariate(c, mean []float64, survivors, population int) ([]float64, error) {
	if err := checkVectors(c, mean); err != nil {
		return nil, err
	}
	if survivors < 1 || survivors > population {
		return nil, fmt.Errorf("%w: %d survivors of %d clients", ErrConfig, survivors, population)
	}
	share := float64(survivors) / float64(population)
	next := make([]float64, len(c))
	for i := range next {
		next[i] = c[i] + float64(share*mean[i])
	}
	if err := checkVectors(next); err != nil {
		return nil, err
	}
	return next, nil
}

// Displace is the first step of GradAlign and FedGA ("Implicit Gradient Alignment
// in Distributed and Federated Learning"): it returns start + v_i with
//
//	v_i = −β·(mean − own)
//
// where own is the client's gradient at start and mean is that of all clients of the round, which
// takes a round of sums of its own ([Mean]). The client takes its K local steps from there, with no
// adjustment, and sends w_client − start, displacement included, as the authors' code averages
// whole models. GradAlign is K = 1. The displacements add up to zero if mean is over the clients
// that also send; a client that drops out between the two sums leaves the others with a sum of
// −v_i.
//
// To leading order a round is one of federated averaging and −η_l·K·β·∇r, where
// r = 1/(2n)·Σ‖∇f_i − ∇f‖²: the gradients are pulled towards each other.
//
// With β = 0 the result is a copy of start. It fails with [ErrConfig] if β is
// negative or not finite, [ErrLength] or [ErrNotFinite].
func Displace(start, mean, own []float64, beta float64) ([]float64, error) {
	if !(beta >= 0 && finite(beta)) {
		return nil, fmt.Errorf("%w: beta is %v, want a finite number of 0 or more", ErrConfig, beta)
	}
	if err := checkVectors(start, mean, own); err != nil {
		return nil, err
	}
	out := append([]float64(nil), start...)
	if beta == 0 {
		return out, nil
	}
	for i := range out {
		out[i] -= float64(beta * (mean[i] - own[i]))
	}
	if err := checkVectors(out); err != nil {
		return nil, err
	}
	return out, nil
}

// subtract returns x − y, or ErrNotFinite if it overflows.
func subtract(x, y []float64) ([]float64, error) {
	out := make([]float64, len(x))
	for i := range out {
		out[i] = x[i] - y[i]
	}
	if err := checkVectors(out); err != nil {
		return nil, err
	}
	return out, nil
}

// Cosine returns the cosine of the angle between two vectors, 0 if one of them is zero: between a
// client's update and the last step of the global model, it says how far clients still go the same
// way. The cosine tells something about the update and is as secret. It fails with [ErrLength] or
// [ErrNotFinite].
func Cosine(x, y []float64) (float64, error) {
	if err := checkVectors(x, y); err != nil {
		return 0, err
	}
	// What is clipped to 1 is divided by its norm without overflow.
	a, normX, err := Clip(x, 1)
	if err != nil {
		return 0, err
	}
	b, normY, err := Clip(y, 1)
	if err != nil {
		return 0, err
	}
	if normX == 0 || normY == 0 {
		return 0, nil
	}
	normX, normY = min(normX, 1), min(normY, 1)
	var dot float64
	for i := range a {
		dot += float64((a[i] / normX) * (b[i] / normY))
	}
	return max(-1, min(1, dot)), nil
}
