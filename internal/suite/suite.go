// Package suite holds the flags that choose which tests run. Without any, go test runs what
// depends on nothing but the code: no processor, no load, no clock.
//
//	-long     runs the long forms too: more cases of the same tests, some minutes in all
//	-longest  runs forms that take hours and gigabytes
//	-timing   runs the tests that measure times, on a quiet machine
//
// It is for tests. Test binaries of packages whose tests do not use it refuse the flags.
package suite

import (
	"flag"
	"strconv"
	"testing"
)

var (
	long    = flag.Bool("long", false, "run the long forms of tests: some minutes in all")
	longest = flag.Bool("longest", false, "run the longest forms of tests: hours, and gigabytes")
	timing  = flag.Bool("timing", false, "run the tests that measure times, on a quiet machine")
)

// Long reports whether tests run in their long forms, or in their longest.
func Long() bool { return *long || *longest }

// Longest reports whether tests run in their longest forms.
func Longest() bool { return *longest }

// Timing reports whether tests measure times.
func Timing() bool { return *timing }

// OnlyLong skips a test that has a long form alone.
func OnlyLong(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("it takes long: give -long")
	}
}

// OnlyLongest skips a test that has a longest form alone.
func OnlyLongest(t testing.TB) {
	t.Helper()
	if !Longest() {
		t.Skip("it takes very long: give -longest")
	}
}

// OnlyTiming skips a test, or what is left of one, that measures times. A time depends on the
// processor and on what else the machine does: a test of it fails somewhere by chance, however
// generous its limits are.
func OnlyTiming(t testing.TB) {
	t.Helper()
	if !*timing {
		t.Skip("it measures times: give -timing, on a quiet machine")
	}
}

// AtOnce lets a given number of parallel tests run at a time, unless -parallel says how many: a
// TestMain calls it where such tests mostly wait, which takes no processor.
func AtOnce(tests int) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(strconv.Itoa(tests)); err != nil {
			panic(err)
		}
	}
}

// Checks makes rapid.Check try a given number of cases in the rest of a test, which must not run
// next to others, unless -rapid.checks says how many.
func Checks(t testing.TB, cases int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks == nil {
		t.Fatal("suite.Checks in a test without rapid")
	}
	before := checks.Value.String()
	if before != checks.DefValue {
		return
	}
	set := func(value string) {
		if err := checks.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	set(strconv.Itoa(cases))
	t.Cleanup(func() { set(before) })
}

// Size returns how many cases a test has in its short form (go test -short), by default, in its
// long form and in its longest.
func Size(short, standard, long, longest int) int {
	switch {
	case Longest():
		return longest
	case Long():
		return long
	case testing.Short():
		return short
	}
	return standard
}
