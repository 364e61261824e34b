// Package benchmarks compares hushsum with other libraries. It exports nothing; README.md has the
// command.
package benchmarks
