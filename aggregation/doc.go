// Package aggregation turns updates into a model: from floats to a ring and
// back, and from the sum of many updates to their average.
//
// [FixedPoint] rounds real numbers to integers and puts them into Z_{2^b}, with
// b just large enough that the sum of all parties cannot wrap. [FedAvg] is the
// weighted average of federated learning (McMahan 2017), computed from sums
// alone, so that a private sum (package protocol) can carry it. [Encoder] is for
// sums with differential privacy: it clips, rotates, rounds so that the norm stays
// bounded, and takes noise, which its caller draws, into the ring.
//
// # Rules of a round
//
// A client trains with plain SGD, or with [Proximal], [Scaffold] or [Displace] (FedProx, SCAFFOLD,
// FedGA), and sends the difference of its model from the server's, through an [Encoder] or
// [FedAvg]. [Signs] and [Mean] are further lanes of the same submission, laid side by side by
// [Lanes]: the signs that a [GradientMask] is made from, the clipping votes of [AdaptiveClip],
// control variates. [Optimizer] makes the next model from the mean and the mask (FedAvg, momentum,
// FedAdagrad, FedAdam, FedYogi). All of them work on flat vectors, and the server's part needs sums
// only. [WeightedVector] and [WeightedMean] are for means that are weighted by the parties' rows;
// [Owners] and [Prune] are for sparse models.
//
// # What it promises
//
// Decoding a ring sum gives the integer sum of the rounded inputs bit for bit,
// in any order of the additions and with any masks that cancelled on the way.
// The bounds behind that are computed with integers, never with rounded floats.
// A number that does not fit is an error and is never clamped.
//
// The package hides nothing: values that [FixedPoint.Encode] and
// [FedAvg.Encode] return are as secret as the update that they encode, and an
// average says something about every update in it. Masks hide the former, noise
// the latter.
//
// # Constant time
//
// Encoding takes time that depends on the values. Anyone who can time a party to
// the nanosecond learns about magnitudes.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package aggregation
