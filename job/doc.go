// Package job declares a private sum: who takes part, what is summed and by which protocol, how
// much of each party's privacy may be spent, how a model is trained, and the world in which all of
// it is simulated. The same file is simulated, deployed and read from Go and Python, with one
// meaning:
//
//	name = "first"
//	rounds = 20
//	parties.count = 10
//	model.name = "logistic"
//	privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
//
// [Load] and [Parse] read TOML, or JSON with the same names, strictly: a key that is unknown, given
// twice or written in another case is refused, and all mistakes in a file are reported at once,
// each as a [ConfigError] with its line and what to write.
//
// Everything that can be declared is in one table, which [Fields] returns: names, types, units,
// ranges, defaults and a sentence each. A zero value means the default.
package job

//go:generate go test . -run Generated -rewrite
