// Command suite measures what the tests of each package take of processors and of the clock, and
// compares it with a budget.
//
//	go -C tools build -o "$PWD/suite" ./suite
//	go test -count=1 -exec "$PWD/suite note $PWD/notes.txt" work
//	./suite check notes.txt tools/suite/budgets.txt
//
// "note FILE COMMAND …" runs a test binary, as go test -exec calls it, and adds a line to FILE: the
// package, its seconds of user and system time, and its seconds of the clock. "check NOTES BUDGETS"
// prints the packages, those first that took most, and exits with 1 if one took more than its
// budget. With -quiet, for a machine that does nothing else, the clock counts too: a package that
// takes much longer than its processor time waits for something. "budget NOTES" prints a file of
// budgets from notes.
//
// Budgets are in seconds of one machine that runs the gate, whose checks share its processors with
// the tests: alone most packages take half to two thirds as much. The machine's speed is the first
// line of their file: how long a fixed piece of work took. check does the same work, and scales the
// budgets by what it takes.
package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A cost holds what the tests of a package took, in seconds.
type cost struct {
	processor, clock float64
}

// Over its budget is a package that took this many times as much processor, and some seconds more,
// in which short runs vary. One that takes longer than waits allow waits for something.
const (
	overBudget, overBudgetSeconds = 1.5, 2
	waits, waitsSeconds           = 3, 3
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			os.Exit(max(ended.ExitCode(), 1)) // what a test binary says it has said itself
		}
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) >= 3 && arguments[0] == "note":
		return note(arguments[1], arguments[2], arguments[3:])
	case len(arguments) == 3 && arguments[0] == "check":
		return check(os.Stdout, arguments[1], arguments[2], false)
	case len(arguments) == 4 && arguments[0] == "check" && arguments[1] == "-quiet":
		return check(os.Stdout, arguments[2], arguments[3], true)
	case len(arguments) == 2 && arguments[0] == "budget":
		return budget(os.Stdout, arguments[1])
	}
	return errors.New("note FILE COMMAND [ARGUMENT …], check [-quiet] NOTES BUDGETS, or budget NOTES")
}

// note runs a test binary and adds what it took to a file. go test runs each in its package's
// folder, from which the package is named. Several may write at once: a line is one write.
func note(file, command string, arguments []string) error {
	child := exec.Command(command, arguments...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	began := time.Now()
	ended := child.Run()
	if child.ProcessState == nil {
		return ended
	}
	clock := time.Since(began)
	name, err := packageName()
	if err != nil {
		return err
	}
	var all syscall.Rusage // children of children too: a node is a process of its own
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &all); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s %.2f %.2f %.2f\n", name, seconds(all.Utime), seconds(all.Stime),
		clock.Seconds())
	return errors.Join(ended, err, out.Close())
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// packageName returns the working folder's path below the folder with go.work.
func packageName() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			name, err := filepath.Rel(root, dir)
			return filepath.ToSlash(name), err
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("there is no go.work above %s", dir)
		}
	}
}

// readNotes returns what each package took, in all of its tests.
func readNotes(file string) (map[string]cost, error) {
	costs := map[string]cost{}
	err := lines(file, 4, func(name string, numbers []float64) {
		c := costs[name]
		costs[name] = cost{c.processor + numbers[0] + numbers[1], c.clock + numbers[2]}
	})
	return costs, err
}

// speed names the first line of a file of budgets.
const speed = "speed"

// readBudgets returns the processor seconds that packages may take, on this machine.
func readBudgets(file string) (map[string]float64, error) {
	budgets := map[string]float64{}
	err := lines(file, 2, func(name string, numbers []float64) { budgets[name] = numbers[0] })
	if err != nil {
		return nil, err
	}
	there := budgets[speed]
	if !(there > 0) {
		return nil, fmt.Errorf("%s does not begin with %q and the seconds of its machine", file, speed)
	}
	delete(budgets, speed)
	slower := max(1, reference()/there) // a faster machine has reserves
	for name := range budgets {
		budgets[name] *= slower
	}
	return budgets, nil
}

// lines calls a function with each line of a file that has a name and numbers, fields in all.
func lines(file string, fields int, each func(name string, numbers []float64)) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	scanner := bufio.NewScanner(in)
	for at := 1; scanner.Scan(); at++ {
		words := strings.Fields(scanner.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != fields {
			return fmt.Errorf("%s:%d has %d fields instead of %d", file, at, len(words), fields)
		}
		var numbers []float64
		for _, w := range words[1:] {
			number, err := strconv.ParseFloat(w, 64)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", file, at, err)
			}
			numbers = append(numbers, number)
		}
		each(words[0], numbers)
	}
	return scanner.Err()
}

// reference returns the processor seconds that a fixed piece of work takes, the least of three
// times: what else runs makes it longer, never shorter.
func reference() float64 {
	least := math.Inf(1)
	for range 3 {
		before := processor()
		var sum [sha256.Size]byte
		for range 2_000_000 {
			sum = sha256.Sum256(sum[:])
		}
		least = min(least, processor()-before)
	}
	return least
}

// processor returns the seconds that this process has computed.
func processor() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // it takes no argument that could be wrong
	}
	return seconds(used.Utime) + seconds(used.Stime)
}

// check prints what packages took and returns an error that names those over their budgets.
func check(w io.Writer, notes, file string, quiet bool) error {
	costs, err := readNotes(notes)
	if err != nil {
		return err
	}
	budgets, err := readBudgets(file)
	if err != nil {
		return err
	}
	var over []string
	var all cost
	fmt.Fprintf(w, "%-34s %10s %10s %10s\n", "package", "processor", "budget", "clock")
	for _, name := range byCost(costs) {
		c := costs[name]
		budget, known := budgets[name]
		told := ""
		switch {
		case !known:
			told = "  has no budget"
		case c.processor > overBudget*budget+overBudgetSeconds:
			told = "  over its budget"
		case quiet && c.clock > waits*c.processor+waitsSeconds:
			told = "  waits"
		}
		if told != "" {
			over = append(over, name+told)
		}
		fmt.Fprintf(w, "%-34s %8.1f s %8.1f s %8.1f s%s\n",
			name, c.processor, budget, c.clock, told)
		all = cost{all.processor + c.processor, all.clock + c.clock}
	}
	fmt.Fprintf(w, "%-34s %8.1f s %10s %8.1f s\n", "all", all.processor, "", all.clock)
	if len(over) > 0 {
		return fmt.Errorf("tests take too long; mend them, or argue for another budget in %s: %s",
			file, strings.Join(over, "; "))
	}
	return nil
}

// byCost returns the packages, the one that took most first.
func byCost(costs map[string]cost) []string {
	return slices.SortedFunc(maps.Keys(costs), func(a, b string) int {
		return cmp.Or(cmp.Compare(costs[b].processor, costs[a].processor), cmp.Compare(a, b))
	})
}

// budget prints a file of budgets: what each package took.
func budget(w io.Writer, notes string) error {
	costs, err := readNotes(notes)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "# Processor seconds of the tests of each package: go doc ./tools/suite\n"+
		"# explains them. First come the seconds that its fixed piece of work took.\n")
	fmt.Fprintf(w, "%s %.3f\n", speed, reference())
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		fmt.Fprintf(w, "%s %.1f\n", name, costs[name].processor)
	}
	return nil
}
