package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// disk40 mounts a disk of 40 MB in a new folder, and returns it, or nothing where that is not
// allowed.
func disk40(c *cluster, folder string) string {
	c.Helper()
	if err := os.Mkdir(folder, 0o700); err != nil {
		c.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=40m"); err != nil {
		c.Logf("no disk is filled, which takes the right to mount one: %v", err)
		return ""
	}
	c.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	return folder
}

// filled fills a disk for a while.
func filled(disk string, hold time.Duration) error {
	ballast, err := os.Create(filepath.Join(disk, "ballast"))
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = ballast.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	time.Sleep(hold)
	return errors.Join(ballast.Close(), os.Remove(ballast.Name()))
}

// withoutFiles lets a process open no file for a while.
func withoutFiles(pid int, hold time.Duration) error {
	var was unix.Rlimit
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err == nil {
		err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was)
	}
	if err != nil {
		return err
	}
	none := unix.Rlimit{Cur: min(uint64(len(open)), was.Cur), Max: was.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		return err
	}
	time.Sleep(hold)
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil)
}
