//go:build unix

package children

import (
	"os/exec"
	"syscall"
)

// EndWith makes a command's own children end with it, when its context does.
func EndWith(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
