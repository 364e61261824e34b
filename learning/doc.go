// Package learning holds small data sets and models to train by federated
// learning: the Adult census table, a synthetic table of the same flavour whose
// true weights are known, splits of a table over parties, and binary logistic
// regression on gonum.
//
// The package is the first station of a round: a party trains a copy of the
// broadcast weights on its own rows, and what leaves the party is encoded and
// masked elsewhere; nothing clips it on the way. Parameters are always one flat
// vector of float64, so that the rest of the pipeline need not know the model.
//
// Nothing here protects anything. The weights that Train returns reveal
// training rows, and the generators behind Split, PartitionIID and Census are
// seeded, predictable ones: never draw a secret, a mask or released noise from
// them. Nothing runs in constant time.
//
// No function prints, reads the clock or touches the network; ReadAdult reads
// the two files it is pointed at and nothing else. All functions are safe for
// concurrent use as long as no caller writes to a Dataset or weight vector that
// another one uses.
package learning
