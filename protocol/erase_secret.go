//go:build goexperiment.runtimesecret

package protocol

import "runtime/secret"

// erasing calls f. Registers, stack and heap that f has used, and all that it calls, are
// erased when nothing refers to them any more.
func erasing(f func()) { secret.Do(f) }
