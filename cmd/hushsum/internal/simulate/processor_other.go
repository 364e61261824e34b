//go:build !unix

package simulate

import "time"

// processorTime returns the time of day, where the system does not report how long a process has
// worked.
func processorTime() time.Time { return time.Now() }
