//go:build !goexperiment.runtimesecret

package protocol

// erasing calls f, which makes temporary copies of secrets. They do not stay in memory where the
// runtime can see to it: built with GOEXPERIMENT=runtimesecret (package runtime/secret, an
// experiment of Go 1.26 on Linux, amd64 and arm64). Elsewhere it only calls f.
func erasing(f func()) { f() }
