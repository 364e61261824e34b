// Package hushsum is the root of a library for private sums: a server learns the
// sum of many parties' vectors and nothing else about any of them.
//
// It holds nothing itself. Begin with package protocol, which has the session
// between parties and server, and package aggregation, which turns model weights
// into what is summed and back. The command hushsum shows both at work:
//
//	go run github.com/hushsum/hushsum/cmd/hushsum simulate
package hushsum
