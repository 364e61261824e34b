// Package benchmarks compares hushsum with other libraries. It is a module of
// its own, so that they are not among the requirements of hushsum. It exports
// nothing; see the README for the command.
package benchmarks
