// Package jobs describes declared jobs for the command: which of their fields match a pattern,
// whether a file is one, and what it declares, in words.
package jobs
