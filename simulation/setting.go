package simulation

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/training"
)

// setting is a job in a world, as a run reads it.
type setting struct {
	World
	*training.Options
	job      *job.Job     // with its defaults
	settled  *job.Settled // nil: a party trains alone
	perRound int          // parties of a round
	// public stands for randomness that server and parties agree on before the run, with noise.
	public [32]byte
}

// newSetting checks what a world alone can have wrong.
func newSetting(s *job.Settled, w World) (*setting, error) {
	j := s.Job()
	if w.federation != nil {
		j = w.federation.Job
	}
	o := &setting{World: w, job: j, settled: s, perRound: cmp.Or(j.Parties.PerRound, len(w.Parties))}
	o.Options = &o.Training
	o.Rounds = j.Rounds
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} }
	}
	switch {
	case w.federation == nil && len(w.Parties) != s.Roster().Len():
		return nil, bad("parties.count", "settle the job for them", "%d parties have rows, and it has %d",
			len(w.Parties), s.Roster().Len())
	case w.Training.Model != nil && w.Training.Model.NumParams() != s.Length():
		return nil, bad("model.name", "settle the job for that model", "the world has another model")
	case w.Training.Local.Adjust != nil || w.Training.Local.Interrupt != nil:
		return nil, bad("Training", "leave Adjust and Interrupt out", "they are the run's")
	case w.Random != nil && !o.hidden():
		return nil, bad("Random", "leave it out", "it is for parties.hidden")
	}
	if o.noise() != nil {
		rand.Read(o.public[:])
	}
	return o, o.checkReplay()
}

// checkReplay checks who is listed in each round.
func (o *setting) checkReplay() error {
	switch {
	case o.Replay == nil:
		return nil
	case o.federation != nil:
		return bad("Replay", "leave it out", "in virtual time who is in a sum follows from the job")
	}
	if o.messages() || o.noise() != nil || len(o.Replay) < o.Rounds {
		return bad("Replay", "use Clear or Ring, without noise, and a list for each round", "%d lists",
			len(o.Replay))
	}
	for _, included := range o.Replay {
		for k, i := range included {
			if i < 0 || i >= len(o.Parties) || k > 0 && i <= included[k-1] {
				return bad("Replay", "name every party once, in ascending order",
					"party %d is none, or out of order", i)
			}
		}
	}
	return nil
}

// notTimed refuses a world in virtual time.
func (w *World) notTimed() error {
	if w.federation == nil {
		return nil
	}
	return bad("Parties", "run it: a PartyRound says what a party has alone",
		"time is virtual, and rows may be dealt by round")
}

// alone returns the setting of the same training by one party.
func (o *setting) alone(i int) *setting {
	rows, t := o.Parties[i], *o.Options
	a := &setting{World: o.World, perRound: 1}
	a.Parties, a.Replay, a.Random, a.Progress = a.Parties[i:i+1], nil, nil, nil
	a.Training = training.Options{Model: t.Model, Local: t.Local, Client: t.Client, Server: t.Server,
		MaxSamples: t.MaxSamples, Models: t.Models, Average: t.Average, Seed: t.Seed, Rounds: t.Rounds}
	if t.Records != nil {
		a.Training.Records = t.Records.Alone(rows)
	}
	a.Options = &a.Training
	a.job = &job.Job{Rounds: o.Rounds,
		World: job.World{Fidelity: Clear, SkipClear: true, EvaluateEvery: o.Rounds}}
	return a
}

func (o *setting) messages() bool { return byMessage(o.job) }

func (o *setting) inClear() bool { return o.job.World.Fidelity == Clear }

// noise returns the noise of the sums, nil: there is none.
func (o *setting) noise() *privacy.Mechanism {
	if o.settled == nil {
		return nil
	}
	return o.settled.Mechanism()
}

// hidden reports whether all parties submit, including parties that their coins leave out.
func (o *setting) hidden() bool { return o.job.Parties.Hidden > 0 }

// compares reports whether the same training is run in the clear as well: the same seeds, the same
// parties in every round, updates clipped alike, neither rounding nor noise.
func (o *setting) compares() bool { return !o.job.World.SkipClear }

// expected is how many parties take part in a round, by expectation where coins say who does, and
// by turns where noise is correlated.
func (o *setting) expected() int {
	if b := o.job.Privacy.Factorise; b > 0 {
		return max(1, o.perRound/b)
	}
	if q := o.job.Parties.Hidden; q > 0 {
		return max(1, int(math.Round(q*float64(len(o.Parties)))))
	}
	return o.perRound
}

// mishaps seeds what goes wrong.
func (o *setting) mishaps() uint64 { return cmp.Or(o.job.World.Seed, o.Seed) }

// plainMean is the lane of vectors without noise that are not those of the training.
func (o *setting) plainMean(d int) aggregation.Mean {
	return aggregation.Mean{Parties: o.perRound, Dimension: d, Range: o.job.Sum.Range,
		FractionBits: o.job.Sum.FractionBits}
}

// broadcast stands for the digest of a round's broadcast, which no party could choose or foresee
// when it chose its rows.
func (o *setting) broadcast(round int) [32]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(o.public[:], uint64(round)))
}

func (o *setting) encode(round int, u job.Update[float64]) ([][]uint64, error) {
	u.Trained = true
	return o.settled.Encode(o.broadcast(round), u, nil)
}

func (o *setting) decode(round int, sum [][]uint64, parties int) (job.Total, error) {
	return o.settled.Decode(o.broadcast(round), sum, parties)
}

// cut takes values modulo 2^bits.
func cut(values []uint64, bits int) {
	for i := range values {
		values[i] &= ^uint64(0) >> (64 - bits)
	}
}

// session returns the configuration of the session of a number, for submissions of a layout. Who is
// drawn follows from the seed and another number.
func (o *setting) session(number int, layout masking.Layout, drawn uint64) *protocol.Config {
	config := o.settled.Config(uint64(number))
	config.MinMembers, config.Layout = 0, layout // all parties are there
	if o.perRound < len(o.Parties) {
		config.PerRound = o.perRound
		seed := binary.BigEndian.AppendUint64([]byte("hushsum simulation: schedule"), o.Seed+drawn)
		config.Seed = sha256.Sum256(seed)
	}
	return config
}

// newDropOuts draws as many drop-outs as the world says.
func (o *setting) newDropOuts(drawn uint64) *dropOuts {
	return newDropOuts(o.mishaps()+drawn, o.job.DropOuts(len(o.Parties)))
}

// newSession makes a session, of which as many parties drop out as the world says.
func (o *setting) newSession(
	config *protocol.Config, drawn uint64, progress func(round, done int),
) *session {
	return newSession(o.keys, config, o.newDropOuts(drawn), o.Now, progress)
}
