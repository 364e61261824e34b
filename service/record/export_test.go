package record

import "time"

// StreamOf is streamOf.
var StreamOf = streamOf

// CopiesOf is copiesOf.
var CopiesOf = copiesOf

// LeastStart sets how long JetStream may take to start, at least.
func LeastStart(d time.Duration) { leastStart = d }
