// Package fuzz holds the native fuzz targets of pairwise sums and of the jobs of package drive:
// every parser of bytes from outside, and the state machines that they drive. Other packages have
// targets of their own; .ci/fuzz lists them. It exports nothing.
//
//	go test ./fuzz                                  # the seed corpora, seconds
//	go test ./fuzz -run NONE -fuzz '^FuzzMessage$'  # one target, until stopped
//	go test ./fuzz -run NONE -fuzz '^FuzzSession$' -fuzztime 10m -fuzzminimizetime 10x
//
// Each target is run by its name. -fuzztime says for how long; a short
// -fuzzminimizetime keeps the state machines, which are slow, from spending
// the time on shortening what they found. Inputs worth keeping are in
// testdata/fuzz and run with the seeds: so far schedules that meet refusals which
// the seeds in the code do not; none has failed.
//
// The parsers, and what is demanded of them:
//
//	FuzzMessage    every type of message: what parses marshals back to the
//	               same bytes, and is no larger than what was parsed
//	FuzzPacked     so do packed vectors; what does not parse changes nothing
//	FuzzRoster     a roster that parses survives writing and reading
//	FuzzPublicKey  an X25519 key that parses is canonical and of full order
//	FuzzSecret     a secret that parses is below the group order, and all
//	               that are below it parse
//	FuzzLoad       a changed state, or another party's, does not load as a
//	               client or a server: ErrState and never a panic
//
// The state machines:
//
//	FuzzReceive  clients and servers, with recovery and without, answer any
//	             bytes in any state with a documented error, which changes
//	             nothing, or a step that the protocol has, and never panic
//	FuzzSession  the bytes are a schedule: messages of a session of four or five
//	             parties are delivered, lost, duplicated, reordered, corrupted,
//	             forged and swapped with another session's while parties and
//	             server crash; invariants_test.go has what must hold throughout
//	FuzzSeries   likewise sessions that follow each other, of changing parties:
//	             numbers only go up, and another session can always take over
//	FuzzParty    a job whose coordinator goes on past its end, forgets, is set
//	             back and lies, against a party that is killed: what leaves was
//	             counted before, and is no more than job and budget allow
//	FuzzJob      whole jobs of a server and parties in virtual time, with faults
//	             and lies: sums are exact, and jobs end
//
// With -v, FuzzSession logs every operation of its inputs, so that a failure can
// be read; schedule_test.go has the operations and their arguments:
//
//	go test ./fuzz -v -run 'FuzzSession/NAME'
package fuzz
