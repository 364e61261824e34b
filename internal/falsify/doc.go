// Package falsify holds tests that try to refute what jobs promise about privacy: random jobs over
// all fields that there are, and for each that settles an attempt by every oracle. It exports
// nothing.
//
//	go test ./internal/falsify                      # 300 jobs, fixed seeds and one by date
//	go test ./internal/falsify -long                # more of everything, an hour or so
//	go test ./internal/falsify -run Distance -first 7 -jobs 1000 -v
//
// The oracles, each a test of its own over the same jobs:
//
//	F1 TestCounts    shares, charges, rate and unit by the words of docs/job.md, by code that has
//	                 none of package job's; graphs by exact counting, at each size of a session
//	F2 TestDistance  neighbouring data by the path that makes a message, with the noise known and
//	                 equal dithers: what is left is an integer vector, held against the norms that
//	                 are charged, exactly
//	F3 TestPresence  lengths and instants of all that leaves, in virtual time, with the unit and
//	                 without
//	F5 TestAudit     whole sums of tiny jobs, thousands of times with the unit and without, against
//	                 the claim; and against a claim of four times the noise, which must fall
//	F6 TestWords     figures and their lower ends against closed forms that share no code with
//	                 package accounting
//	F6 TestProofs    derivations against tools/proof/check.py, which certifies their ε
//
// F4, games over chains of jobs, needs a party's book: it is TestChains of job/consent.
//
// A job that fails is made smaller, field by field, and printed as a file for testdata, whose jobs
// are tried first. tools/mutants has faults, each made on purpose, that an oracle must find.
package falsify
