package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// wheelTags are the platforms of wheels (packaging.python.org, "Platform compatibility tags"). The
// programs are static, so that those of Linux suit any C library.
var wheelTags = map[platform]string{
	{"linux", "amd64"}:   "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:   "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
	{"darwin", "amd64"}:  "macosx_12_0_x86_64",
	{"darwin", "arm64"}:  "macosx_12_0_arm64",
	{"windows", "amd64"}: "win_amd64",
	{"windows", "arm64"}: "win_arm64",
}

// wheels builds a wheel for each platform, and installs that of this one.
func (r *release) wheels(work string) error {
	python := "/usr/bin/python3" // Debian's, where it is, has the packages that building takes
	if !builds(python) {
		python = "python3"
	}
	if !builds(python) {
		return errors.New("it takes Debian's python3-pip, python3-setuptools and python3-wheel")
	}
	number := strings.TrimPrefix(r.version, "v")
	for _, p := range r.platforms {
		source := filepath.Join(work, "python-"+p.os+"-"+p.arch)
		if err := os.CopyFS(source, os.DirFS(filepath.Join(r.source, "python"))); err != nil {
			return err
		}
		if err := numbered(filepath.Join(source, "pyproject.toml"), number); err != nil {
			return err
		}
		env := []string{"HUSHSUM_WHEEL_PLATFORM=" + wheelTags[p],
			"HUSHSUM_PROGRAMS=" + r.built(p), "PIP_DISABLE_PIP_VERSION_CHECK=1",
			"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.time.Unix(), 10)}
		if _, err := command(source, env, python, "-m", "pip", "wheel", "--quiet", "--no-deps",
			"--no-index", "--no-build-isolation", "--wheel-dir", filepath.Join(r.out, "dist"),
			"."); err != nil {
			return err
		}
		name := fmt.Sprintf("hushsum-%s-py3-none-%s.whl", number, wheelTags[p])
		if _, err := os.Stat(filepath.Join(r.out, "dist", name)); err != nil {
			return err
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

// builds reports whether a Python has the packages that building wheels takes.
func builds(python string) bool {
	_, err := command("", nil, python, "-c", "import setuptools, wheel, pip")
	return err == nil
}

// numbered writes the version into the package's file.
func numbered(name, number string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, after, ok := strings.Cut(string(text), "\nversion = \"")
	_, after, ended := strings.Cut(after, "\"\n")
	if !ok || !ended {
		return fmt.Errorf("%s has no version", name)
	}
	return os.WriteFile(name, []byte(before+"\nversion = \""+number+"\"\n"+after), 0o644)
}

// tryWheel installs a wheel into a folder of its own, and asks it what ten rounds spend.
func (r *release) tryWheel(work, python, name string) error {
	folder := filepath.Join(work, "installed")
	if _, err := command("", nil, python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
		"--target", folder, filepath.Join(r.out, "dist", name)); err != nil {
		return err
	}
	told, err := command(work, []string{"PYTHONPATH=" + folder, "HUSHSUM_BINARY="}, python, "-c",
		"import hushsum; print(hushsum.epsilon('gaussian', noise_multiplier=1, rounds=10, delta=1e-6))")
	if err != nil {
		return err
	}
	fmt.Print("installed; epsilon of ten rounds: ", told)
	return nil
}
