package job

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// Files holds the contents of the files that a job names.
type Files struct {
	Roster    *keyexchange.Roster // the parties
	Committee *keyexchange.Roster // of one-message sums
	MadeUp    bool                // the committee is nobody's, to try the job out: no ε names it
	// Present counts the parties that sessions are for, of a roster whose others are not there yet, or
	// have left; 0: all.
	Present int
	Model   []byte // the first model, as its file has it
	Before  []byte // text of a [Before]
	// Tensors are those of that file that parties share. Nil: the model is not of a file.
	Tensors []Tensor
}

const maxRoster = 256 << 20

// Files reads the files that a job names, from the folder of the job's own file. It fails with a
// [ConfigError].
func (j *Job) Files() (f Files, err error) {
	roster := func(path, name string) (*keyexchange.Roster, error) {
		if name == "" {
			return nil, nil
		}
		b, err := j.readFile(name, maxRoster)
		if err != nil {
			return nil, j.Mistake(path, "name a file, as seen from the folder of the job's", "%v", err)
		}
		r, err := keyexchange.ParseRoster(b)
		if err != nil {
			advice := "have each send the line of its identity"
			if errors.Is(err, keyexchange.ErrDuplicateIdentity) {
				advice = "" // it says what to do
			}
			return nil, j.Mistake(path, advice, "%s: %v", name, err)
		}
		return r, nil
	}
	if f.Roster, err = roster("parties.roster", j.Parties.Roster); err != nil {
		return f, err
	}
	if f.Committee, err = roster("sum.committee", j.Sum.Committee); err != nil {
		return f, err
	}
	for _, c := range []struct {
		path, name string
		into       *[]byte
		most       int64
	}{
		{"privacy.before", j.Privacy.Before, &f.Before, maxRoster},
		{"model.file", j.Model.File, &f.Model, 9 * MaxLength},
	} {
		if c.name == "" {
			continue
		}
		if *c.into, err = j.readFile(c.name, c.most); err != nil {
			return f, j.Mistake(c.path, "name a file, as seen from the folder of the job's", "%v", err)
		}
	}
	return f, nil
}

// readFile reads a file that the job names.
func (j *Job) readFile(name string, most int64) ([]byte, error) {
	if j.read != nil && !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(j.read.name), name)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", name, info.Size(), most)
	}
	return os.ReadFile(name)
}

// Settle works out a job for its parties: sessions, noise, how a vector becomes a submission and a
// sum becomes a mean. It fails with a [ConfigError] if the job is not valid or the given number of
// parties cannot run it: if too many parties may be missing to withstand the declared server, or if
// noise does not fit the ring. It takes some milliseconds, with noise some more.
func (j *Job) Settle(with Files) (*Settled, error) {
	x, err := j.settling(with)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{x.noise, x.lanes, x.sessions, x.proved} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	x.out.job, x.out.declared, x.out.tensors = x.Job, x.declared.Digest(), x.files.Tensors
	return x.out, nil
}

// Sessions returns the error with which [Job.Settle] fails if the parties cannot have the sessions,
// without settling noise, and before anything says how long a vector is.
func (j *Job) Sessions(with Files) error {
	_, err := j.settling(with)
	return err
}

// settling begins to settle a job, with what its sessions promise.
func (j *Job) settling(with Files) (*settling, error) {
	own := j.Clone()
	own.count(with.Roster)
	if err := own.Validate(); err != nil {
		return nil, err
	}
	x := &settling{Job: own.WithDefaults(), declared: own, files: with}
	if err := x.who(); err != nil {
		return nil, err
	}
	return x, x.sums()
}

// count has the roster say how many parties there are, if the job does not.
func (j *Job) count(roster *keyexchange.Roster) {
	if j.Size() == 0 && roster != nil {
		j.Parties.Count = roster.Len()
		j.counted = j.Parties.Count
	}
}

// settling is a job that is being worked out.
type settling struct {
	*Job
	declared *Job // without defaults
	files    Files
	out      *Settled
	released releaseOptions
	weights  []int                // declared, and capped; nil: none
	encoder  *aggregation.Encoder // of sums with noise of keys alone, else nil
}

// who finds out how many parties there are.
func (x *settling) who() error {
	roster, n := x.files.Roster, x.Parties.Count
	switch {
	case roster == nil:
		return x.noRoster()
	case n != roster.Len():
		return x.Mistake("parties.count", "leave it out, or correct one of the two",
			"the roster has %d parties, and it says %d", roster.Len(), n)
	}
	if err := x.weigh(); err != nil {
		return err
	}
	if committee := x.files.Committee; committee != nil {
		x.Sum.Members = committee.Len()
	}
	if x.files.Present == 0 {
		x.files.Present = n
	}
	survivors := x.files.Present
	if x.Recovers() || x.Oneshot() {
		survivors = x.fewest(survivors)
	}
	x.out = &Settled{survivors: survivors, weights: x.weights}
	return x.sampled()
}

// numbers returns how many numbers a party's vector has, without metrics.
func (x *settling) numbers() int {
	if x.Model.File != "" && x.Model.Name == "" {
		return (&Model{Tensor: x.files.Tensors}).Numbers()
	}
	return x.Model.Numbers()
}

// submissions is how many a party makes at most.
func (j *Job) submissions() int {
	return cmp.Or(j.Parties.Participations, j.Rounds*j.Training.sums())
}

// length is numbers with metrics.
func (x *settling) length() int {
	n := x.numbers()
	if n > 0 && x.Metrics.Share > 0 {
		n += metrics
	}
	return n
}

// noise settles the mechanism.
func (x *settling) noise() error {
	p, d := &x.Privacy, x.length()
	if d == 0 {
		return x.noLength()
	}
	before, err := x.before()
	if err == nil && x.ofKeys() {
		x.keyed()
	}
	if err != nil || !x.Noisy() {
		return err
	}
	if missing := x.ofRecords(); len(missing) > 0 {
		return missing[0]
	}
	o := releaseOptions{
		Promise: x.out.promise,
		Noise: privacy.Noise{Multiplier: p.Multiplier, Clip: p.Clip,
			Bits: cmp.Or(p.Bits, defaultBits)},
		Parties:   cmp.Or(x.Parties.PerRound, x.files.Present),
		Length:    d,
		MaxWeight: x.MaxRows(),
		Hidden:    x.Parties.Hidden,
		Records:   x.Records(),
		SignShare: p.SignShare,
		Votes:     p.ClipQuantile > 0,
		Assumes:   x.assumes(),
	}
	if x.weights != nil {
		o.Heaviest, o.Total = slices.Max(x.weights), sum(x.weights)
	}
	if o.Band, err = x.band(); err != nil {
		return x.MistakeOf(err)
	}
	if err := o.Noise.Family.UnmarshalText([]byte(p.Noise)); err != nil {
		return x.Mistake("privacy.noise", "", "%v", err)
	}
	if x.Oneshot() {
		o.Members, o.Bounded = x.Sum.Members, x.Sum.Bounded
	}
	if x.Training.Mask != "none" {
		o.Signs = x.numbers()
	}
	x.out.budget = privacy.Budget{Epsilon: p.Epsilon, Delta: p.Delta, Before: before}
	if x.Sum.Bounded && p.Bits == 0 {
		if o.Noise.Bits, err = x.units(o); err != nil {
			return err
		}
	}
	if x.out.mechanism, x.out.multiplier, err = x.release(o); err != nil {
		return err
	}
	x.released = o
	return x.study()
}

// lanes settles the encoding.
func (x *settling) lanes() error {
	o := laneOptions{
		Parties:      x.files.Present,
		Dimension:    x.length(),
		Range:        x.Sum.Range,
		FractionBits: x.Sum.FractionBits,
		MaxWeight:    x.MaxRows(),
		Signs:        x.Training.Mask != "none",
		Votes:        x.Privacy.ClipQuantile > 0,
		Control:      x.Training.stored(),
		Noise:        x.out.mechanism,
		Keyed:        x.encoder,
		Clip:         x.Privacy.Clip,
		Masked:       x.Oneshot(),
		Hidden:       x.Parties.Hidden,
	}
	if x.PerRecord() {
		o.Batch = x.Batch()
	}
	x.out.lanes = newLanes(o)
	var err error
	if x.out.layout, err = x.out.lanes.Layout(); err != nil && x.Noisy() {
		return x.Mistake("privacy.bits", "use fewer, or a smaller sum.range", "%v", err)
	}
	return x.wraps(o, err)
}

// wraps names the field that is most to blame for a sum without noise that does not fit the ring:
// the one without which it would.
func (x *settling) wraps(o laneOptions, err error) error {
	if err == nil {
		return nil
	}
	path, rows, what := "sum.fraction_bits", "", "updates"
	less := o
	less.FractionBits = 0
	if _, wide := newLanes(less).Layout(); wide != nil {
		path = "sum.range"
	}
	if o.MaxWeight > 0 {
		rows = fmt.Sprintf(" %d rows each,", o.MaxWeight)
	}
	if x.Training.Submit == "weights" {
		what = "weights"
	}
	m := x.Mistake(path,
		"use a smaller sum.range, a smaller sum.fraction_bits, or fewer rows or parties",
		"the sum of %d parties,%s %s up to %v, %d fraction bits, could leave 64 bits", o.Parties, rows,
		what, o.Range, o.FractionBits)
	m.Err = err
	return m
}

// sums settles what the sessions promise, which takes no layout: noise is calibrated to that.
func (x *settling) sums() error {
	n, p := x.Parties.Count, &x.Parties
	x.out.session = protocol.Config{
		Roster:     x.files.Roster,
		MinMembers: x.out.survivors,
		Layout:     masking.Layout{{Length: 1, Bits: 1}},
		Colluders:  p.Colluders,
		Classical:  x.Sum.Classical,
	}
	if x.Oneshot() {
		return x.committee()
	}
	s := &x.out.session
	if x.Recovers() {
		var err error
		if s.Recovery, err = x.Recovery(x.out.survivors, n); err != nil {
			return err
		}
		if s.Recovery.MinSurvivors == 0 {
			s.MinMembers = p.PerRound
		}
	}
	if err := s.Validate(); err != nil {
		return x.tooFew(err)
	}
	if !x.Noisy() {
		return nil
	}
	var err error
	x.out.promise, err = privacy.OfSession(s)
	return x.MistakeOf(err)
}

// committee settles what one-message sums promise.
func (x *settling) committee() error {
	if x.files.Committee == nil {
		return x.Mistake("sum.committee", `write sum.committee = "committee.txt"`,
			"one-message sums take a committee")
	}
	x.out.oneshot = &oneshot.Config{Roster: x.files.Roster, Committee: x.files.Committee,
		Terms: x.Terms()}
	var err error
	if x.weights != nil {
		if x.out.oneshot.Roster, err = x.files.Roster.Weigh(x.weights); err != nil {
			return x.Mistake("parties.weights", "", "%v", err)
		}
	}
	x.out.promise, err = privacy.OfOneshot(x.out.oneshot)
	switch t := x.inLeague(); {
	case errors.Is(err, oneshot.ErrRoles):
		return x.Mistake("parties.colluders", fmt.Sprintf("write %d or more", t), "a party is a member "+
			"of the committee too, so that %s in league are as many parties",
			count(t, "member", "members"))
	case err != nil:
		return x.Mistake("sum.protocol", "", "%v", err)
	}
	if x.files.MadeUp {
		x.out.promise = x.out.promise.Unnamed()
	}
	return nil
}

var adversaries = map[string]protocol.Adversary{
	"cheating":       protocol.CheatingServer,
	"semi-malicious": protocol.SemiMaliciousServer,
	"curious":        protocol.CuriousServer,
}

// sessions settles the rest of the sessions, and the digest.
func (x *settling) sessions() error {
	x.out.digest = x.digest()
	x.out.session.Label, x.out.session.Layout = label(x.Name, x.out.digest), x.out.layout
	if x.Oneshot() {
		return x.messages()
	}
	if err := x.out.session.Validate(); err != nil {
		return x.tooFew(err)
	}
	return nil
}

// digest names all that was settled: what is declared, the files, and what was worked out from
// them, to six digits, since machines may calibrate differently in the last ones.
func (x *settling) digest() [32]byte {
	names := map[string]any{}
	add := func(name string, digest [32]byte) { names[name] = hex.EncodeToString(digest[:]) }
	add("job", x.Digest())
	add("roster", x.files.Roster.Digest())
	if len(x.files.Model) > 0 {
		add("model", sha256.Sum256(x.files.Model))
	}
	if x.out.before != nil {
		add("before", sha256.Sum256(x.files.Before))
	}
	if x.Oneshot() {
		add("committee", x.files.Committee.Digest())
	}
	if m := x.out.mechanism; m != nil {
		names["multiplier"], names["scale"] = sixDigits(x.out.multiplier), sixDigits(m.Encoder.Scale)
	}
	return sha256.Sum256(append([]byte(labels.SettledJob+"\n"), strict.Canonical(names)...))
}

func sixDigits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 5, 64), 64)
	if err != nil {
		panic("job: " + err.Error()) // cannot happen
	}
	return rounded
}

// messages settles the rest of one-message sums.
func (x *settling) messages() error {
	own := x.out.oneshot
	own.Label = label(x.Name, x.out.digest)
	if x.encoder != nil {
		if err := x.fillKeyed(own); err != nil {
			return err
		}
	} else if err := Fill(own, x.out.layout, x.out.mechanism, x.Sum.Bounded); err != nil {
		return err
	}
	switch _, err := own.Parameters(); {
	case errors.Is(err, oneshot.ErrLong) && x.encoder != nil:
		return x.Mistake("sum.max_weight", "write a smaller number, so that the heaviest counts less",
			"%v", err)
	case errors.Is(err, oneshot.ErrLong), errors.Is(err, oneshot.ErrQuiet) && x.Noisy():
		return x.otherBits(err)
	case err != nil:
		return x.Mistake("sum.protocol", "", "%v", err)
	}
	return nil
}

// label names the series of a job's sessions.
func label(name string, digest [32]byte) string {
	return name + " " + hex.EncodeToString(digest[:])
}
