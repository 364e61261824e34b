package attacks

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

// Verdict says what a row tells about the defence.
type Verdict int

const (
	// Shown: the attack succeeds as theory says, on a target without the defence; other
	// rows of the attack say what becomes of it with the defence.
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

// String returns the verdict in lower case, such as held.
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

// Good reports whether the library and its documents are as they should be: the verdict
// is neither Toothless nor Broken.
func (v Verdict) Good() bool { return v == Shown || v == Held || v == Documented }
