// Package sidecar serves the library to programs in other languages: a program starts one process
// next to itself, sends it calls as frames over two pipes or a Unix socket, and passes large arrays
// through memory that both have mapped. docs/sidecar.md describes the frames and the calls.
//
// It is a process rather than a library to be loaded, since a Go runtime in another program's
// process does not survive fork, on which data loaders and servers rely.
//
// The program is trusted with the data that it sends: its own vectors, its identity, its states.
// The sidecar keeps keys in its own memory, and refuses any that come through shared memory. Input
// is decoded strictly, since programs make mistakes: a call that is refused changes nothing, and
// its error says what to do.
package sidecar
