// Package observation attacks what is seen without interfering: masked values, sums,
// samples of noise and the time that they take.
//
// Most of it is a curious server's: masked values next to inputs that became known
// (Snooping), sums of cohorts that differ by one party (Differencing), counts that differ by
// one person (QueryDifferencing), sums of rounds in which parties came and went
// (Disaggregation; Lam 2021, "Gradient Disaggregation"), and with clients' help the sums of
// signs (SignLeak). An outsider looks at the digits of floating-point noise (FloatSupport;
// Mironov 2012), a process on the same machine at the clock (SamplerTiming). A client adds
// to its submission what no encoder lets through (WrapAround).
//
// [Disaggregate] is over plain data, to be turned on other systems.
package observation

import "github.com/hushsum/hushsum/attacks"

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{
		snooping, differencing, queryDifferencing, disaggregation, floatSupport, samplerTiming,
		wrapAround, signLeak,
	}
}

// The parts of a run that have random numbers of their own.
const (
	partScalarMask         = 50
	partVectorMask         = 51
	partCohorts            = 52
	partParticipation      = 53
	partNoisyParticipation = 54
	partRoundedLogarithm   = 55
	partReferenceLaplace   = 56
	partSigns              = 57
	partQueries            = 58 // and 59
)
