//go:build !unix

package suite

import "time"

var started = time.Now()

// Processor returns how long this process has been running, where the system does not report how
// long it has worked.
func Processor() time.Duration { return time.Since(started) }
