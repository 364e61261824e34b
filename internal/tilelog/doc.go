// Package tilelog is a transparency log of static files, as C2SP's tlog-tiles has them: a signed
// checkpoint, tiles of the tree of RFC 6962, and bundles of entries. Anyone may copy, serve, and
// check them, with programs that are not ours.
//
// A [Log] takes [Leaf] after leaf: which federations there are, how far the chain of each has come,
// and which have ended. A leaf names a federation by its key and people by salted commitments, and
// has no time finer than a day. [Log.Publish] writes the files, and [Open] reads and checks them.
//
// A [Witness] cosigns checkpoints, as C2SP's tlog-cosignature has it.
package tilelog
