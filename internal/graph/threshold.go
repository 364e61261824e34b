package graph

import "fmt"

// Adversary names what the server may do besides pooling knowledge with the
// corrupt parties. The zero value is no adversary at all and is refused.
type Adversary int

const (
	// Curious follows the protocol and reads everything it sees.
	Curious Adversary = iota + 1
	// SemiMalicious is honest during set-up, so that keys and graph are genuine,
	// and sends anything to anyone afterwards.
	SemiMalicious
	// Cheating sends anything to anyone at any time.
	Cheating
)

// String returns the adversary's name in lower case.
func (a Adversary) String() string {
	switch a {
	case Curious:
		return "curious"
	case SemiMalicious:
		return "semi-malicious"
	case Cheating:
		return "cheating"
	default:
		return fmt.Sprintf("adversary(%d)", int(a))
	}
}

// DefaultThreshold returns the default Shamir threshold t for holders parties
// that hold the shares of one party (n−1 in the complete graph, the owner not
// counted), of which colluders work with the server:
//
//	Curious                  t = ⌊h/2⌋ + 1
//	SemiMalicious, Cheating  t = ⌊2h/3⌋ + 1
//
// It fails with [ErrThresholdTooLow] when the default does not keep the promise
// that [CheckThreshold] tests, and as [CheckThreshold] does on arguments out of
// range.
func DefaultThreshold(a Adversary, holders, colluders int) (int, error) {
	if holders < 1 {
		return 0, fmt.Errorf("%w (got %d)", ErrHolders, holders)
	}
	t := holders/2 + 1
	if a != Curious {
		// ⌊2h/3⌋ written so that it cannot overflow.
		t = holders/3*2 + holders%3*2/3 + 1
	}
	if err := CheckThreshold(a, t, holders, colluders); err != nil {
		return 0, err
	}
	return t, nil
}

// CheckThreshold reports whether a secret shared among holders parties with
// threshold stays out of reach of a server that has colluders of them:
//
//	Curious                  t > c
//	SemiMalicious, Cheating  2t > h + c
//
// The second rule is the first one played twice. Such a server tells some honest
// holders that the party survived and others that it dropped out; each honest
// holder gives a share of one of the party's two secrets, each colluder gives
// both. It has h + c shares to split, and must not reach t for both secrets
// (Bonawitz 2017 against active adversaries; Bell 2020 with h = k).
//
// Errors: [ErrHolders], [ErrColluders], [ErrThresholdRange], [ErrAdversary], and
// [ErrThresholdTooLow] when the rule does not hold.
func CheckThreshold(a Adversary, threshold, holders, colluders int) error {
	if holders < 1 {
		return fmt.Errorf("%w (got %d)", ErrHolders, holders)
	}
	if colluders < 0 {
		return fmt.Errorf("%w (got %d)", ErrColluders, colluders)
	}
	if threshold < 1 || threshold > holders {
		return fmt.Errorf("%w (got %d of %d)", ErrThresholdRange, threshold, holders)
	}
	var safe bool
	switch a {
	case Curious:
		safe = threshold > colluders
	case SemiMalicious, Cheating:
		// 2t > h + c, arranged so that no sum can overflow: t <= h holds here.
		safe = threshold-(holders-threshold) > colluders
	default:
		return fmt.Errorf("%w: use Curious, SemiMalicious or Cheating (got %v)", ErrAdversary, a)
	}
	if !safe {
		return fmt.Errorf("%w (%v server, threshold %d, %d holders, %d colluders)",
			ErrThresholdTooLow, a, threshold, holders, colluders)
	}
	return nil
}
