// Package link carries frames between the parties of a job and its coordinator.
// SPEC-TRANSPORT.md specifies every byte.
//
// A [Dialer] connects a party and a [Listener] accepts it; each gives its side one end of a [Link].
// In one process both are a [Memory], between machines a [TCPDialer] and a [TCPListener], with TLS
// 1.3 between keys that both sides know. A frame has a kind: [Hello], [Refusal], [Absence], a
// number, a message of package protocol or oneshot, or a [Broadcast], with which a round begins. A
// long body goes in pieces ([SendBody]), and no side holds it as one slice: [Weights] are written
// from numbers and read into numbers, and a [Spool] holds a message in a file until all of it has
// come.
//
// What it promises: a frame arrives whole or not at all, in order; over TCP nobody gets through who
// is not in the roster or not the coordinator, and strangers cannot keep parties out. It decides
// nothing and saves nothing: when a link breaks, both sides forget it, and package drive says what
// is sent again. No promise of privacy rests on it: a party's own guard bounds what it releases,
// whoever answers.
package link
