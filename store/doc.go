// Package store keeps what a process must not lose: the newest state of one owner, sealed and
// numbered, and long objects next to it.
//
// A [Store] has the bytes: [FileStore] in files, [MemoryStore] for as long as a process lasts, or a
// store of the caller's own. A [Vault], which [Open] makes over a Store, gives them their meaning.
//
// # What is promised
//
// A seal: a state is encrypted and authenticated under the owner's key, with the owner's name and
// the state's number. A state that was changed, or is another owner's, fails with [ErrStore].
//
// A number: each state has the next one, and a [Counter] knows that of the newest. An older state,
// which would undo the erasure of keys and forget what was spent, fails with [ErrOldState], and so
// does a missing one. A kill between the write of a state and that of the counter loses nothing:
// the newest state opens, and from then on none before it does. Without a Counter, which belongs on
// another disk than the state, nothing finds out that the whole store is an old copy; a [FileStore]
// has its states in two files in turn, and so finds out that there is none any more, that one of
// the two is damaged, or gone, or not from the same time as the other.
//
// One owner: a Store with a method Lock is one vault's until that is closed, and a second one fails
// with [ErrLocked].
//
// Long objects next to the state: models and sums are neither sealed nor held as one slice.
// [Vault.Put] returns an object's digest, which the caller writes into the state that it saves
// next, and [Vault.Get] returns nothing but an object of that digest.
//
// Save before what follows from a state leaves the process: when [Vault.Save] returns, the state is
// durable, and after an error nothing may follow.
package store
