// Package harness tests what a record promises, from outside: histories of nodes that claim, decide
// and tell, while files are damaged, processes are killed and frozen, and networks are cut, are
// compared by Porcupine with a model that has neither disks nor networks. docs/record-tests.md says
// what was promised, tried and found.
//
// [Damage] and [Proxy] are also for tests of other packages.
//
//	go test ./service/harness                                    # the short form
//	go test ./service/harness -long                              # every nemesis of processes once
//	go test ./service/harness -run Histories -harness.for 4h     # -timeout 0
//	go test ./service/harness -run Histories -harness.seed 17 -harness.worlds 1
//
// The last one repeats a world of histories without processes: a failure names its seed, and with
// -artifacts leaves the files that it found.
package harness
