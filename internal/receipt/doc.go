// Package receipt has the paper that a party keeps of a round: that its submission, and whose
// submissions with it, went into one sum.
//
// A [Statement] holds what the paper says of one party in one round. Its [Statement.Leaf] is a
// salted hash, and the leaves of all parties of a sum are a tree, whose root the entry of the sum
// names as its survivors (package chain). A [Receipt] has the statement, the proof that its leaf is
// in that tree, the entry, the proof that the entry is in the federation's chain, and a signed head
// of that. So the federation's key vouches for every line of a statement, and whoever has other
// entries learns nothing of it without the salt.
//
// [Contradict] compares two receipts, and makes [Evidence] of two that one honest key cannot have
// vouched for. A receipt does not show that a sum was computed as the rules say.
package receipt
