package hushsum

import (
	"io"
	"runtime"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
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

// BroadcastDigest names a broadcast: see job.BroadcastDigest.
func BroadcastDigest(broadcast []byte) [32]byte { return job.BroadcastDigest(broadcast) }

// EncodeTo writes a submission in place: see job.EncodeTo.
func EncodeTo[F aggregation.Float](
	v *masking.Vector, s *Settled, broadcast [32]byte, vector []F, random io.Reader,
) error {
	return job.EncodeTo(v, s, broadcast, vector, random)
}

// DecodeTo writes a mean in place: see job.DecodeTo.
func DecodeTo[F aggregation.Float](
	mean []F, s *Settled, broadcast [32]byte, sum *masking.Vector, parties int,
) error {
	return job.DecodeTo(mean, s, broadcast, sum, parties)
}

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
