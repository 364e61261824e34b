// Package specdecode checks the test vectors of package protocol from SPEC.md
// alone: it decodes every message of a recorded session and recomputes
// everything from the parties' private keys. It is written for clarity, shares
// no code with the packages that it checks, and imports the standard library
// and golang.org/x/crypto only. Nothing in it is constant time, and nobody
// should use it for anything else.
//
// Section numbers in comments are those of SPEC.md.
package specdecode

import (
	"errors"
	"fmt"
)

// ErrVector: a vector is not what the specification says.
var ErrVector = errors.New("specdecode: the vector does not follow the specification")

func fail(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrVector}, args...)...)
}
