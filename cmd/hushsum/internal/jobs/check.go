package jobs

import (
	"encoding/hex"
	"encoding/json"

	"github.com/hushsum/hushsum/job"
)

// Report says whether a file is a job, and what is wrong with it or what it declares.
type Report struct {
	File   string `json:"file"`
	Valid  bool   `json:"valid"`
	Digest string `json:"digest,omitempty"` // 64 hexadecimal digits
	// Declared has what the digest is of: canonical JSON, after "hushsum/1 job" and a line feed.
	Declared json.RawMessage `json:"declared,omitempty"`
	// Settled has the numbers of a job that says how many parties it has.
	Settled *job.SessionNumbers `json:"settled,omitempty"`
	Plan    []string            `json:"plan,omitempty"`       // sentences
	Job     *job.Job            `json:"job,omitempty"`        // without fields that have their default
	Worked  []Value             `json:"worked_out,omitempty"` // from other fields

	Mistakes []*job.ConfigError `json:"mistakes,omitempty"`
	// Simulated says why a valid job can only be simulated.
	Simulated []*job.ConfigError `json:"simulated,omitempty"`
}

// Value is a field's value, as a file writes it.
type Value struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Check reads the text of a file, and gives it the values of PATH=VALUE texts.
func Check(file string, text []byte, set []string) *Report {
	r := &Report{File: file}
	j, err := job.Parse(file, text, set...)
	if err != nil {
		r.Mistakes = job.Errors(err)
		return r
	}
	settled, mistakes := tried(j)
	if r.Mistakes = mistakes; mistakes != nil {
		return r
	}
	digest := j.Digest()
	r.Valid, r.Digest, r.Declared, r.Job = true, hex.EncodeToString(digest[:]), j.Canonical(), j
	r.Plan, r.Worked, r.Simulated = j.Explain(), worked(j), j.Simulated()
	if settled != nil {
		r.Plan = append(r.Plan, settled.Robustness()...)
		r.Settled = settled.Numbers()
	}
	return r
}

// worked returns the values that follow from the declaration as a job's defaults, where these are
// not constants.
func worked(j *job.Job) (values []Value) {
	declared, full := flat(j), flat(j.WithDefaults())
	for f := range job.Fields() {
		if v, ok := full[f.Path]; ok && declared[f.Path] == "" {
			values = append(values, Value{f.Path, v})
		}
	}
	return values
}

// flat returns the values of a job's fields outside of lists, by path.
func flat(j *job.Job) map[string]string {
	text, err := json.Marshal(j)
	if err != nil {
		panic("jobs: " + err.Error())
	}
	out := map[string]string{}
	flatten(text, "", out)
	return out
}

func flatten(text json.RawMessage, at string, out map[string]string) {
	var table map[string]json.RawMessage
	if json.Unmarshal(text, &table) != nil {
		out[at] = string(text)
		return
	}
	for name, v := range table {
		path := name
		if at != "" {
			path = at + "." + name
		}
		flatten(v, path, out)
	}
}
