package suite

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Checker starts tools/proof/check.py, with a limit on its memory, for the rest of a test. The
// function that it returns says what the program says of a derivation, after its exit code.
func Checker(t testing.TB) (check func(derivation []byte) string) {
	t.Helper()
	c := proof(t, "-c", "import resource, sys, check\n"+
		"resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"+
		"for line in sys.stdin.buffer: print(*check.verdict(line), flush=True)")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewReader(out)
	return func(derivation []byte) string {
		t.Helper()
		if _, err := fmt.Fprintf(in, "%s\n", derivation); err != nil {
			t.Fatal(err)
		}
		said, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(said, "\n")
	}
}

// proof runs Python in tools/proof, where tests skip without it.
func proof(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs python3, which is not there")
	}
	c := exec.Command(python, append([]string{"-B"}, args...)...)
	c.Dir = filepath.Join(clone(t), "tools", "proof")
	return c
}
