package attacks

import (
	"fmt"
	"math"
)

// Row is one measurement of an attack, on both targets.
type Row struct {
	Case   string // which variant, such as "L Mean"; empty if there is but one
	Metric string // what is measured, such as "r²" or "inputs recovered"

	Undefended Measure // on the target without the defence
	Defended   Measure // on the real code
	// Limit marks a row without complete defence: Defended then states how far the
	// documented limit goes.
	Limit bool
	Note  string // what a reader needs to know to read the figures; may be empty
}

// Measure is one figure with its interval, and with the range that theory or the
// catalogue allows it. The zero value is no measurement.
type Measure struct {
	Value        float64
	Lower, Upper float64 // confidence interval at Confidence; both Value if exact
	Confidence   float64 // such as 0.95; 1 if exact
	Samples      int     // what Value is computed from; 0: there is no measurement
	Min, Max     float64 // Value must be within
}

// Missing reports whether there is no measurement.
func (m Measure) Missing() bool { return m.Samples == 0 }

// OK reports whether Value is where it must be.
func (m Measure) OK() bool { return !math.IsNaN(m.Value) && m.Min <= m.Value && m.Value <= m.Max }

// String returns the value with its interval, or a dash.
func (m Measure) String() string {
	switch {
	case m.Missing():
		return "-"
	case m.Lower == m.Upper:
		return fmt.Sprintf("%.4g", m.Value)
	}
	return fmt.Sprintf("%.4g [%.4g, %.4g]", m.Value, m.Lower, m.Upper)
}

// Verdict is what a row comes to.
type Verdict int

const (
	// Shown: the attack succeeds as theory says, on a target without the defence; what
	// becomes of it with the defence, other rows of the attack say.
	Shown Verdict = iota + 1
	// Held: the attack fails on the real code, and succeeds without the defence if that
	// was measured.
	Held
	// Documented: there is no complete defence, and the limit is where the
	// documents say.
	Documented
	// Toothless: the attack does not succeed without the defence, so that its
	// failure says nothing. It is a fault of the attack.
	Toothless
	// Broken: the attack succeeds with the defence, or further than documented.
	Broken
)

func (v Verdict) String() string {
	switch v {
	case Shown:
		return "shown"
	case Held:
		return "held"
	case Documented:
		return "documented"
	case Toothless:
		return "toothless"
	case Broken:
		return "broken"
	}
	return "unknown"
}

// Good reports whether the verdict is one of a library in order.
func (v Verdict) Good() bool { return v == Shown || v == Held || v == Documented }

// Verdict judges the row by the measurements that it has.
func (r Row) Verdict() Verdict {
	switch {
	case r.Undefended.Missing() && r.Defended.Missing():
		return Toothless
	case !r.Defended.Missing() && !r.Defended.OK():
		return Broken
	case !r.Undefended.Missing() && !r.Undefended.OK():
		return Toothless
	case r.Limit:
		return Documented
	case r.Defended.Missing():
		return Shown
	}
	return Held
}
