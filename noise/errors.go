package noise

import (
	"errors"

	"github.com/hushsum/hushsum/internal/entropy"
)

var (
	// ErrConfig reports a parameter that no law has: nil, zero, negative,
	// not a number, or a range that is empty.
	ErrConfig = errors.New("noise: parameter out of its domain; give a positive finite number")

	// ErrTooLarge reports a parameter outside the documented limits, or a law
	// too wide for what was asked (tables: use the exact path or a narrower law).
	ErrTooLarge = errors.New("noise: parameter beyond the supported limits")

	// ErrRandom reports that the source of randomness failed, ended early
	// or cannot be random. The output was cleared; none of it may be used.
	ErrRandom = entropy.Err
)
