package old

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// The forms that [Read] tells apart.
const (
	FormPlan       = "plan"
	FormFederation = "federation"
	FormSpec       = "spec"
	FormScenario   = "scenario"
)

// Read reads an old declaration. name is that of its file, for messages and to find the roster that
// it names; set has fields of the job as PATH=VALUE that the old form lacks, such as
// parties.count=10. It returns a job that is valid, the form that it had, and notes on what changes
// in meaning or has another name. It fails with mistakes joined, each a [job.ConfigError]: those of
// the job that it would be have its paths.
func Read(name string, text []byte, set ...string) (
	j *job.Job, form string, notes []string, err error,
) {
	c := &conversion{name: name, text: text, job: new(job.Job)}
	switch form, err = c.recognise(); {
	case err != nil:
		return nil, form, nil, err
	case form == FormPlan:
		err = c.plan()
	case form == FormScenario:
		var more []string
		c.job, more, err = Scenario(name, c.text)
		c.notes = append(c.notes, more...)
	default:
		err = c.federation(form)
	}
	if err == nil {
		err = c.finish(set)
	}
	if err != nil {
		return nil, form, nil, err
	}
	if form == FormPlan || form == FormFederation {
		c.note("the digest is different: parties have accepted, and policies have pinned, that of the " +
			"old file, under which a running job continues to its end")
	}
	return c.job, form, c.notes, nil
}

// conversion is an old declaration on its way to a job.
type conversion struct {
	name  string
	text  []byte
	job   *job.Job
	notes []string
	wrong []error
	// later has what can be said once the settings are in the job.
	later []func() error
}

// note says what changes.
func (c *conversion) note(format string, a ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, a...))
}

// mistake says what is wrong with a key of the old form, at its line if it is found.
func (c *conversion) mistake(key, advice, format string, a ...any) *job.ConfigError {
	return &job.ConfigError{File: c.name, Line: c.lineOf(key), Path: key,
		Reason: fmt.Sprintf(format, a...), Advice: advice}
}

// refuse keeps a mistake, if there is one, to be told with others.
func (c *conversion) refuse(wrong bool, key, advice, format string, a ...any) {
	if wrong {
		c.wrong = append(c.wrong, c.mistake(key, advice, format, a...))
	}
}

// lineOf finds the line of a key, or of the table that it would stand in; 0: it is not found.
// Messages alone depend on it.
func (c *conversion) lineOf(key string) int {
	lines := c.lines()
	for key != "" && lines[key] == 0 {
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return lines[key]
}

// lines are those of all keys and tables, at first.
func (c *conversion) lines() map[string]int {
	lines := map[string]int{}
	within := ""
	for i, line := range strings.Split(string(c.text), "\n") {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		name, _, isKey := strings.Cut(line, "=")
		if strings.HasPrefix(line, "[") {
			within = strings.Trim(line, "[] \t")
			name, isKey = "", true
		}
		at := strings.Trim(within+"."+strings.TrimSpace(name), ".")
		if _, found := lines[at]; isKey && !found {
			lines[at] = i + 1
		}
	}
	return lines
}

// Keys by which the forms in TOML are told apart. Those of jobs come first, then those of
// scenarios that no federation has, and those of federations that no scenario has.
var (
	newKeys = []string{"parties", "world", "time", "model.name", "model.length", "sum.protocol",
		"sum.adversary", "sum.recovery"}
	scenarioKeys = []string{"sum", "link", "leaving", "data.draw", "data.most", "training.algorithm",
		"privacy.colluders", "privacy.subtract_own", "privacy.alpha", "party.place", "party.compute",
		"party.slow", "party.straggle", "party.rows", "party.epsilon", "party.server", "party.joins",
		"party.leaves", "party.crash"}
	federationKeys = []string{"roster", "start", "pace", "sampling", "model", "server", "metrics",
		"training.epochs", "training.batch", "training.momentum", "training.weight_decay",
		"training.rule", "training.mu", "training.beta", "training.variates", "training.mask",
		"training.mask_threshold", "training.by_rows", "training.weights", "training.range",
		"training.fraction_bits", "training.rows", "recovery.colluders", "recovery.sparse",
		"data.split", "data.concentration"}
)

// recognise finds the form by the keys. What is a job already is a mistake.
func (c *conversion) recognise() (form string, err error) {
	if len(c.text) > job.MaxFile {
		return "", c.mistake("", "use count for parties that are alike",
			"the file is longer than a megabyte")
	}
	c.text = bytes.TrimPrefix(c.text, []byte("\ufeff")) // as some editors begin files
	tree, isPlan := map[string]any{}, false
	if trimmed := bytes.TrimLeft(c.text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		isPlan = true
		_ = json.Unmarshal(c.text, &tree) // what is wrong its reader says
	} else if toml.Unmarshal(c.text, &tree) != nil {
		return "", decode(c.name, c.text, new(file)) // which says where
	}
	keys := map[string]bool{}
	gather(keys, tree, "")
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(key string) bool { return keys[key] })
	}
	rows := keys["data"] || keys["party"]
	switch {
	case has(newKeys):
		return "", c.mistake("", "use it as it is", "it is a job of today's form")
	case isPlan:
		return FormPlan, nil
	case has(scenarioKeys):
		return FormScenario, nil
	case rows && has(federationKeys):
		return FormSpec, nil
	case rows:
		if keys["training.model"] {
			c.note("it could be a spec of hushsumd dev too, in which sums always recover: to have it read " +
				`as one write split = "iid" under [data]`)
		}
		return FormScenario, nil
	case len(keys) == 0:
		return "", c.mistake("", "name a plan, a federation's file, a spec or a scenario",
			"the file is empty")
	}
	return FormFederation, nil
}

// gather notes the paths of all keys of a tree, those of lists without numbers.
func gather(keys map[string]bool, tree any, at string) {
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			path := strings.TrimPrefix(at+"."+key, ".")
			keys[path] = true
			gather(keys, tree[key], path)
		}
	case []any:
		for _, element := range tree {
			gather(keys, element, at)
		}
	}
}

// finish gives fields that were not said, and what follows from them, and checks the job.
func (c *conversion) finish(set []string) error {
	for _, one := range set {
		path, value, found := strings.Cut(one, "=")
		if !found {
			return &job.ConfigError{Path: one, Reason: "it has no value",
				Advice: "write PATH=VALUE, as in parties.count=10"}
		}
		if err := c.job.Set(path, value); err != nil {
			return err
		}
	}
	for _, say := range c.later {
		if err := say(); err != nil {
			c.wrong = append(c.wrong, err)
		}
	}
	if len(c.wrong) > 0 {
		return errors.Join(c.wrong...)
	}
	err := c.job.Validate()
	for _, e := range job.Errors(err) {
		e.File = c.name
	}
	return c.placed(err)
}

// parties returns how many there are, of the job or of the roster that it names.
func (c *conversion) parties() (int, error) {
	if n := c.job.Size(); n > 0 {
		return n, nil
	}
	path := c.job.Parties.Roster
	if path == "" {
		return 0, errors.New("no roster is named")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.name), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	roster, err := keyexchange.ParseRoster(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return roster.Len(), nil
}
