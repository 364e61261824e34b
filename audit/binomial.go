package audit

import "gonum.org/v1/gonum/stat/distuv"

// BinomialLower returns the Clopper–Pearson lower bound of a probability from the
// successes in n trials: it is above the truth with probability alpha at most.
func BinomialLower(successes, n int, alpha float64) float64 {
	if successes <= 0 {
		return 0
	}
	law := distuv.Beta{Alpha: float64(successes), Beta: float64(n - successes + 1)}
	return law.Quantile(alpha)
}

// BinomialUpper returns the Clopper–Pearson upper bound, which is below the truth with
// probability alpha at most.
func BinomialUpper(successes, n int, alpha float64) float64 {
	if successes >= n {
		return 1
	}
	return 1 - BinomialLower(n-successes, n, alpha)
}
