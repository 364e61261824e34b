package federation

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/training"
)

// This file makes a federation of a job: see package job.

// earlier reports whether a text has the form that earlier releases had of a federation, as far as
// its keys tell: what is wrong with it is then said in that form's words.
func earlier(text []byte) bool {
	var tree map[string]any
	if toml.Unmarshal(text, &tree) != nil {
		return false
	}
	for _, key := range []string{"parties", "sum", "time", "world"} { // of jobs alone
		if _, found := tree[key]; found {
			return false
		}
	}
	for _, key := range []string{"recovery", "roster", "step_time", "pace", "start", "sampling"} {
		if _, found := tree[key]; found {
			return true
		}
	}
	model, _ := tree["training"].(map[string]any)
	_, found := model["model"]
	return found
}

// fromEarlier says what is wrong with the job that an earlier release's file becomes, at the lines
// of that file.
func fromEarlier(text []byte, err error) error {
	var all []error
	for _, e := range job.Errors(err) {
		if e.Line > 0 { // it is of the old form already
			all = append(all, e)
			continue
		}
		table, name, _ := strings.Cut(e.Path, ".")
		field := e.Path
		switch {
		case e.Path == "model.name":
			field = "training.model"
		case table == "model":
			field = "training.rows." + name
		case table == "sum" || table == "training":
			field = "training." + name
		}
		all = append(all, wrong(text, field, e.Reason, e.Advice))
	}
	return errors.Join(all...)
}

// readJob reads the files that a job's names. err is why the text is no file of an earlier release.
func readJob(name string, text []byte, err error) (*Files, error) {
	if earlier(text) {
		return nil, err
	}
	j, err := job.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if j.Parties.Roster == "" {
		return nil, wrong(text, "parties.roster", "it names no file of parties",
			`write parties.roster = "roster.txt"; see hushsumd roster`)
	}
	files, err := j.Files()
	if err != nil {
		return nil, err
	}
	roster, err := files.Roster.MarshalText()
	if err != nil {
		return nil, err
	}
	return &Files{text, roster, files.Model}, nil
}

// Of works a job out that was read or made already, as [New] does the text of one. It fails with
// a [job.ConfigError], whose line is that of the file that the job was read from.
func Of(j *job.Job, roster *keyexchange.Roster, model []byte) (*Federation, error) {
	return newJob(j, nil, roster, model)
}

// newJob works a job out. Without a text, and where that has a world, the text is made of the job.
func newJob(
	j *job.Job, text []byte, roster *keyexchange.Roster, model []byte,
) (*Federation, error) {
	world := !emptyWorld(j)
	if world || text == nil { // the world is for a simulation only, and sent to nobody
		j = j.Clone()
		j.World = job.World{}
		var err error
		if text, err = j.MarshalText(); err != nil {
			return nil, err
		}
	}
	if j.Oneshot() {
		return nil, j.Mistake("sum.protocol", `write "pairwise"`,
			"the service does not take one-message sums yet")
	}
	if !j.Recovers() {
		return nil, j.Mistake("sum.recovery", "write sum.recovery = true, or parties.drop_out",
			"a federation's sums survive parties that drop out")
	}
	declared := j.Digest()
	f := &Federation{
		Text:      text,
		Start:     j.Time.Start,
		JobDigest: hex.EncodeToString(declared[:]),
		World:     world,
		job:       j.WithDefaults(),
	}
	f.File = fileOf(f.job)
	files := job.Files{Roster: roster, Model: model}
	if j.Model.Name == "" {
		if err := f.settleModel(model); err != nil {
			return nil, err
		}
		files.Length = f.Spec.Len()
	}
	settled, err := j.Settle(files)
	if err != nil {
		return nil, err
	}
	f.job, f.Settled = settled.Job(), settled
	f.File.Rounds = settled.Rounds()
	if j.Model.Name != "" {
		if f.training, err = training.Of(settled); err != nil {
			return nil, err
		}
		if f.job.Model.DType == "float64" {
			f.Spec.DType = tensor.Float64
		}
		if err := f.trainedTensors(f.job); err != nil {
			return nil, err
		}
		if err := f.begin(); err != nil {
			return nil, err
		}
	}
	digest := settled.Digest()
	f.ID = hex.EncodeToString(digest[:])
	return f, nil
}

// emptyWorld reports whether a job says nothing of a world.
func emptyWorld(j *job.Job) bool {
	with, err := j.MarshalText()
	own := j.Clone()
	own.World = job.World{}
	without, err2 := own.MarshalText()
	return err == nil && err2 == nil && bytes.Equal(with, without)
}

// fileOf says a job in the words of [File], for those who show it.
func fileOf(j *job.Job) File {
	f := File{
		Name:     j.Name,
		Roster:   j.Parties.Roster,
		Pace:     Duration(j.Time.Pace),
		StepTime: Duration(j.Time.StepTime),
		Seed:     j.Seed,
		Model: Model{File: j.Model.File, Personal: j.Model.Personal, Init: j.Model.Init,
			DType: j.Model.DType},
		Recovery: Recovery{Adversary: j.Sum.Adversary, Colluders: j.Parties.Colluders,
			DropOut: j.Parties.DropOut, Classical: j.Sum.Classical, Sparse: j.Sum.Sparse},
		Privacy: Privacy{Noise: j.Privacy.Noise, Epsilon: j.Privacy.Epsilon, Delta: j.Privacy.Delta,
			Clip: j.Privacy.Clip, Bits: j.Privacy.Bits},
		Metrics: Metrics{Share: j.Metrics.Share},
	}
	if j.Model.File != "" {
		f.Model.Init = ""
	}
	if f.Model.Init == initZeros {
		f.Seed = 0 // nothing is drawn from it
	}
	for _, t := range j.Model.Tensor {
		f.Model.Tensors = append(f.Model.Tensors, Tensor{t.Name, t.Shape})
	}
	if j.Model.Length > 0 {
		f.Model.Tensors = []Tensor{{Name: "vector", Shape: []int{j.Model.Length}}}
	}
	if j.Model.Name != "" {
		t := &j.Training
		f.Training = &Training{Model: j.Model.Name, Lambda: t.Lambda, Epochs: t.Epochs, Steps: t.Steps,
			Batch: t.Batch, Rate: t.Rate, Momentum: t.Momentum, WeightDecay: t.WeightDecay, Rule: t.Rule,
			Mu: t.Mu, Beta: t.Beta, Mask: t.Mask, Weights: t.Submit == "weights",
			ByRows: j.Sum.MaxWeight > 0,
			Rows:   Rows{Features: j.Model.Features, Classes: j.Model.Classes, Most: j.Sum.MaxWeight}}
		f.Seed = j.Seed
	}
	return f
}

// planOf says what a job promises in a plan's words.
func planOf(j *job.Job, s *hushsum.Settled) hushsum.Plan {
	p := hushsum.Plan{Name: j.Name, Rounds: s.Rounds(), Length: s.Length(), Clip: j.Privacy.Clip,
		DropOut: j.Parties.DropOut, Colluders: j.Parties.Colluders, Classical: j.Sum.Classical,
		Adversary: adversaries[j.Sum.Adversary]}
	if j.Noisy() {
		var family accounting.Family
		if family.UnmarshalText([]byte(j.Privacy.Noise)) == nil {
			p.Noise = family
		}
		p.Epsilon, p.Delta, p.Bits = j.Privacy.Epsilon, j.Privacy.Delta, j.Privacy.Bits
	}
	return p
}
