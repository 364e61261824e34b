//go:build unix

package virtual

import (
	"syscall"
	"time"
)

// processorTime is a clock of how long this process has worked, on all cores together,
// which depends little on what else the machine does.
func processorTime() time.Time {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return time.Now()
	}
	return time.Unix(0, used.Utime.Nano()+used.Stime.Nano())
}
