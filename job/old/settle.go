package old

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/protocol"
)

// IsFederation reports whether a text has the form of a federation's file before there were jobs,
// as far as its keys tell: mistakes are then reported in that form's words.
func IsFederation(text []byte) bool {
	c := &conversion{text: text, job: new(job.Job)}
	if form, err := c.recognise(); err != nil || form != FormFederation {
		return false
	}
	tree, keys := map[string]any{}, map[string]bool{}
	_ = toml.Unmarshal(c.text, &tree) // which recognise has read
	gather(keys, tree, "")
	return slices.ContainsFunc([]string{"recovery", "roster", "step_time", "pace", "start",
		"sampling", "training.model"}, func(key string) bool { return keys[key] })
}

var planAdversaries = map[string]protocol.Adversary{
	"semi-malicious": protocol.SemiMaliciousServer,
	"curious":        protocol.CuriousServer,
}

// Settle works out a federation that runs under a file from before there were jobs: under the
// identifier that it began with, which covers the text except the form of its line ends. j is the
// job that [Read] makes from the text. It fails as [job.Job.Settle] does.
func Settle(j *job.Job, text []byte, files job.Files) (*job.Settled, error) {
	f := new(file)
	if err := decode("", text, f); err != nil {
		return nil, err
	}
	terms := sha256.Sum256(slices.Concat([]byte("hushsum/2 federation\n"),
		bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), files.Model))
	plan := job.Plan{
		Name:      f.Name + " " + hex.EncodeToString(terms[:16]),
		Rounds:    f.Rounds,
		Length:    files.Length,
		DropOut:   f.Recovery.DropOut,
		Colluders: f.Recovery.Colluders,
		Adversary: planAdversaries[f.Recovery.Adversary],
		Classical: f.Recovery.Classical,
	}
	if f.Metrics.Share > 0 {
		plan.Length += 2
	}
	if f.Training == nil {
		p := f.Privacy
		plan.Clip, plan.Bits, plan.Epsilon, plan.Delta = p.Clip, p.Bits, p.Epsilon, p.Delta
		if j.Noisy() {
			_ = plan.Noise.UnmarshalText([]byte(p.Noise)) // a valid job names one
		}
	} else { // whose job says the rest
		plan.Clip, files.Length = 1, 0
		own := j.Clone()
		own.Parties.Count = files.Roster.Len()
		for _, t := range own.Standing() {
			plan.Length += t.Shape[0]
		}
	}
	if t := f.Training; t != nil && t.Rule == "fedga" && t.Beta == 0 && j.Rounds != f.Rounds {
		// Without beta it is fedavg, of one sum a step: the job goes on for as many as it began with.
		j = j.Clone()
		j.Rounds = f.Rounds
	}
	s, err := plan.Continue(j, files)
	if err != nil {
		if _, wrong := j.Settle(files); wrong != nil { // which speaks of the job's fields
			err = wrong
		}
	}
	return s, err
}

// oldKeys are the old form's for those of a job whose last part is another.
var oldKeys = map[string]string{
	"model.name":        "training.model",
	"sum.max_weight":    "training.rows.most",
	"parties.per_round": "sampling",
	"training.submit":   "training.weights",
}

// withoutNumbers leaves the numbers of a list's elements out of a path.
func withoutNumbers(path string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(path, "."), func(part string) bool {
		return strings.Trim(part, "0123456789") == ""
	}), ".")
}

// oldKey finds the key of the old form that has become a field of the job.
func (c *conversion) oldKey(path string) string {
	path = withoutNumbers(path)
	parts := strings.Split(path, ".")
	if key := oldKeys[path]; key != "" || path == "" {
		return key
	}
	lines := c.lines()
	for _, table := range []string{strings.Join(parts[:len(parts)-1], "."), "recovery", "training",
		"training.rows", ""} {
		key := strings.TrimPrefix(table+"."+parts[len(parts)-1], ".")
		if lines[key] > 0 {
			return key
		}
	}
	return path
}

// Place gives mistakes in a job's fields their lines in the text that [Read] made the job from, if
// those are found.
func Place(text []byte, err error) error { return (&conversion{text: text}).placed(err) }

func (c *conversion) placed(err error) error {
	for _, e := range job.Errors(err) {
		if e.Line == 0 {
			e.Line = c.lineOf(c.oldKey(e.Path))
		}
	}
	return err
}
