//go:build !goexperiment.runtimesecret

// Package erase runs code that makes temporary copies of secrets, such that they do not
// stay in memory where the runtime can see to it: with GOEXPERIMENT=runtimesecret
// (package runtime/secret, an experiment of Go 1.26 on Linux, amd64 and arm64).
// Elsewhere it only calls the code.
package erase

// Do calls f. Registers, stack and heap that f has used, and all that it calls, are
// erased when nothing refers to them any more, as far as the package says.
func Do(f func()) { f() }
