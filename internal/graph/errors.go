package graph

import "errors"

// Errors of [Parameters], [DefaultThreshold] and [CheckThreshold].
var (
	// ErrParties reports numbers of parties outside 2..MaxParties, or the least above the most.
	ErrParties = errors.New("graph: number of parties out of range: use 2 to 2^24")
	// ErrSurvivors reports a number of survivors outside 1..Least.
	ErrSurvivors = errors.New("graph: number of survivors out of range: use 1 to the least size")
	// ErrHonest reports that all survivors may be corrupt.
	ErrHonest = errors.New("graph: colluders leave no honest survivor: use fewer than survive")
	// ErrSecurity reports a σ outside 1..256.
	ErrSecurity = errors.New("graph: statistical security out of range: use 1 to 256 bits")
	// ErrCorrectness reports an η outside 1..256.
	ErrCorrectness = errors.New("graph: correctness out of range: use 1 to 256 bits")
	// ErrAdversary reports an adversary that the function does not cover.
	ErrAdversary = errors.New("graph: adversary not covered here")
	// ErrApart reports a degree that does not keep honest survivors connected.
	ErrApart = errors.New("graph: degree too low to keep survivors connected: use a higher one")
	// ErrInfeasible reports that no degree, or not the given one, meets the conditions.
	ErrInfeasible = errors.New("graph: no degree meets the conditions: have fewer drop out or " +
		"collude, lower the bits, or bring more parties")

	// ErrHolders reports fewer than one holder of a party's shares.
	ErrHolders = errors.New("graph: number of share holders out of range: use at least 1")
	// ErrColluders reports a negative number of colluders.
	ErrColluders = errors.New("graph: number of colluders out of range: use 0 or more")
	// ErrThresholdRange reports a threshold outside 1..holders.
	ErrThresholdRange = errors.New(
		"graph: threshold out of range: use 1 to the number of share holders")
	// ErrThresholdTooLow reports a threshold that the colluders can beat.
	ErrThresholdTooLow = errors.New("graph: threshold too low for that many colluders: raise it, " +
		"accept fewer colluders, or bring more share holders")
)

// Errors of [Permutation], [Harary] and [NewGraph].
var (
	// ErrDegree reports a degree that leaves the graph disconnected or exceeds n−1.
	ErrDegree = errors.New("graph: degree out of range: use 2 to n-1, or 1 for two parties")
	// ErrParity reports an odd degree with an odd number of parties. No regular
	// graph has both, because the degrees add up to twice the number of edges.
	ErrParity = errors.New("graph: odd degree with an odd number of parties: use an even degree")
	// ErrMembers reports a negative or repeated member.
	ErrMembers = errors.New("graph: bad member list: use distinct numbers, 0 or more")
	// ErrPermutation reports a list that is not a permutation of 0..n−1.
	ErrPermutation = errors.New("graph: not a permutation: use each of 0 to n-1 exactly once")
)
