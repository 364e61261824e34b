package simulate

import (
	"cmp"
	"embed"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training/rows"
)

//go:embed presets
var presets embed.FS

// jobFlags are the flags of simulate.
type jobFlags struct {
	file, out, sweep, keep string
	seeds                  int
	json, print            bool
	set                    jobs.Settings
	rule                   string
	byRows                 bool
	survivors              int
	given                  map[string]bool

	base *job.Job                   // the job that a sweep varies
	rows map[string]simulation.Rows // by the data's name: of jobs in virtual time
}

// fieldFlag is a flag that sets a field.
type fieldFlag struct {
	job.Field
	*jobs.Settings
}

// String returns the field's value without the flag, for help.
func (f *fieldFlag) String() string { return f.Default }

// Set refuses a text that is no value at all; the job refuses a value outside the field's range.
func (f *fieldFlag) Set(text string) (err error) {
	switch f.Kind {
	case job.Whole:
		err = new(cli.IntValue).Set(text)
	case job.Number:
		err = new(cli.FloatValue).Set(text)
	case job.Word:
		if last := len(f.Words) - 1; !slices.Contains(f.Words, text) {
			err = fmt.Errorf("want %s or %s", strings.Join(f.Words[:last], ", "), f.Words[last])
		}
	case job.Truth:
		if text != "true" && text != "false" {
			err = errors.New("want true or false")
		}
	}
	*f.Settings = append(*f.Settings, jobs.Setting{Flag: f.Flag, Path: f.Path, Text: text})
	return err
}

// Known returns the words of the field.
func (f *fieldFlag) Known() []string { return f.Words }

// IsBoolFlag tells package flag that the flag may come without a value.
func (f *fieldFlag) IsBoolFlag() bool { return f.Kind == job.Truth }

// flagNames maps fields to flags with other names.
var flagNames = map[string]string{"steps": "local-steps"}

func newJobFlags() (*flag.FlagSet, *jobFlags) {
	v := &jobFlags{}
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.BoolVar(&v.json, "json", false, "print one JSON object per line instead of a table")
	f.BoolVar(&v.print, "print", false, "print the job that would run, and run nothing")
	f.Var(jobs.SetFlag{Settings: &v.set}, "set", "`PATH=VALUE` any field of the job; see 'hushsum job fields'")
	f.StringVar(&v.rule, "rule", "",
		"`NAME` rule of the parties, of the server, or both joined by a plus sign")
	f.BoolVar(&v.byRows, "by-rows", false, "weight updates by the parties' numbers of rows")
	f.Var((*cli.IntValue)(&v.survivors), "min-survivors",
		"`N` fewest parties in a sum, instead of --drop-out")
	f.StringVar(&v.out, "out", "", "`DIR` for tables, figures and a page")
	f.StringVar(&v.sweep, "sweep", "", "`\"KEY=A,B …\"`: run all combinations of values; a key is a "+
		"path, a flag's name, parties or rows")
	f.Var((*cli.IntValue)(&v.seeds), "seeds", "`N`: run with N seeds, from --seed on, and show means "+
		"and standard deviations")
	f.StringVar(&v.keep, "keep", "", "`FILE` that keeps the results of a sweep, to resume it\t"+
		", with --out DIR/sweep.kept")
	census, _ := parsePreset("census") // a test reads it
	images, _ := parsePreset("images")
	for field := range job.Fields() {
		if field.Flag == "" {
			continue
		}
		usage := strings.TrimSuffix(field.Sentence, ".") + "; " + field.Path
		field.Default = strings.Trim(strings.TrimSuffix(field.Default, "required"), `"`)
		plain := field.Default
		if of := census.Get(field.Path); of != "" {
			field.Default = of
		}
		if of := cmp.Or(images.Get(field.Path), plain); of != field.Default {
			usage += "\t; for images " + of
		}
		if len(field.Words) > 1 && len(field.Words) < 5 {
			field.Arg = strings.Join(field.Words, "|")
		}
		if field.Arg != "" {
			usage = "`" + field.Arg + "` " + usage
		}
		f.Var(&fieldFlag{field, &v.set}, field.Flag, usage)
		if name := flagNames[field.Flag]; name != "" {
			field.Flag = name
			f.Var(&fieldFlag{field, &v.set}, name, usage)
		}
	}
	return f, v
}

// flagOf returns the flag that sets a path, empty if none does.
func flagOf(path string) string {
	if path == "training.rule" || path == "server.rule" {
		return "rule"
	}
	for f := range job.Fields() {
		if f.Path == path {
			return f.Flag
		}
	}
	return ""
}

// ruleFlags lists the flags of other models and rules, any of which has parties of a census submit
// updates.
var ruleFlags = []string{
	"model", "split", "by-rows", "rule", "mask", "mask-threshold", "mu", "beta", "server-rate",
	"batch", "epochs", "per-round", "hidden", "participations", "momentum", "weight-decay",
	"concentration", "clip-quantile", "factorise", "buffer",
}

// preset returns the job that flags apply to without a file, and the name of its file.
func (v *jobFlags) preset() (*job.Job, error) {
	if unit, _ := v.set.Of("privacy.unit"); unit == "record" {
		return v.recordsPreset()
	}
	name := "census"
	noise := v.given["epsilon"] || v.given["bounded"] || v.given["malicious"]
	if law, ok := v.set.Of("privacy.noise"); ok {
		noise = law != "none"
	}
	data, _ := v.set.Of("world.data.set")
	switch {
	case (&rows.World{Set: data}).Images():
		name = "images"
	case slices.ContainsFunc(ruleFlags, func(flag string) bool { return v.given[flag] }):
		name = "census-rules"
	case noise:
		name = "census-noise"
	}
	j, err := parsePreset(name)
	if err != nil {
		return nil, err
	}
	if noise && !j.Noisy() {
		noisy, err := parsePreset("census-noise")
		if err != nil {
			return nil, err
		}
		j.Privacy = noisy.Privacy
	}
	if noise && v.given["epsilon"] {
		j.Privacy.Multiplier = 0 // the noise is calibrated
	}
	if rows, ok := v.set.Of("world.data.rows"); ok && j.Sum.MaxWeight > 0 {
		if err := j.Set("sum.max_weight", rows); err != nil {
			return nil, err
		}
	}
	if split, _ := v.set.Of("world.data.split"); split == "writers" {
		j.Parties.Count = 0 // all parties that there are
	}
	return j, nil
}

// recordsPreset is the preset of the record unit.
func (v *jobFlags) recordsPreset() (*job.Job, error) {
	j, err := parsePreset("records")
	if err != nil {
		return nil, err
	}
	if data, _ := v.set.Of("world.data.set"); (&rows.World{Set: data}).Images() {
		j.World.Data = job.Data{Set: data} // all rows, dealt alike
		model, named := v.set.Of("model.name")
		// Digits are too few rows for anything but a small perceptron.
		if data == "digits" || named && model != "scattering" {
			j.Model.Name, j.Privacy.Clip, j.Server.Rate, j.Server.Tau = "mlp:64", 1, 0.015, 1e-5
		} else {
			j.Model.Name, j.Privacy.Clip, j.Training.Standardise = "scattering", 0.5, 4
			j.Server = job.Server{Rule: "fedavgm", Rate: 60, Beta1: 0.9}
		}
	}
	if v.given["noise-multiplier"] && !v.given["epsilon"] {
		j.Privacy.Epsilon = 0 // the noise is as declared
	}
	return j, nil
}

func parsePreset(name string) (*job.Job, error) {
	text, err := presets.ReadFile("presets/" + name + ".toml")
	if err != nil {
		return nil, err
	}
	return job.Parse("", text)
}
