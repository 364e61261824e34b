package job

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/privacy"
)

// ErrConfig: a job cannot be used as it is declared. See [ConfigError].
var ErrConfig = errors.New("job: unusable")

// ErrJob: two sides have different jobs. See [DifferenceError].
var ErrJob = errors.New("job: the two sides have different jobs")

// ConfigError says what in a job is unusable, where it is and what to do. It is [ErrConfig], and
// unwraps to the error of another package if that package found the mistake. Its JSON has neither
// the file, which the caller knows, nor the underlying error.
type ConfigError struct {
	File   string `json:"-"`    // as it was opened; empty: the job was not read from one
	Line   int    `json:"line"` // from 1; 0: there is no place, as for a field that is missing
	Column int    `json:"column"`
	Path   string `json:"path"` // as in [Fields], with the number of a list's element; or empty
	// Named is the path with the names of list elements instead of their numbers, as in
	// query.older.where; empty: none has a name.
	Named  string `json:"named,omitempty"`
	Reason string `json:"reason"`
	Advice string `json:"advice"` // what to do, or empty
	Err    error  `json:"-"`      // nil, or the error behind it
}

func (e *ConfigError) Error() string {
	var b strings.Builder
	switch {
	case e.File != "" && e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	case e.File != "":
		b.WriteString(e.File + ": ")
	case e.Line > 0:
		fmt.Fprintf(&b, "job: line %d: ", e.Line)
	default:
		b.WriteString("job: ")
	}
	if place := e.Place(); place != "" {
		b.WriteString(place + ": ")
	}
	b.WriteString(e.Reason)
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

// Place returns Named or else Path, for people.
func (e *ConfigError) Place() string { return cmp.Or(e.Named, e.Path) }

// Is makes errors.Is(err, ErrConfig) true.
func (e *ConfigError) Is(target error) bool { return target == ErrConfig }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// Mistake returns a mistake that another package finds in a field of a job, such as a value that a
// simulator does not support, with the field's place in the file if the job was read from a file.
func (j *Job) Mistake(path, advice, format string, a ...any) *ConfigError {
	e := &ConfigError{Path: path, Reason: fmt.Sprintf(format, a...), Advice: advice}
	for _, one := range a {
		if err, ok := one.(error); ok {
			e.Err = err
		}
	}
	e.Named = j.named(path)
	j.read.find(e)
	return e
}

// ofPrivacy has the field of a job for each of package privacy's.
var ofPrivacy = map[string]string{
	"Noise.Bits":        "privacy.bits",
	"Noise.Clip":        "privacy.clip",
	"Noise.Family":      "privacy.noise",
	"Noise.Multiplier":  "privacy.epsilon",
	"Promise":           "parties.drop_out",
	"Promise.Adversary": "sum.adversary",
	"Promise.Failure":   "sum.degree",
	"Promise.Parties":   "parties.count",
	"Promise.Honest":    "parties.colluders",
	"Budget.Before":     "privacy.before",
	"Budget.Epsilon":    "privacy.epsilon",
	"Budget.Delta":      "privacy.delta",
	"Dimension":         "model",
	"Band":              "privacy.factorise",
	"Records.Count":     "privacy.records",
	"Records.Rate":      "training.batch",
	"Rate":              "parties.hidden",
	"Signs.Part":        "privacy.sign_share",
}

// MistakeOf turns a mistake that package privacy finds in the numbers of a job into a mistake in
// the job's field that sets them. It returns other errors unchanged.
func (j *Job) MistakeOf(err error) error {
	var c *privacy.ConfigError
	if !errors.As(err, &c) {
		return err
	}
	path := cmp.Or(ofPrivacy[c.Field], "privacy")
	if c.Field == "Noise.Multiplier" && j.Privacy.Multiplier != 0 {
		path = "privacy.multiplier"
	}
	e := j.Mistake(path, c.Advice, "%s", c.Reason)
	e.Err = err
	return e
}

// Errors returns the mistakes that an error of this package joins, in order.
func Errors(err error) (all []*ConfigError) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			all = append(all, Errors(one)...)
		}
		return all
	}
	var one *ConfigError
	if errors.As(err, &one) {
		all = append(all, one)
	}
	return all
}

// DifferenceError names the first field in which two sides' jobs differ. It is [ErrJob].
type DifferenceError struct {
	Field        string // as in a file, or "roster"
	Ours, Theirs string
}

func (e *DifferenceError) Error() string {
	return fmt.Sprintf("%v: %s is %s here and %s there; agree on one job", ErrJob, e.Field, e.Ours,
		e.Theirs)
}

// Is makes errors.Is(err, ErrJob) true.
func (e *DifferenceError) Is(target error) bool { return target == ErrJob }
