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

// ConfigError says what in a job is unusable, where it is and what to do. It is [ErrConfig], and
// unwraps to the reason if another package found it. In JSON it has neither the file, which the
// caller knows, nor the error behind it.
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

// Mistake returns what others find wrong with a field of a job, such as what a simulator lacks,
// with its place in the file, if the job was read from one.
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
	"Noise.Bits":                "privacy.bits",
	"Noise.Clip":                "privacy.clip",
	"Noise.Family":              "privacy.noise",
	"Noise.Multiplier":          "privacy.epsilon",
	"Committee":                 "privacy.noise_by",
	"Contributors.Parties":      "parties.count",
	"Contributors.Colluders":    "parties.colluders",
	"Contributors.MinSurvivors": "parties.drop_out",
	"Budget.Before":             "privacy.before",
	"Budget.Epsilon":            "privacy.epsilon",
	"Budget.Delta":              "privacy.delta",
	"Dimension":                 "model",
	"Band":                      "privacy.factorise",
	"Records.Count":             "privacy.records",
	"Records.Rate":              "training.batch",
	"Rate":                      "parties.hidden",
	"Recovery.Degree":           "sum.degree",
	"Signs.Part":                "privacy.sign_share",
}

// MistakeOf returns what package privacy finds wrong with the numbers of a job as a mistake in the
// field that sets them. Other errors it returns as they are.
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
