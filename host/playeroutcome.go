package host

import "github.com/hushsum/hushsum/drive"

// outcome counts what a program failed to make.
type outcome struct {
	missed  error  // why there was no vector, the last time that there was none
	blanks  uint64 // submissions of zeros with noise
	zeros   uint64 // round of zeros at its instant: no vector, or not drawn
	instant bool   // submissions leave at an instant
}

func (o *outcome) count(r drive.Report) {
	switch r.Kind {
	case drive.Submitted:
		if o.zeros != 0 && o.zeros == r.Round {
			o.blanks++
		}
	case drive.Blank:
		o.missed = r.Err
		o.blanks++
	case drive.Declined, drive.Missed, drive.Late:
		if r.Err != nil {
			o.missed = r.Err
		}
		if r.Kind == drive.Missed && o.instant {
			o.zeros = r.Round
		}
	}
}

// Missed returns why the program had no vector, the last time that it had none, nil if it always
// had one; and whether nothing but zeros of its party is in any sum.
func (h *Player) Missed() (why error, always bool) {
	guard := h.Part.Guard()
	return h.outcome.missed, guard != nil && guard.Count() == h.outcome.blanks
}
