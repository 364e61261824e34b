// Package chain keeps decisions so that damage to them is noticed, and so that others can check
// them. It knows nothing of where they come from.
//
// An [Entry] is one decision: a line of JSON, a space and a signature. The bytes of the line are
// hashed, and nobody encodes an entry again. Each entry has the hash of the line before, so
// that the lines of a federation are a chain; they are also the leaves of a [Tree] as RFC 6962
// defines it, so that a proof that an entry is in a chain, or that one chain continues another, has
// a length of the logarithm of their number. A [Head] is the size and root of that tree as a signed
// note, which is a checkpoint as C2SP's tlog-checkpoint defines it.
//
// Numbers count from 0 and are never used twice on purpose. A record that was set back, or
// restored, begins a new segment, with an entry of kind [Setback]: it says which numbers are lost.
// Each segment has a tree of its own, and heads compare by segment, then by size.
//
// A [File] has the lines of one node, apart from any other store. [Union] makes one chain of
// several copies that may all be damaged: it takes each number from whichever copy has it,
// names those that none has, and finds a fork, which is two entries of one number.
//
// An entry has numbers and digests, and never the name of a person or of a site.
package chain
