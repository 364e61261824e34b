package hushsum

import (
	"runtime"

	"github.com/hushsum/hushsum/job"
)

// What a job is package job says; these are its names here.
type (
	// Settled is a job worked out for its parties, as [job.Job.Settle] returns it.
	Settled = job.Settled
	// ConfigError names the field of a job, or of one of this package's types, that is
	// unusable. It is [ErrConfig].
	ConfigError = job.ConfigError
	// DifferenceError names the first field in which two sides' jobs differ. It is [ErrJob].
	DifferenceError = job.DifferenceError
	// Message holds what a party sends in a round of a job in which that is more than a vector.
	Message = job.Message
	// Round is a round that gave a sum.
	Round = job.Round
)

// Errors of jobs.
var (
	ErrConfig = job.ErrConfig
	ErrJob    = job.ErrJob
)

// drivable returns an error unless s has rounds.
func drivable(s *Settled) error {
	if s == nil || s.Rounds() == 0 {
		return &ConfigError{
			Path:   "Job",
			Reason: "there is none",
			Advice: "use what job.Job.Settle returns",
		}
	}
	return nil
}

// more reports whether parties send more than the vector that their program makes: its weight, or
// its signs.
func more(s *Settled) bool { return !s.Trains() && !s.Alone() }

// longModel is the least number of weights for which vectors that are spent are freed at once.
const longModel = 1 << 20

// collect frees what was spent, in a job of long vectors. Left to itself Go's collector lets what
// is spent grow as large as what is in use, which would double the memory.
func collect(s *Settled) {
	if s.Length() >= longModel {
		runtime.GC()
	}
}
