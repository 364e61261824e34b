package privacy

import "fmt"

// LargeDelta returns a caution about a delta above 1 / units, the number of parties or records that
// epsilon protects: a release that publishes the data of one unit, drawn at random, keeps within
// such a delta for any epsilon. LargeDelta returns an empty text for a smaller delta, and if units
// is 0, meaning unknown.
func LargeDelta(delta float64, units int) string {
	if units <= 0 || delta*float64(units) <= 1 {
		return ""
	}
	return fmt.Sprintf("delta = %.4g is above 1 / %d units: a release that shows one of them whole, "+
		"drawn at random, keeps within it; choose one well below, such as %.1g", delta, units,
		0.1/float64(units))
}
