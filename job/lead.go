package job

import (
	"time"

	"github.com/hushsum/hushsum/drive"
)

// Timing holds what a carrier says of time, next to what the job says.
type Timing struct {
	StepTime time.Duration // in place of the job's, if it is not 0
	// Away is how long a party counts as here that has no connection, for carriers whose parties
	// connect for every question anew.
	Away time.Duration
	// At returns the time of the carrier's clock at an instant.
	At func(instant time.Time) drive.Time
}

// Lead returns the settings by which package drive leads the job, except Broadcast and Stored,
// which are the carrier's. It fails with errors of the accountant.
func (s *Settled) Lead(t Timing) (drive.Settings, error) {
	ledger, err := s.Ledger()
	when := s.job.Time
	if t.StepTime == 0 {
		t.StepTime = when.StepTime
	}
	out := drive.Settings{
		Session:   s.Config,
		Label:     s.Label(),
		Survivors: s.survivors,
		Colluders: s.Colluders(),
		Every:     uint64(len(s.Band())),
		Sample:    s.PerRound(),
		Draw:      s.Draw,
		Sums:      s.Oneshot(),
		Buffer:    s.Buffer(),
		Rounds:    uint64(s.Rounds()),
		Cost:      s.Round(),
		Ledger:    ledger,
		StepTime:  drive.Time(t.StepTime),
		Away:      drive.Time(t.Away),
		Pace:      drive.Time(when.Pace),
		BeginWith: when.BeginWith,
	}
	if k := s.Submissions(); k < s.Rounds() {
		out.Submissions = uint64(k)
	}
	if !when.Start.IsZero() {
		out.Start = t.At(when.Start)
	}
	return out, err
}
