package simulation

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation/cost"
	"github.com/hushsum/hushsum/training"
)

// The values of world.fidelity: how much of a sum is simulated.
const (
	// Messages takes sums by the protocol, with all its messages.
	Messages = "messages"
	// Ring sums the same encoded vectors, with noise but without masks, at a fraction of the cost.
	// Without noise the outcome for the same parties equals that of Messages bit for bit. If
	// parties.per_round draws some of the parties, the draws differ: see World.Replay.
	Ring = "ring"
	// Clear sums float64 vectors, without rounding.
	Clear = "clear"
	// Crowd has thousands of parties in virtual time, whose keys, chains and masks are made once.
	Crowd = "crowd"
)

// maxParties is the most parties of pairwise sums by message. Every pair of parties shares keys,
// so that set-up takes time and memory in proportion to the square.
const maxParties = 5000

// Rows are the rows of a data set, of one shape.
type Rows struct {
	Parties []*learning.Dataset // the training rows of each party
	// Train has the rows of all if Parties is nil: a run in virtual time then deals them, by
	// world.data.draw.
	Train *learning.Dataset
	Test  *learning.Dataset // what models are judged on
}

// World holds what a settled job lacks to be simulated. [Settle] makes one.
type World struct {
	Rows
	// Training says how parties and server train: as the job does. An experiment may change it to
	// rules that no job declares, such as another mask. The length of the model has to stay.
	Training training.Options

	// Random gives the coins of parties.hidden, which must be secret; nil: crypto/rand. The job's seed
	// cannot serve here, since the first model may reveal it.
	Random io.Reader
	// Replay, if not nil, lists the parties in the sum of each round in place of a draw, in ascending
	// order, as RoundResult.Included had them; with no parties the round is lost. Use Replay to repeat
	// sums by message without masks; it does not go with Messages or noise.
	Replay [][]int

	// Now is the clock that durations are measured with, such as time.Now; it is
	// called from several goroutines. Nil: all durations are 0.
	Now func() time.Time
	// Units are those of the times in virtual time that the job does not give; the zero value:
	// cost.Reference.
	Units cost.Units
	// Progress, if not nil, is called while parties work, never concurrently: done says how many
	// parties of the round have finished their part (round 0: set-up). Where sums recover a round has
	// three parts, and done counts each as a third.
	Progress func(round, done, of int)

	keys, members []ed25519.PrivateKey // of the parties and of the committee
	federation    *federation          // of virtual time, else nil
}

// Settle settles a job for parties with these rows, whose keys it makes. Where the job has a budget
// and no multiplier the noise is calibrated, which takes a while. Time is virtual if the job needs
// that, see [Needs], or rows are to be dealt. Settle fails with [job.ConfigError].
func Settle(declared *job.Job, rows Rows) (s *job.Settled, w World, err error) {
	w = World{Rows: rows}
	if Needs(declared) || rows.Parties == nil {
		s, err = w.settleFederation(declared)
		return s, w, err
	}
	if err := declared.Validate(); err != nil {
		return nil, w, err
	}
	if err := w.check(declared); err != nil {
		return nil, w, err
	}
	parties := rows.Parties
	j, err := training.WithRows(declared, append([]*learning.Dataset{rows.Test}, parties...)...)
	if err != nil {
		return nil, w, err
	}
	training.CountRecords(j, parties)
	if n := j.Privacy.Records; j.PerRecord() && j.Training.Batch > n {
		return nil, w, declared.Mistake("training.batch", fmt.Sprintf("write up to %d, or 0 for all", n),
			"a round cannot expect more records than the %d that there are", n)
	}
	if j.Noisy() && !j.Oneshot() && j.Privacy.SubmitAfter == 0 { // nothing is late here
		j.Privacy.SubmitAfter = cmp.Or(j.Time.StepTime, time.Minute) / 6
	}
	if s, err = w.settle(j, len(parties)); err != nil {
		return nil, w, err
	}
	if w.Training, err = training.OptionsOf(s.Job()); err != nil {
		return nil, w, err
	}
	w.Training.Band = s.Band()
	if r := w.Training.Records; r != nil {
		for _, d := range parties {
			if err := r.Fits(d); err != nil {
				return nil, w, err
			}
		}
	}
	return s, w, nil
}

// settleFederation settles a job in virtual time for all parties that it ever has, for sums of
// those who are there at first. Where some are not, or have servers of their own, the job is
// settled for them as it runs.
func (w *World) settleFederation(declared *job.Job) (*job.Settled, error) {
	f, err := newFederation(declared)
	if err != nil {
		return nil, err
	}
	w.federation = f
	byRound := slices.Contains([]string{drawNew, drawGrowing, drawAnew}, f.World.Data.Draw)
	if w.Test == nil || w.Train == nil && (w.Parties == nil || byRound) {
		return nil, f.Mistake("world.data.set", "load the data", "there are no rows")
	}
	rows := append([]*learning.Dataset{w.Test}, w.Parties...)
	if w.Train != nil {
		rows = append(rows, w.Train)
	}
	if f.declared, err = training.WithRows(declared, rows...); err != nil {
		return nil, err
	}
	if w.Training, err = training.OptionsOf(f.declared); err != nil {
		return nil, err
	}
	own := f.own(f.Size())
	switch {
	case f.Oneshot():
		return w.settle(own, f.Size())
	case f.World.Fidelity == Messages:
		return w.settleFor(own, f.Size(), f.atFirst())
	}
	nobody, err := job.Nobody(f.atFirst())
	if err != nil {
		return nil, err
	}
	return f.own(f.atFirst()).Settle(job.Files{Roster: nobody})
}

// settle settles a job for parties, and a committee, whose keys it makes.
func (w *World) settle(j *job.Job, parties int) (*job.Settled, error) {
	return w.settleFor(j, parties, parties)
}

// settleFor is settle for sessions of those of the parties that are present.
func (w *World) settleFor(j *job.Job, parties, present int) (_ *job.Settled, err error) {
	files := job.Files{MadeUp: true, Present: present}
	if files.Roster, w.keys, err = newRoster(parties, partyName); err != nil {
		return nil, because("parties.count", err)
	}
	if j.Oneshot() {
		files.Committee, w.members, err = newRoster(j.WithDefaults().Sum.Members, memberName)
		if err != nil {
			return nil, because("sum.members", err)
		}
	}
	if !byMessage(j) && j.Parties.PerRound > 0 && !j.Recovers() { // no session has to be gathered
		j = j.Clone()
		j.Sum.Recovery, j.Sum.Adversary = true, "curious"
	}
	return j.Settle(files)
}

func newRoster(n int, name func(i int) string) (*keyexchange.Roster, []ed25519.PrivateKey, error) {
	keys := make([]ed25519.PrivateKey, n)
	for i := range keys {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, nil, err
		}
		keys[i] = key
	}
	roster, err := rosterOf(keys, name)
	return roster, keys, err
}

// rosterOf returns the roster of some keys. Names of a job's parties may be any text, and are not
// in it.
func rosterOf(keys []ed25519.PrivateKey, name func(i int) string) (*keyexchange.Roster, error) {
	list := make([]keyexchange.Entry, len(keys))
	for i, key := range keys {
		list[i] = keyexchange.Entry{Name: name(i), Key: key.Public().(ed25519.PublicKey)}
	}
	return keyexchange.NewRoster(list)
}

func partyName(i int) string { return fmt.Sprintf("party-%d", i+1) }

func memberName(k int) string { return fmt.Sprintf("member-%d", k+1) }

// byMessage reports whether all messages of a job's sums are simulated.
func byMessage(j *job.Job) bool { return cmp.Or(j.World.Fidelity, Messages) == Messages }

// Cheats returns how many of all parties of a job cheat, the last ones: world.malicious times them,
// rounded up.
func Cheats(j *job.Job, parties int) int {
	return int(math.Ceil(j.World.Malicious * float64(parties)))
}

// trains refuses a job without a model of its own.
func trains(j *job.Job) error {
	if j.Model.Name == "" {
		return j.Mistake("model", `write model.name = "logistic"`,
			"a party's own program trains, and a simulation has none")
	}
	return nil
}

// check refuses rows that are not those of a job without time, and what that may declare and cannot
// be simulated.
func (w *World) check(j *job.Job) error {
	if err := trains(j); err != nil {
		return err
	}
	parties, messages := len(w.Parties), byMessage(j)
	for _, c := range []struct {
		is                bool
		path, advice, why string
	}{
		{j.Size() > 0 && j.Size() != parties, "parties.count", "deal rows to as many",
			"it is not the number of parties that have rows"},
		{messages && !j.Oneshot() && parties > maxParties, "parties.count",
			fmt.Sprintf("every pair shares keys, so use at most %d", maxParties),
			fmt.Sprintf("%d is too many", parties)},
		{j.Parties.Participations > 0 && messages,
			"parties.participations", `write world.fidelity = "ring", or a [[world.link]] for virtual time`,
			"the schedule of messages is fixed when a session is set up"},
	} {
		if c.is {
			return j.Mistake(c.path, c.advice, "%s", c.why)
		}
	}
	for i, d := range w.Parties {
		switch {
		case d == nil || d.Len() == 0:
			return j.Mistake("parties.count", "every party needs at least 1 row",
				"party %d has no rows", i)
		case j.PerRecord() && j.Privacy.Group != "" && d.Writers == nil:
			return j.Mistake("privacy.group", "use rows that name persons, or leave it out",
				"the rows of party %d do not say whose they are", i+1)
		}
	}
	if w.Test == nil || w.Test.Len() == 0 {
		return bad("Test", "", "there are no test rows")
	}
	return nil
}

// Exactly returns the job of the same training of a number of parties, by sums without noise and
// without messages: from the parties that were in each sum of a run, it leads to the same model.
// What sessions withstand and how models are sent then change nothing.
func Exactly(j *job.Job, parties int) *job.Job {
	p := &j.Privacy
	own := &job.Job{Name: j.Name, Rounds: j.Rounds, Seed: j.Seed, Model: j.Model, Training: j.Training,
		Server: j.Server, Parties: job.Parties{Count: parties},
		Sum: job.Sum{MaxWeight: j.Sum.MaxWeight, Range: j.Sum.Range,
			FractionBits: j.Sum.FractionBits},
		Privacy: job.Privacy{Clip: p.Clip, ClipQuantile: p.ClipQuantile, ClipRate: p.ClipRate},
		World:   job.World{Fidelity: Ring, SkipClear: true}}
	own.Model.DType, own.Training.Standardise = "", 0
	return own
}
