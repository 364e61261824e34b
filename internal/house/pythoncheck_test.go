package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// python/check says what it lacks before it builds anything, and which packages or which
// interpreter would do.
func TestPythonCheckLooksFirst(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	if python, err = filepath.Abs(python); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	bare := filepath.Join(folder, "bare")
	// -I -S: a Python without any package.
	write(t, bare, "#!/bin/sh\nexec "+python+" -I -S \"$@\"\n")
	write(t, filepath.Join(folder, "go"), "#!/bin/sh\necho built\nexit 7\n")
	check := exec.Command(bash, filepath.Join(root, "python/check"), "--python", bare)
	check.Env = append(os.Environ(), "HUSHSUM_DATA="+folder,
		"PATH="+folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := check.CombinedOutput()
	if err == nil || check.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	for _, want := range []string{
		bare + " has no pip setuptools wheel numpy pytest sklearn torch\n",
		"Debian's python3-pip python3-setuptools python3-wheel python3-numpy",
		"pytest scikit-learn torch\n",
		"python/check --python PATH",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "built") || strings.Contains(string(out), "==") {
		t.Errorf("it has begun:\n%s", out)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}
