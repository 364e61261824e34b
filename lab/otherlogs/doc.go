// Package otherlogs has implementations of transparency logs that are not ours read what ours
// writes: Tessera's fsck and client, and the checkpoints, cosignatures and proofs of
// transparency-dev. It has tests alone.
package otherlogs
