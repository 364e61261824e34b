package record

import "time"

// StreamOf is streamOf.
var StreamOf = streamOf

// CopiesOf is copiesOf.
var CopiesOf = copiesOf

// LeastStart sets how long JetStream may take to start, at least.
func LeastStart(d time.Duration) { leastStart = d }

// Folder returns where decisions are kept.
func (r *Records) Folder() string { return r.folder }

// Keys returns the keys.
func (r *Records) Keys() *Keys { return r.keys }
