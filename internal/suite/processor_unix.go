//go:build unix

package suite

import (
	"syscall"
	"time"
)

// Processor returns how long this process has worked, on all cores together, which depends little
// on what else the machine does.
func Processor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic("suite: " + err.Error()) // of this process there is a figure
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
