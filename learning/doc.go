// Package learning holds small data sets and models to train by federated
// learning, and ways to deal a data set to parties.
//
// Data: the Adult census table, the UCI optical digits, MNIST (with the writer of
// every digit) and Fashion-MNIST, and Census, a synthetic table of Adult's flavour
// whose true weights are known. Models: Logistic, Softmax, MLP and LeNet on gonum,
// behind the interface Model. SGD trains any Model by mini-batches, Evaluate tests it.
// PartitionIID gives parties equally many random rows; Partition knows the
// partitions of the literature by name, from IID to one party per writer;
// PartitionPersonal deals the few rows of few classes of personal models.
//
// The package is the first station of a round: a party trains a copy of the
// broadcast weights on its own rows, and what leaves the party is encoded and
// masked elsewhere; nothing clips it on the way. Parameters are always one flat
// vector of float64, so that the rest of the pipeline need not know the model.
//
// Nothing here protects anything. The weights that Train returns reveal
// training rows, and the generators behind Split, Partition, Census, Init and SGD
// are seeded, predictable ones: never draw a secret, a mask or released noise
// from them. Nothing runs in constant time.
//
// Training reuses memory through a pool, so training rows and weights stay in
// memory after a call returns.
//
// No function prints, reads the clock or touches the network; the readers read
// the files they are pointed at and nothing else. All functions are safe for
// concurrent use as long as no caller writes to a Dataset or weight vector that
// another one uses.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package learning
