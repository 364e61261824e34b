// Command compare checks whether two versions of the command print the same figures.
//
//	go run -C tools ./compare OLD NEW
//
// OLD and NEW are revisions of this repository, "." for the working tree, or paths of binaries. It
// runs commands with the same seeds on both and compares everything that depends on no secret
// randomness: with noise, and in attacks, keys and noise are new in every run, and figures that
// follow from them are left out, see cases.go. Times are left out everywhere. With -slow it
// also runs scenarios that take minutes; HUSHSUM_DATA names the folder of the data sets, which is
// otherwise ../shared/data, next to the checkout.
//
// It exits with 0 if all are equal, with 1 if something differs, and with 2 if it
// could not find out.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	only := flag.String("run", "", "only commands that contain `TEXT`")
	slow := flag.Bool("slow", false,
		"also scenarios that take minutes, one of them half an hour of processor a side")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "Usage: go run -C tools ./compare [flags] OLD NEW")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	equal, err := compare(flag.Arg(0), flag.Arg(1), *only, *slow)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	case !equal:
		os.Exit(1)
	}
}

// compare runs all cases that contain the text.
func compare(before, after, only string, slow bool) (equal bool, err error) {
	dir, err := os.MkdirTemp("", "hushsum-compare-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return false, err
	}
	r := runner{root: root, dir: dir,
		data: cmp.Or(os.Getenv("HUSHSUM_DATA"), filepath.Join(root, "..", "shared", "data"))}
	for i, version := range []string{before, after} {
		if r.binaries[i], err = build(root, version, filepath.Join(dir, fmt.Sprint(i))); err != nil {
			return false, err
		}
	}
	equal, ran := true, 0
	for _, c := range cases() {
		if !strings.Contains(c.args, only) || c.slow && !slow {
			continue
		}
		ran++
		start := time.Now()
		d, err := r.run(c)
		if err != nil {
			return false, fmt.Errorf("%s: %w", c.args, err)
		}
		equal = equal && len(d.differences) == 0
		fmt.Printf("%-9s %6d values %6.1f s  %s\n", d.verdict(), d.compared, time.Since(start).Seconds(),
			c.args)
		d.print(os.Stdout)
	}
	if ran == 0 {
		return false, fmt.Errorf("no command contains %q", only)
	}
	return equal, nil
}

// build makes the binary of a version and returns its path.
func build(root, version, dir string) (string, error) {
	if info, err := os.Stat(version); err == nil && info.Mode().IsRegular() {
		return filepath.Abs(version)
	}
	source := root
	if version != "." {
		source = filepath.Join(dir, "source")
		if err := os.MkdirAll(source, 0o777); err != nil {
			return "", err
		}
		archive := filepath.Join(dir, "source.tar")
		if _, err := output(root, "git", "archive", "-o", archive, version); err != nil {
			return "", err
		}
		if _, err := output(source, "tar", "-xf", archive); err != nil {
			return "", err
		}
	}
	binary := filepath.Join(dir, "hushsum")
	_, err := output(source, "go", "build", "-o", binary, "./cmd/hushsum")
	return binary, err
}

// output runs a program and returns what it prints, without the last line's end.
func output(dir, name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	command.Dir = dir
	// The workspace of this module is not that of the version being built.
	command.Env = append(os.Environ(), "GOWORK=", "PWD="+dir)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// runner runs cases on both binaries.
type runner struct {
	binaries        [2]string
	root, dir, data string
}

// run runs a case and compares what the two print.
func (r *runner) run(c testCase) (*difference, error) {
	var sides [2][]any
	for i := range sides {
		out, end, err := r.line(i, c.args)
		if err != nil {
			return nil, err
		}
		values, err := objects(out)
		if err != nil {
			return nil, err
		}
		for k := range values {
			values[k] = c.reduce(values[k])
		}
		sides[i] = append(values, c.strip(end))
	}
	d := &difference{}
	d.walk("", sides[0], sides[1])
	return d, nil
}

// line runs the commands of a line with one of the binaries, each of which reads the output of the
// one before it, and returns the output of the last and how it ends, with the complaints of all.
func (r *runner) line(side int, line string) (out []byte, end map[string]any, err error) {
	// Some versions write files into the folder where they run.
	dir := filepath.Join(r.dir, "files", fmt.Sprint(side))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, nil, err
	}
	var complaint bytes.Buffer
	code := 0
	for args := range strings.SplitSeq(strings.ReplaceAll(line, "ROOT", r.root), " | ") {
		command := exec.Command(r.binaries[side], strings.Fields(args)...)
		command.Dir = dir
		command.Env = append(os.Environ(), "HUSHSUM_DATA="+r.data)
		command.Stdin, command.Stderr = bytes.NewReader(out), &complaint
		out, err = command.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return nil, nil, err
		}
		if code = command.ProcessState.ExitCode(); code != 0 {
			break
		}
	}
	said := heartbeat.ReplaceAllString(complaint.String(), "")
	return out, map[string]any{"exit code": code, "stderr": said}, nil
}

// heartbeat matches a line that reports the progress of a long run, which is printed every few
// seconds.
var heartbeat = regexp.MustCompile(
	`(?m)^hushsum simulate: (key exchange|round \d+ of \d+), .*\n|^hushsum \w+: \d+ of \d+ done.*\n`)

// objects reads JSON values, one after another.
func objects(out []byte) (values []any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber() // every digit counts
	for decoder.More() {
		var v any
		if err := decoder.Decode(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}
