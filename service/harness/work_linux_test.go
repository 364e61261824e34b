package harness

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// bound bounds the memory of a process: one that counts may take all there is.
func bound(pid int) {
	const most = 6 << 30 // addresses, of which Go's runtime takes many
	_ = unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most}, nil)
}

// work returns how many seconds of a processor a process has taken.
func work(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	var user, system float64
	if len(fields) > 12 {
		_, _ = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	}
	const ticks = 100 // a second, on every processor that Go has
	return (user + system) / ticks
}
