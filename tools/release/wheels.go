package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// wheelTags maps platforms to those of wheels (packaging.python.org, "Platform compatibility
// tags"). The programs are static, so those for Linux suit any C library.
var wheelTags = map[platform]string{
	{"linux", "amd64"}:   "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:   "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
	{"darwin", "amd64"}:  "macosx_12_0_x86_64",
	{"darwin", "arm64"}:  "macosx_12_0_arm64",
	{"windows", "amd64"}: "win_amd64",
	{"windows", "arm64"}: "win_arm64",
}

// wheels builds a wheel for each platform, twice unless once is enough, and installs the one for
// this platform.
func (r *release) wheels(work string) error {
	python := "/usr/bin/python3" // Debian's, if it exists, has the packages needed for building
	if !builds(python) {
		python = "python3"
	}
	if !builds(python) {
		return errors.New("it takes Debian's python3-pip, python3-setuptools and python3-wheel")
	}
	number := strings.TrimPrefix(r.version, "v")
	for _, p := range r.platforms {
		name := fmt.Sprintf("hushsum-%s-py3-none-%s.whl", number, wheelTags[p])
		first, err := r.wheel(work, python, p, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, "dist", name), first, 0o644); err != nil {
			return err
		}
		if !r.once {
			again, err := r.wheel(work, python, p, name)
			if err != nil {
				return err
			}
			if !bytes.Equal(first, again) {
				return fmt.Errorf("%s comes out differently when it is built again", name)
			}
		}
		fmt.Println(name)
		if p == here {
			if err := r.tryWheel(work, python, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// wheel builds the wheel of a platform in folders of its own, and returns it.
func (r *release) wheel(work, python string, p platform, name string) ([]byte, error) {
	folder, err := os.MkdirTemp(work, "wheel-*")
	if err != nil {
		return nil, err
	}
	source := filepath.Join(folder, "source")
	if err := os.CopyFS(source, os.DirFS(filepath.Join(r.source, "python"))); err != nil {
		return nil, err
	}
	env := []string{"HUSHSUM_WHEEL_PLATFORM=" + wheelTags[p],
		"HUSHSUM_PROGRAMS=" + r.built(p), "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.time.Unix(), 10)}
	if _, err := command(source, env, python, "-m", "pip", "wheel", "--quiet", "--no-deps",
		"--no-index", "--no-build-isolation", "--wheel-dir", folder, "."); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(folder, name))
}

// builds reports whether a Python has the packages that are needed to build wheels.
func builds(python string) bool {
	_, err := command("", nil, python, "-c", "import setuptools, wheel, pip")
	return err == nil
}

// tryWheel installs a wheel into a folder of its own, and asks it what ten rounds spend.
func (r *release) tryWheel(work, python, name string) error {
	folder := filepath.Join(work, "installed")
	if _, err := command("", nil, python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
		"--target", folder, filepath.Join(r.out, "dist", name)); err != nil {
		return err
	}
	told, err := command(work, []string{"PYTHONPATH=" + folder, "HUSHSUM_BINARY="}, python, "-c",
		"import hushsum; print(hushsum.__version__, "+
			"hushsum.epsilon('gaussian', noise_multiplier=1, rounds=10, delta=1e-6))")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(told, strings.TrimPrefix(r.version, "v")+" ") {
		return fmt.Errorf("the wheel says that it is %s", told)
	}
	fmt.Print("installed; version, epsilon of ten rounds: ", told)
	return nil
}
