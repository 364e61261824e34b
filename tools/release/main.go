// Release makes and tests a release of everything that people install, and tags nothing:
//
//	go run -C tools ./release v0.1.0 FOLDER
//
// The folder, which must be new, gets
//
//	proxy/        the modules of go.work as a proxy of Go's serves them, without replace directives
//	release.patch what the tagged commit changes: go.mod, go.sum, the files that say a version, and
//	              the heading of CHANGELOG.md
//	dist/         for each platform programs, wheels and bills of materials (CycloneDX), the server's
//	              images for Linux, the chart, SHA256SUMS
//	notes.txt     what CHANGELOG.md has under Unreleased
//
// The patch is committed and tagged in a clone, from which go takes the modules by their tags: they
// are compared with those of the proxy. Programs are built by go install from that proxy, as users
// will, twice with separate caches, and compared byte for byte, as wheels are. The wheel for this
// platform is installed and asked for an epsilon. The release uses the committed tree; modules by
// other authors come from this user's module cache, or through GOPROXY. The last line is "release
// ok".
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// release is a release in the making.
type release struct {
	version   string // v1.2.3
	out       string // folder, absolute
	source    string // the tree of the commit
	time      time.Time
	platforms []platform
	once      bool
	began     time.Time
	released  []*releasedModule
}

func main() {
	platforms := flag.String("platforms",
		"linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64",
		"for which programs and wheels are made, as os/arch with commas between")
	once := flag.Bool("once", false, "builds programs and wheels once, and does not compare")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: release [flags] VERSION FOLDER")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *platforms, *once); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, folder, platforms string, once bool) error {
	if semver.Canonical(version) != version {
		return fmt.Errorf("%q is no version such as v0.1.0", version)
	}
	targets, err := parsePlatforms(platforms)
	if err != nil {
		return err
	}
	out, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return fmt.Errorf("the folder must be new: %w", err)
	}
	work, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return err
	}
	defer removeAll(work)
	r := &release{version: version, out: out, source: filepath.Join(work, "source"),
		platforms: targets, once: once, began: time.Now()}
	for _, step := range []struct {
		name string
		do   func(work string) error
	}{
		{"the committed tree", r.export},
		{"notes", func(string) error { return r.notes() }},
		{"modules", func(string) error { return r.modules() }},
		{"modules by their tags", r.tags},
		{"programs", r.programs},
		{"bills of materials", func(string) error { return r.bills() }},
		{"archives, the chart", func(string) error { return r.archives() }},
		{"images", func(string) error { return r.images() }},
		{"wheels", r.wheels},
		{"sums", func(string) error { return r.sums() }},
	} {
		fmt.Printf("\n== %s (%.0fs)\n", step.name, time.Since(r.began).Seconds())
		if err := step.do(work); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return r.list()
}

// export writes the committed tree.
func (r *release) export(string) error {
	root, err := command("", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	root = strings.TrimSpace(root)
	changed, err := command(root, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("commit or put away what has changed first:\n%s", changed)
	}
	told, err := command(root, nil, "git", "log", "-1", "--format=%ct %H")
	if err != nil {
		return err
	}
	var seconds int64
	var commit string
	if _, err := fmt.Sscan(told, &seconds, &commit); err != nil {
		return err
	}
	r.time = time.Unix(seconds, 0).UTC()
	fmt.Println("commit", commit, "of", r.time.Format(time.DateTime))
	if err := os.Mkdir(r.source, 0o755); err != nil {
		return err
	}
	_, err = command(root, nil, "git", "clone", "--quiet", "--no-hardlinks", root, r.source)
	return err
}

// notes writes the changelog's text on this release.
func (r *release) notes() error {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	notes, err := unreleased(string(text))
	if err != nil {
		return fmt.Errorf("CHANGELOG.md: %w", err)
	}
	return os.WriteFile(filepath.Join(r.out, "notes.txt"), []byte(notes), 0o644)
}

// list prints the results.
func (r *release) list() error {
	fmt.Println()
	err := filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			relative, _ := filepath.Rel(r.out, path)
			fmt.Printf("%10d  %s\n", info.Size(), filepath.ToSlash(relative))
		}
		return err
	})
	if err != nil {
		return err
	}
	tags := make([]string, len(r.released))
	for i, m := range r.released {
		tags[i] = m.tag(r.version)
	}
	fmt.Printf("\nTo publish: git apply release.patch, commit all of it, and tag that commit %s.\n"+
		"release ok\n",
		strings.Join(tags, " "))
	return nil
}

// command runs a program in a folder, and returns its output.
func command(folder string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = folder, append(os.Environ(), env...)
	var errors strings.Builder
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, errors.String())
	}
	return string(out), err
}

// removeAll removes a folder with caches in it, whose files may not be written to.
func removeAll(folder string) {
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(folder)
}

// platform names a system and a processor that programs run on.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// program returns a program's file name.
func (p platform) program(name string) string {
	if p.os == "windows" {
		return name + ".exe"
	}
	return name
}

func parsePlatforms(list string) (found []platform, err error) {
	for text := range strings.SplitSeq(list, ",") {
		p := platform{}
		p.os, p.arch, _ = strings.Cut(text, "/")
		if wheelTags[p] == "" {
			return nil, fmt.Errorf("%q is no platform that releases have", text)
		}
		if !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	return found, nil
}

// here is this machine's platform.
var here = platform{runtime.GOOS, runtime.GOARCH}
