package hushsum

import (
	"runtime"

	"github.com/hushsum/hushsum/job"
)

// What a job is package job says; these are its names here.
type (
	// Plan declares a job of bare vectors, in Go and JSON. See also job.Job.
	Plan = job.Plan
	// Terms are the numbers of a job that has no plan.
	Terms = job.Terms
	// Settled is a job worked out for its parties: see job.Settled.
	Settled = job.Settled
	// ConfigError names the field of a plan, or of one of this package's types, that is
	// unusable. It is [ErrConfig].
	ConfigError = job.ConfigError
	// DifferenceError names the first field in which two sides' jobs differ. It is [ErrPlan].
	DifferenceError = job.DifferenceError
	// Message holds what a party sends in a round of a job in which that is more than a vector.
	Message = job.Message
	// Round is a round that gave a sum.
	Round = job.Round
	// Protocol takes the sums of a [Plan].
	Protocol = job.Protocol
)

// The protocols.
const (
	Pairwise = job.Pairwise
	Oneshot  = job.Oneshot
)

// Errors of jobs.
var (
	ErrConfig = job.ErrConfig
	ErrPlan   = job.ErrPlan
)

// ParsePlan reads a plan's JSON form: see job.ParsePlan.
func ParsePlan(b []byte) (*Plan, error) { return job.ParsePlan(b) }

// drivable returns an error unless s has rounds.
func drivable(s *Settled) error {
	if s == nil || s.Rounds() == 0 {
		return &ConfigError{
			Path:   "Plan",
			Reason: "there is none",
			Advice: "use what Plan.Settle returns",
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
