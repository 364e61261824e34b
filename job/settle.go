package job

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// Files holds the contents of the files that a job names.
type Files struct {
	Roster    *keyexchange.Roster // the parties
	Committee *keyexchange.Roster // of one-message sums
	Model     []byte              // the first model, as its file has it
	Before    []byte              // text of a [Before]
	// Length is how many numbers of that file, or of tensors some of which stay with parties, are
	// shared; 0: all that the job declares.
	Length int

	earlier bool // noise as it was for jobs that began as plans: see [Plan.Continue]
}

const maxRoster = 256 << 20

// Files reads the files that a job names, from next to its own. It fails with a [ConfigError].
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
// sum becomes a mean. It fails with a [ConfigError] if the job is not valid, or cannot be had with
// so many parties: if too many may be missing for the server that is to be withstood, or if noise
// does not fit the ring. It takes some milliseconds, with noise some more.
func (j *Job) Settle(with Files) (*Settled, error) {
	own := j.Clone()
	own.count(with.Roster)
	if err := own.Validate(); err != nil {
		return nil, err
	}
	x := &settling{Job: own.WithDefaults(), files: with}
	for _, step := range []func() error{x.who, x.noise, x.lanes, x.sessions, x.committee} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	x.out.job = x.Job
	return x.out, nil
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
	files      Files
	out        *Settled
	multiplier float64
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
	if committee := x.files.Committee; committee != nil {
		x.Sum.Members = committee.Len()
	}
	survivors := x.Parties.Count
	if x.Recovers() || x.Oneshot() {
		survivors = x.fewest(survivors)
	}
	x.out = &Settled{survivors: survivors}
	return x.sampled()
}

// numbers returns how many numbers a party's vector has, without metrics.
func (x *settling) numbers() int { return cmp.Or(x.files.Length, x.Model.Numbers()) }

// submissions is how many a party makes at most.
func (j *Job) submissions() int {
	return cmp.Or(j.Parties.Participations, j.Rounds*j.Training.sums())
}

// length is numbers with metrics.
func (x *settling) length() int {
	n := x.numbers()
	if n > 0 && x.Metrics.Share > 0 {
		n += 2
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
	if err != nil || !x.Noisy() {
		return err
	}
	if missing := x.ofRecords(); len(missing) > 0 {
		return missing[0]
	}
	release := privacy.Release{
		Contributors: privacy.Contributors{Parties: x.Parties.Count, MinSurvivors: x.out.survivors,
			Colluders: x.Parties.Colluders},
		Noise: privacy.Noise{Multiplier: p.Multiplier, Clip: p.Clip,
			Bits: cmp.Or(p.Bits, DefaultBits)},
		Committee: x.Adders(),
		Dimension: d,
		Rate:      x.Parties.Hidden,
		Records:   x.Records(),
	}
	if release.Band, err = x.band(); err != nil {
		return x.MistakeOf(err)
	}
	if err := release.Noise.Family.UnmarshalText([]byte(p.Noise)); err != nil {
		return x.Mistake("privacy.noise", "", "%v", err)
	}
	if x.Sum.MaxWeight > 0 { // the weight is one coordinate more
		release.Dimension++
		release.Noise.Clip *= aggregation.WeightedClip(aggregation.DefaultCountShare)
	}
	switch {
	case p.ClipQuantile > 0:
		release.Signs = privacy.Votes(cmp.Or(x.Parties.PerRound, x.Parties.Count))
		if q := x.Parties.Hidden; q > 0 {
			release.Signs = privacy.Votes(max(1, int(math.Round(q*float64(x.Parties.Count)))))
		}
	case x.Training.Mask != "none":
		release.Signs = &privacy.Signs{Dimension: x.numbers(), Part: p.SignShare}
	}
	x.out.budget = privacy.Budget{Epsilon: p.Epsilon, Delta: p.Delta, Before: before,
		ByRDP: x.files.earlier}
	if release.Noise.Multiplier == 0 {
		release.Noise.Multiplier, err = release.Calibrate(x.out.budget, x.charges())
		if err != nil {
			return x.MistakeOf(err)
		}
	}
	x.multiplier = release.Noise.Multiplier
	mechanism, err := release.Mechanism()
	if err != nil {
		return x.MistakeOf(err)
	}
	x.out.mechanism, x.out.encoder = mechanism, mechanism.Encoder
	return nil
}

// lanes settles the encoding.
func (x *settling) lanes() error {
	o := LaneOptions{
		Parties:      x.Parties.Count,
		Dimension:    x.length(),
		Range:        x.Sum.Range,
		FractionBits: x.Sum.FractionBits,
		MaxWeight:    x.Sum.MaxWeight,
		Signs:        x.Training.Mask != "none",
		Votes:        x.Privacy.ClipQuantile > 0,
		Control:      x.Training.stored(),
		Noise:        x.out.mechanism,
		Clip:         x.Privacy.Clip,
		Masked:       x.Oneshot(),
		Hidden:       x.Parties.Hidden,
	}
	if x.PerRecord() {
		o.Batch = x.Batch()
	}
	x.out.lanes = NewLanes(o)
	var err error
	if x.out.layout, err = x.out.lanes.Layout(); err != nil {
		path := "sum.fraction_bits"
		if x.Noisy() {
			path = "privacy.bits"
		}
		return x.Mistake(path, "use fewer, or a smaller sum.range", "%v", err)
	}
	return nil
}

var adversaries = map[string]protocol.Adversary{
	"cheating":       protocol.CheatingServer,
	"semi-malicious": protocol.SemiMaliciousServer,
	"curious":        protocol.CuriousServer,
}

// sessions settles the configuration of the sessions, and the digest.
func (x *settling) sessions() error {
	n, p := x.Parties.Count, &x.Parties
	declared := x.digest()
	roster, model := x.files.Roster.Digest(), sha256.Sum256(x.files.Model)
	x.out.digest = sha256.Sum256(fmt.Appendf(nil, "hushsum/3 settled\n%x\n%x\n%x\n%.5e %.5e", declared,
		roster, model, x.multiplier, x.out.encoder.Scale))
	if x.out.before != nil {
		before := sha256.Sum256(x.files.Before)
		x.out.digest = sha256.Sum256(fmt.Appendf(nil, "hushsum/4 settled\n%x\n%x", x.out.digest, before))
	}
	x.out.session = protocol.Config{
		Label:      label(x.Name, x.out.digest),
		Roster:     x.files.Roster,
		MinMembers: x.out.survivors,
		Layout:     x.out.layout,
		Colluders:  p.Colluders,
		Classical:  x.Sum.Classical,
	}
	if x.Oneshot() {
		return nil
	}
	s := &x.out.session
	adversary := adversaries[x.Sum.Adversary]
	if x.Recovers() {
		s.Recovery = &protocol.Recovery{Adversary: adversary, Threshold: x.Threshold(n),
			MinSurvivors: x.out.survivors}
		if s.Recovery.Threshold == 0 {
			s.MinMembers, s.Recovery.MinSurvivors = p.PerRound, 0
		}
	}
	if x.Sum.Sparse {
		if err := x.thin(adversary); err != nil {
			return err
		}
	}
	if err := s.Validate(); err != nil {
		return x.tooFew(n, err)
	}
	return nil
}

// Failure probabilities of a sparse graph, as powers of a half: that a party's secrets
// are not safe, and that they cannot be rebuilt.
const (
	sparsePrivacy  = 40
	sparseRecovery = 30
)

// thin finds the numbers of a sparse graph for the smallest session.
func (x *settling) thin(adversary protocol.Adversary) error {
	s, n := &x.out.session, x.out.survivors
	params, err := protocol.Parameters(n, float64(s.Colluders)/float64(n), x.Parties.DropOut,
		sparsePrivacy, sparseRecovery, adversary)
	if err != nil {
		return x.Mistake("sum.sparse", "leave it out: there are too few parties", "%v", err)
	}
	s.Colluders = params.CorruptNeighbours
	s.Recovery.Degree, s.Recovery.Threshold = cmp.Or(x.Sum.Degree, params.Neighbours), params.Threshold
	return nil
}

// committee settles one-message sums.
func (x *settling) committee() error {
	if !x.Oneshot() {
		return nil
	}
	committee := x.files.Committee
	if committee == nil {
		return x.Mistake("sum.committee", `write sum.committee = "committee.txt"`,
			"one-message sums take a committee")
	}
	terms := x.Job.Terms(x.out.layout, x.out.mechanism)
	terms.MinSurvivors = x.out.survivors
	members := committee.Digest()
	x.out.digest = sha256.Sum256(fmt.Appendf(nil, "hushsum/3 settled with a committee\n%x\n%x",
		x.out.digest, members))
	x.out.oneshot = &oneshot.Config{
		Label:     label(x.Name, x.out.digest),
		Roster:    x.files.Roster,
		Committee: committee,
		Terms:     terms,
	}
	if _, err := x.out.oneshot.Parameters(); err != nil {
		return x.Mistake("sum.protocol", "", "%v", err)
	}
	return nil
}

// Job returns the job with its defaults and the number of its parties filled in; nil for a [Plan]
// and for [Terms].
func (s *Settled) Job() *Job { return s.job }

// EncodeMessage returns a party's submission in a job that does not come from a [Plan]: all that it
// sends, with its share of the noise. Without noise the vector is as the training clipped it.
// broadcast is the digest of what the round began with, random as for [Settled.Encode]. The number
// of the round counts only in a job that goes on under a [Plan].
func (s *Settled) EncodeMessage(
	broadcast [32]byte, round int, m Message, random io.Reader,
) ([][]uint64, error) {
	return s.lanes.Encode(s.rotation(broadcast, round), m, random)
}

// DecodeTotal returns what the sum of a given number of submissions says, each made by
// EncodeMessage.
func (s *Settled) DecodeTotal(
	broadcast [32]byte, round int, sum [][]uint64, parties int,
) (Total, error) {
	return s.lanes.Decode(s.rotation(broadcast, round), sum, parties)
}

func (s *Settled) rotation(broadcast [32]byte, round int) [32]byte {
	if s.byRound {
		return privacy.Rotation(broadcast, uint64(round))
	}
	return rotation(broadcast)
}
