//go:build !unix

package virtual

import "time"

// processorTime is the time of day, where the system does not say how long a process has
// worked.
func processorTime() time.Time { return time.Now() }
