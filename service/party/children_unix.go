//go:build unix

package party

import (
	"os/exec"
	"syscall"
)

// endWithChildren has a command's own children end with it.
func endWithChildren(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
