package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/training"
)

// Declared returns the options for running a job on the parties' rows, with models judged on other
// rows. Where the job has a budget and no multiplier the noise is calibrated, which takes a while.
// It fails with [job.ConfigError], also where the job needs virtual time: see package scenario.
func Declared(declared *job.Job, parties []*learning.Dataset, test *learning.Dataset) (
	o Options, err error,
) {
	if err := declared.Validate(); err != nil {
		return o, err
	}
	if declared.PerRecord() && declared.Privacy.Group != "" {
		for i, d := range parties {
			if d.Writers == nil {
				return o, declared.Mistake("privacy.group", "use rows that name persons, or leave it out",
					"the rows of party %d do not say whose they are", i+1)
			}
		}
	}
	if err := checkDeclared(declared, len(parties)); err != nil {
		return o, err
	}
	j, err := training.WithRows(declared, append([]*learning.Dataset{test}, parties...)...)
	if err != nil {
		return o, err
	}
	training.CountRecords(j, parties)
	if n := j.Privacy.Records; j.PerRecord() && j.Training.Batch > n {
		return o, declared.Mistake("training.batch", fmt.Sprintf("write up to %d, or 0 for all", n),
			"a round cannot expect more records than the %d that there are", n)
	}
	how, err := training.OptionsOf(j)
	if err != nil {
		return o, err
	}
	if how.Records != nil {
		for _, d := range parties {
			if err := how.Records.Fits(d); err != nil {
				return o, err
			}
		}
	}
	j = j.WithDefaults()
	o = Options{
		Model: how.Model, Parties: parties, Test: test, Rounds: j.Rounds, Local: how.Local,
		Client: how.Client, Server: how.Server, Mask: how.Mask, Clip: how.Clip,
		MaxSamples: how.MaxSamples, Models: how.Models, Records: how.Records, Average: how.Average,
		PerRound: j.Parties.PerRound, Participations: j.Parties.Participations,
		Hidden: j.Parties.Hidden, Factorise: j.Privacy.Factorise,
		Sum:   map[string]Sum{"messages": Private, "ring": Ring, "clear": Clear}[j.World.Fidelity],
		Range: j.Sum.Range, FractionBits: j.Sum.FractionBits,
		Colluders: j.Parties.Colluders, Drop: j.World.Drop, LostRounds: j.World.LostRounds,
		Malicious: j.World.Malicious,
		Beside:    !j.World.SkipClear, Seed: j.Seed, EvaluateEvery: j.World.EvaluateEvery,
	}
	if j.Oneshot() {
		o.Oneshot = &Oneshot{Members: j.Sum.Members, Faults: j.Sum.Faults, Covered: j.Sum.Covered,
			Bounded: j.Sum.Bounded, CommitteeNoise: j.NoisyMembers()}
		if j.Sum.Classical {
			o.Oneshot.KEM = oneshot.KEMX25519
		}
	}
	if o.Recovery, err = recoveryOf(j, len(parties)); err != nil {
		return o, mistake(declared, err)
	}
	if !j.Noisy() {
		return o, mistake(declared, o.Validate())
	}
	p := &j.Privacy
	o.Budget = privacy.Budget{Epsilon: p.Epsilon, Delta: p.Delta}
	o.SignShare = p.SignShare
	o.Noise = &privacy.Noise{Clip: p.Clip, Bits: p.Bits, Multiplier: p.Multiplier}
	if err := o.Noise.Family.UnmarshalText([]byte(p.Noise)); err != nil {
		return o, declared.Mistake("privacy.noise", "", "%v", err)
	}
	if o.Noise.Bits == 0 {
		o.Noise.Bits = OneshotBits(len(parties))
		if o.Records != nil {
			o.Noise.Bits = job.DefaultBits // of sums over records, with room for rounding
		}
	}
	if o.Noise.Multiplier == 0 {
		if o.Noise.Multiplier, err = o.Calibrate(); err != nil {
			return o, mistake(declared, err)
		}
	}
	return o, mistake(declared, o.Validate())
}

// recoveryOf returns what sums of some of the given number of parties survive, nil: nothing.
func recoveryOf(j *job.Job, parties int) (*protocol.Recovery, error) {
	if !j.Recovers() {
		return nil, nil
	}
	least := j.Parties.Fewest(parties)
	if j.World.Fidelity != "messages" || j.Oneshot() {
		return &protocol.Recovery{MinSurvivors: least}, nil // all else belongs to the protocol
	}
	return j.Recovery(least, parties)
}

// checkDeclared refuses what a job may declare and this simulation does not have.
func checkDeclared(j *job.Job, parties int) error {
	if j.Model.Name == "" && !j.Asks() {
		return j.Mistake("model", `write model.name = "logistic"`,
			"a party's own program trains, and a simulation has none")
	}
	if e := j.Lacks(job.Sums, "leave it out"); e != nil {
		if timed := j.Lacks(job.Timed, ""); timed == nil || timed.Path != e.Path {
			e.Advice += ", or run the job in virtual time, with a [[world.link]]"
		}
		return e
	}
	w, messages := &j.World, j.World.Fidelity == "" || j.World.Fidelity == "messages"
	of, least := cmp.Or(j.Parties.PerRound, parties), j.Parties.Fewest(parties)
	lost := int(math.Round(w.Drop * float64(of)))
	for _, c := range []struct {
		is                bool
		path, advice, why string
	}{
		{j.Asks(), "query", "ask it with package query", "a training asks nothing"},
		{j.Size() > 0 && j.Size() != parties, "parties.count", "deal rows to as many",
			"it is not the number of parties that have rows"},
		{j.Sum.Classical && !j.Oneshot(), "sum.classical", "leave it out",
			"keys here are agreed on with ML-KEM too"},
		{j.Parties.Participations > 0 && messages,
			"parties.participations", `write world.fidelity = "ring", or a [[world.link]] for virtual time`,
			"the schedule of messages is fixed when a session is set up"},
		{w.Drop > 0 && w.Seed != 0 && w.Seed != j.Seed, "world.seed",
			"leave it out", "drop-outs are drawn by seed here"},
		{j.Oneshot() && !messages, "world.fidelity", `leave it out, or sum.protocol = "oneshot"`,
			"one-message sums are simulated by message"},
		{j.Parties.Colluders > 0 && !messages, "parties.colluders",
			`leave it out, or write world.fidelity = "messages"`,
			"without messages the server sees nothing that others could help it with"},
		{j.Parties.Hidden > 0 && j.Oneshot(), "parties.hidden",
			"leave it out, or sum.protocol = \"oneshot\"", "a one-message sum takes all parties"},
		{!messages && of-lost < least, "world.drop", "write less, or more in parties.drop_out",
			fmt.Sprintf("of %d messages of a round %d are lost, and a sum takes at least %d", of, lost,
				least)},
	} {
		if c.is {
			return j.Mistake(c.path, c.advice, "%s", c.why)
		}
	}
	return nil
}

// mistake places an option's mistake in the job.
func mistake(j *job.Job, err error) error {
	var e *job.ConfigError
	if !errors.As(err, &e) {
		return err
	}
	path := e.Path
	if path < "a" { // an option that no job has
		path = "world"
	}
	found := j.Mistake(path, e.Advice, "%s", e.Reason)
	found.Err = err
	return found
}
