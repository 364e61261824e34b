// Package fuzz holds the native fuzz targets of hushsum: every parser of bytes
// from outside, and the state machines that they drive. It exports nothing.
//
//	go test ./fuzz                                  # the seed corpora, a second
//	go test ./fuzz -run NONE -fuzz '^FuzzMessage$'  # one target, until stopped
//
// The targets and what they demand:
//
//	FuzzMessage  what parses marshals back to the same bytes
//	FuzzPacked   so do packed vectors; what does not parse changes nothing
//	FuzzRoster   a roster that parses survives writing and reading
//	FuzzReceive  clients and servers answer any bytes, in any state, with a
//	             documented error or a step that the protocol has, never a panic
package fuzz
