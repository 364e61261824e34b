// Package specread checks the test vectors of SPEC-ONESHOT.md from that page alone: it shares
// no code with package oneshot, and computes with schoolbook arithmetic and big integers. It
// serves only as a test.
package specread
