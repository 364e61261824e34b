// Package jobs has what the command says of declared jobs: which of their fields match a pattern,
// whether a file is one, and what it declares, in words.
package jobs
