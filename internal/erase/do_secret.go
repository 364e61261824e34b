//go:build goexperiment.runtimesecret

package erase

import "runtime/secret"

// Do calls f. Registers, stack and heap that f has used, and all that it calls, are
// erased when nothing refers to them any more.
func Do(f func()) { secret.Do(f) }
