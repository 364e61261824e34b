// Command mutants makes faults on purpose, each in an overlay, and sees that a test finds it.
//
//	go run -C tools ./mutants              # all of them, each by its own oracle: half an hour
//	go run -C tools ./mutants -today 3     # three, chosen by the date, which is printed
//	go run -C tools ./mutants 5 12         # these
//	go run -C tools ./mutants -list
//
// patches has the faults: a file for each, with what is wrong in words, the oracle of
// internal/falsify that has to find it, or H for the histories of service/harness, or unit for a
// test of the package alone, the tests to run, and lines of a source file with what stands in their
// place. The lines must be in the file exactly once, so that a patch lives on
// through edits nearby, and a test of this package fails for one that does not. A fault that no
// test finds, or that does not compile, is a failure of this command.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, arguments []string) error {
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	today := f.Int("today", 0, "run this many, chosen by the date; 0: all, or those named")
	list := f.Bool("list", false, "list the faults, and run none")
	if err := f.Parse(arguments); err != nil {
		return err
	}
	root, err := clone()
	if err != nil {
		return err
	}
	all, err := patches(filepath.Join(root, "tools", "mutants", "patches"))
	if err != nil {
		return err
	}
	chosen, err := choose(out, all, *today, f.Args())
	if err != nil {
		return err
	}
	var left []string
	for _, p := range chosen {
		if *list {
			fmt.Fprintf(out, "%-4s %-3s %s\n", p.number, p.oracle, p.words)
			continue
		}
		by, took, err := p.try(root)
		switch {
		case err != nil:
			fmt.Fprintf(out, "%-4s %-3s FAILS   %6.1f s  %s: %v\n", p.number, p.oracle, took, p.words, err)
			left = append(left, p.number)
		case by == "":
			fmt.Fprintf(out, "%-4s %-3s LIVES   %6.1f s  %s\n", p.number, p.oracle, took, p.words)
			left = append(left, p.number)
		default:
			fmt.Fprintf(out, "%-4s %-3s caught  %6.1f s  %s: by %s\n", p.number, p.oracle, took, p.words,
				by)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%d of %d faults are not found: %v", len(left), len(chosen), left)
	}
	return nil
}

// choose returns the patches that are named, some by the date, or all.
func choose(out io.Writer, all []*patch, today int, names []string) ([]*patch, error) {
	if today > 0 {
		day := uint64(time.Now().UTC().Unix() / 86400)
		fmt.Fprintf(out, "those of day %d\n", day)
		random := rand.New(rand.NewPCG(day, 0))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:min(today, len(all))], nil
	}
	if len(names) == 0 {
		return all, nil
	}
	var chosen []*patch
	for _, name := range names {
		i := slices.IndexFunc(all, func(p *patch) bool { return p.number == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %s: see -list", strconv.Quote(name))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// clone returns the folder that has all modules.
func clone() (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "tools", "go.work")); err == nil {
			return root, nil
		}
		if root == filepath.Dir(root) {
			return "", errors.New("no folder above is a clone")
		}
		root = filepath.Dir(root)
	}
}
