// Package crowd takes the private sum of thousands of parties in one process, with
// real keys, chains and masks, by doing each thing once that two or more parties would
// do: it is for measuring, and protects nobody's data.
//
// What is real: every pair of neighbours has its X25519 and, unless Classical, its
// ML-KEM secret, a chain of package keyexchange made of them, and in each round a mask of
// package masking under the chain's next secret; every party has a self mask and signs
// its key and who is in the sum; the server takes self masks off, and the masks
// between those who dropped out and those who did not.
//
// What is done once: both ends of a pair are here, so that one of them makes the
// secrets, and a mask is expanded once and has both signs; a signature is checked
// once, not by everybody who sees it, and in batches. What is left out: the shares of
// the secrets that let a round survive drop-outs, which would come back to the process
// that made them, and the encoding of messages. [Counts] says how often each thing was
// done and how often parties in places of their own would do it; package cost knows
// what that takes.
package crowd
