package federation

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/job"
)

// maxFile is the most bytes of a file.
const maxFile = 256 << 10

// File is what is written in a federation's file.
type File struct {
	Name   string `toml:"name"`
	Roster string `toml:"roster"` // file, beside this one

	Rounds   int      `toml:"rounds"`
	Start    string   `toml:"start"`     // RFC 3339; empty: at once
	Pace     Duration `toml:"pace"`      // least time between the beginnings of two rounds
	StepTime Duration `toml:"step_time"` // how long a step waits for parties that are there
	// Sampling is the part of the roster that takes part in a round, drawn anew for each;
	// 0: all who are there.
	Sampling float64 `toml:"sampling"`
	// Seed is of the first model, and of the batches of a training that is declared.
	Seed uint64 `toml:"seed"`

	Model    Model     `toml:"model"`
	Training *Training `toml:"training"` // nil: parties train by commands of their own
	Server   Server    `toml:"server"`
	Recovery Recovery  `toml:"recovery"`
	Privacy  Privacy   `toml:"privacy"`
	Metrics  Metrics   `toml:"metrics"`
}

// Model is what is trained.
type Model struct {
	// Tensors are its parts, or File a safetensors or .npz file that has them; Personal are
	// patterns of the names of those that stay with each party.
	Tensors  []Tensor `toml:"tensor"`
	File     string   `toml:"file"`
	Personal []string `toml:"personal"`
	// Init is how Tensors begin: zeros, the default, or uniform, see [Uniform].
	Init string `toml:"init"`
	// DType is how it is sent: float32, the default, or float64, the default with
	// [training].
	DType string `toml:"dtype"`
}

// Tensor is a part of a model.
type Tensor struct {
	Name  string `toml:"name"`
	Shape []int  `toml:"shape"`
}

// Server is the rule by which the mean of updates makes the next model.
type Server struct {
	Rule      string  `toml:"rule"` // fedavg (default), momentum, fedadagrad, fedadam, fedyogi
	Rate      float64 `toml:"rate"`
	Beta1     float64 `toml:"beta1"`
	Beta2     float64 `toml:"beta2"`
	Tau       float64 `toml:"tau"`
	TauInside bool    `toml:"tau_inside"`
}

// Recovery is what a round withstands.
type Recovery struct {
	Adversary string  `toml:"adversary"` // cheating (default), semi-malicious, curious
	Colluders int     `toml:"colluders"`
	DropOut   float64 `toml:"drop_out"`
	Classical bool    `toml:"classical"`
	// Sparse has each party share secrets with some others only, for many parties and a
	// server that is curious.
	Sparse bool `toml:"sparse"`
}

// Privacy is what every party may spend over all rounds.
type Privacy struct {
	Noise   string  `toml:"noise"` // a family, or none (default)
	Epsilon float64 `toml:"epsilon"`
	Delta   float64 `toml:"delta"`
	Clip    float64 `toml:"clip"`
	Bits    int     `toml:"bits"`
}

// Metrics has parties' loss and accuracy summed with their updates.
type Metrics struct {
	Share float64 `toml:"share"` // part of the clip that they take; 0: no metrics
}

// Duration is a time span in the form of Go, such as 30s.
type Duration time.Duration

// UnmarshalText reads a span.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return errors.New("not a span of time such as 30s or 5m")
	}
	*d = Duration(v)
	return nil
}

// Parse reads the text of a file. It fails with a [job.ConfigError].
func Parse(text []byte) (*File, error) {
	if len(text) > maxFile {
		return nil, &job.ConfigError{
			Reason: fmt.Sprintf("%d bytes, at most %d are read", len(text), maxFile)}
	}
	f := new(File)
	if err := Decode(text, f); err != nil {
		return nil, err
	}
	return f, nil
}

// Decode reads the text of a file by a struct's tags, such as a party's policy. It fails with a
// [job.ConfigError].
func Decode(text []byte, into any) error {
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	err := decoder.Decode(into)
	var strict *toml.StrictMissingError
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &strict) && len(strict.Errors) > 0:
		first := strict.Errors[0]
		row, _ := first.Position()
		return &job.ConfigError{
			Line:   row,
			Path:   strings.Join(first.Key(), "."),
			Reason: noField,
			Advice: fieldsAdvice(into, first.Key()),
		}
	case errors.As(err, &decode):
		row, _ := decode.Position()
		return &job.ConfigError{
			Line:   row,
			Path:   strings.Join(decode.Key(), "."),
			Reason: strings.TrimPrefix(decode.Error(), "toml: "),
		}
	case err != nil:
		return &job.ConfigError{Reason: err.Error()}
	}
	return exactNames(text, into)
}

// exactNames refuses keys that the decoder takes for fields although they are written in
// another case: with epsilon and EPSILON a file would say two things. It fails with a
// [job.ConfigError].
func exactNames(text []byte, into any) error {
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		return &job.ConfigError{Reason: err.Error()}
	}
	var name *strict.Error
	if err := strict.Names(tree, into, "toml"); errors.As(err, &name) {
		// Tables of a list go by the list's name here.
		path := slices.DeleteFunc(strings.Split(name.Key, "."), func(part string) bool {
			return strings.Trim(part, "0123456789") == ""
		})
		return wrong(text, strings.Join(path, "."), noField, "write "+name.Meant)
	}
	return nil
}

// fieldsAdvice names the fields that there are where a key was not found.
func fieldsAdvice(into any, key []string) string {
	t := reflect.TypeOf(into).Elem()
	var list []string
	for k, part := range key {
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		list = nil
		found := false
		if t.Kind() == reflect.Struct {
			for _, f := range reflect.VisibleFields(t) {
				name := f.Tag.Get("toml")
				if name == "" {
					continue
				}
				list = append(list, name)
				if name == part && k < len(key)-1 {
					t, found = f.Type, true
				}
			}
		}
		if !found {
			break
		}
	}
	if len(list) == 0 {
		return "take it out"
	}
	return "there are " + strings.Join(list, ", ")
}

// noField is the Reason of a field that there is not.
const noField = "there is no such field"

// wrong makes a job.ConfigError that finds the field's line.
func wrong(text []byte, field, reason, advice string) error {
	e := &job.ConfigError{Path: field, Reason: reason, Advice: advice}
	table, key := "", field
	if i := strings.LastIndex(field, "."); i >= 0 {
		table, key = field[:i], field[i+1:]
	}
	pattern := regexp.MustCompile(`^\s*` + regexp.QuoteMeta(key) + `\s*=`)
	within, section := "", 0 // where the field's table begins, if the field is not there
	for i, line := range strings.Split(string(text), "\n") {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "[") {
			within = strings.Trim(strings.SplitN(trimmed, "#", 2)[0], "[] \t")
			if within == field && e.Line == 0 {
				e.Line = i + 1
			}
			if within == table && section == 0 {
				section = i + 1
			}
		}
		if within == table && pattern.MatchString(line) {
			e.Line = i + 1
		}
	}
	if e.Line == 0 {
		e.Line = section
	}
	return e
}
