// Package audit tests a printed ε: an auditor runs a mechanism with a canary and without, or once
// with many canaries, tells the two apart as well as possible, and what that shows about ε must
// not exceed the claim.
//
// A lower bound on ε comes from many runs (Clopper–Pearson intervals, as in Jagielski, Ullman,
// Oprea 2020; [Scores] and [Counts.Epsilon]) or from many canaries in one run (Steinke, Nasr,
// Jagielski 2023; [OneRun.Epsilon]). Both are over plain data, to be turned on other systems;
// package attacks/epsilon turns them on this one.
package audit
