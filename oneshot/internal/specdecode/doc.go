// Package specdecode checks the test vectors of SPEC-ONESHOT.md from that page alone: it
// shares no code with package oneshot, and computes with schoolbook arithmetic and big
// integers. It is a test and nothing else.
package specdecode
