//go:build unix

package simulate

import (
	"syscall"
	"time"
)

// processorTime reads a clock of how long this process has worked, on all cores together, which
// depends little on other load of the machine.
func processorTime() time.Time {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return time.Now()
	}
	return time.Unix(0, used.Utime.Nano()+used.Stime.Nano())
}
