// Package federation reads the file that declares a federation: who takes part, which
// model is trained by which rule, what is asked of privacy, and when. It works the file
// out into the plan that every key is signed with, and says in words what taking part
// means.
//
// All that the file declares is in the digest of the plan, so that a party that has
// accepted a federation takes part in no other under its name.
package federation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/training"
)

// Federation is a file worked out. It is safe for concurrent use.
type Federation struct {
	File    File
	Text    []byte // of the file
	Settled *hushsum.Settled
	Spec    tensor.Spec // the tensors that are shared, in order
	Kept    []string    // names of those that stay with parties
	Initial []float64   // the first shared model, nil: zeros
	Start   time.Time   // zero: at once
	sparse  protocol.Params
	ID      string // 64 hexadecimal digits over all of it
	// JobDigest is that of the job that is declared, see [job.Job.Digest], in 64 hexadecimal
	// digits. Empty: the file is of an earlier release.
	JobDigest string
	// World reports whether the file has a world for simulations, which Text has not.
	World bool

	// Of a training that is declared, else nil and zero.
	training *training.Training
	layout   masking.Layout
	spends   *hushsum.Settled // accounts for the noise of an earlier release's file
	job      *job.Job         // nil of such a file
}

// Files holds what a federation is made of: the text of its file, and what the files have that it
// names.
type Files struct{ Text, Roster, Model []byte }

// Read reads a federation's file, the roster next to it, and the model if it names one.
func Read(name string) (*Federation, error) {
	f, _, err := ReadFiles(name)
	return f, err
}

// ReadFiles is [Read], and returns what it read, but for a world for simulations.
func ReadFiles(name string) (*Federation, *Files, error) {
	files, err := readFiles(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := New(files.Text, files.Roster, files.Model)
	if err != nil {
		return nil, nil, err
	}
	files.Text = f.Text
	return f, files, nil
}

func readFiles(name string) (*Files, error) {
	text, err := readBounded(name, maxFile)
	if err != nil {
		return nil, err
	}
	f, err := Parse(text)
	if err != nil {
		return readJob(name, text, err)
	}
	beside := func(other string) string {
		if filepath.IsAbs(other) {
			return other
		}
		return filepath.Join(filepath.Dir(name), other)
	}
	if f.Roster == "" {
		return nil, wrong(text, "roster", "it names no file of parties",
			`write roster = "roster.txt"; see hushsumd roster`)
	}
	roster, err := readBounded(beside(f.Roster), maxRoster)
	if err != nil {
		return nil, wrong(text, "roster", err.Error(), "name a file, as seen from the folder of this one")
	}
	var model []byte
	if f.Model.File != "" {
		if model, err = os.ReadFile(beside(f.Model.File)); err != nil {
			return nil, wrong(text, "model.file", err.Error(),
				"name a file, as seen from the folder of this one")
		}
	}
	return &Files{text, roster, model}, nil
}

const maxRoster = 256 << 20

func readBounded(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, &job.ConfigError{File: name,
			Reason: fmt.Sprintf("%d bytes, at most %d are read", info.Size(), most)}
	}
	return os.ReadFile(name)
}

var rules = map[string]aggregation.Rule{
	"":           aggregation.RuleFedAvg,
	"fedavg":     aggregation.RuleFedAvg,
	"momentum":   aggregation.RuleMomentum,
	"fedadagrad": aggregation.RuleFedAdagrad,
	"fedadam":    aggregation.RuleFedAdam,
	"fedyogi":    aggregation.RuleFedYogi,
}

var adversaries = map[string]protocol.Adversary{
	"":               protocol.CheatingServer,
	"cheating":       protocol.CheatingServer,
	"semi-malicious": protocol.SemiMaliciousServer,
	"curious":        protocol.CuriousServer,
}

// planFields are the file's names for those of a plan.
var planFields = map[string]string{
	"Name": "name", "Rounds": "rounds", "Length": "model", "Clip": "privacy.clip",
	"Bits": "privacy.bits", "Noise": "privacy.noise", "Epsilon": "privacy.epsilon",
	"Delta": "privacy.delta", "DropOut": "recovery.drop_out", "Colluders": "recovery.colluders",
	"Adversary": "recovery.adversary", "roster": "roster",
}

// mostRounds bounds those of a federation.
const mostRounds = 1_000_000

// DefaultStepTime is the step_time of a file that names none.
const DefaultStepTime = 30 * time.Second

// New works out a file with the text of its roster, and the bytes of the first model if
// it names a file of one. It fails with a [job.ConfigError].
func New(text, rosterText, model []byte) (*Federation, error) {
	roster, rosterErr := keyexchange.ParseRoster(rosterText)
	badRoster := func(field string) error {
		return wrong(text, field, "of the file that it names: "+rosterErr.Error(),
			"have parties send the line of 'hushsumd roster line NAME IDENTITY'")
	}
	f, err := Parse(text)
	if err != nil {
		j, jobErr := job.Parse("", text)
		switch {
		case jobErr == nil && rosterErr != nil:
			return nil, badRoster("parties.roster")
		case jobErr == nil:
			return newJob(j, text, roster, model)
		case !earlier(text):
			return nil, jobErr
		}
		return nil, err
	}
	if rosterErr != nil {
		return nil, badRoster("roster")
	}
	out := &Federation{File: *f, Text: text}
	if out.File.StepTime == 0 {
		out.File.StepTime = Duration(DefaultStepTime)
	}
	if f.Start != "" {
		if out.Start, err = time.Parse(time.RFC3339, f.Start); err != nil {
			return nil, wrong(text, "start", "not a time", `write it as "2026-11-30T08:00:00Z"`)
		}
	}
	if f.Training != nil {
		err = out.trainedModel(roster.Len())
	} else {
		err = out.settleModel(model)
	}
	if err != nil {
		return nil, err
	}
	rule, found := rules[f.Server.Rule]
	if !found {
		return nil, wrong(text, "server.rule", fmt.Sprintf("there is no rule %q", f.Server.Rule),
			"use fedavg, momentum, fedadagrad, fedadam or fedyogi")
	}
	if err := out.Optimizer().Validate(); err != nil {
		return nil, wrong(text, "server.rule", fmt.Sprintf("%v: %v", rule, err), "")
	}
	adversary, found := adversaries[f.Recovery.Adversary]
	if !found {
		return nil, wrong(text, "recovery.adversary",
			fmt.Sprintf("there is no adversary %q", f.Recovery.Adversary),
			"use cheating, semi-malicious or curious")
	}
	family, err := out.noise()
	if err != nil {
		return nil, err
	}
	if s := f.Metrics.Share; !(s >= 0 && s < 1) {
		return nil, wrong(text, "metrics.share", fmt.Sprintf("%v is outside 0 to below 1", s), "")
	}
	if f.Rounds > mostRounds {
		return nil, wrong(text, "rounds", fmt.Sprintf("%d are too many", f.Rounds),
			fmt.Sprintf("use at most %d, and another federation after them", mostRounds))
	}
	terms := sha256.Sum256(slices.Concat([]byte("hushsum/2 federation\n"), canonical(text), model))
	plan := hushsum.Plan{
		Name:      f.Name + " " + hex.EncodeToString(terms[:16]),
		Rounds:    f.Rounds,
		Length:    out.Spec.Len() + out.metrics(),
		Clip:      f.Privacy.Clip,
		Bits:      f.Privacy.Bits,
		Noise:     family,
		Epsilon:   f.Privacy.Epsilon,
		Delta:     f.Privacy.Delta,
		DropOut:   f.Recovery.DropOut,
		Colluders: f.Recovery.Colluders,
		Adversary: adversary,
		Classical: f.Recovery.Classical,
	}
	if f.Training != nil { // which settles its own sums and their noise
		plan.Clip, plan.Bits, plan.Noise, plan.Epsilon, plan.Delta = 1, 0, 0, 0, 0
	}
	if !namePattern.MatchString(f.Name) {
		return nil, wrong(text, "name", fmt.Sprintf("%.80q is no name", f.Name),
			"use 1 to 60 letters, digits, dots, dashes and underscores")
	}
	out.Settled, err = plan.Settle(roster)
	var config *hushsum.ConfigError
	switch {
	case errors.As(err, &config):
		field, found := planFields[config.Path]
		if !found {
			field = config.Path
		}
		return nil, wrong(text, field, config.Reason, config.Advice)
	case err != nil:
		return nil, wrong(text, "privacy", err.Error(), "")
	}
	if f.Training != nil {
		if err := out.settleTraining(out.Settled.Config(1)); err != nil {
			return nil, err
		}
	}
	if f.Recovery.Sparse {
		if err := out.thin(); err != nil {
			return nil, err
		}
	}
	if err := out.checkSampling(); err != nil {
		return nil, err
	}
	digest := out.Settled.Digest()
	out.ID = hex.EncodeToString(digest[:])
	return out, nil
}

// Failure probabilities of a sparse graph, as powers of a half: that a party's secrets
// are not safe, and that they cannot be rebuilt.
const (
	sparsePrivacy  = 40
	sparseRecovery = 30
)

// thin finds the numbers of a sparse graph for the smallest session.
func (f *Federation) thin() error {
	plan := f.Plan()
	fail := func(reason, advice string) error {
		return wrong(f.Text, "recovery.sparse", reason, advice)
	}
	if plan.Adversary != protocol.CuriousServer {
		return fail("a sparse graph is for a curious server", `set adversary = "curious"`)
	}
	n := f.Settled.MinSurvivors()
	var err error
	f.sparse, err = protocol.Parameters(n, float64(plan.Colluders)/float64(n), plan.DropOut,
		sparsePrivacy, sparseRecovery, plan.Adversary)
	if err != nil {
		return fail(err.Error(), "leave it out")
	}
	if err := f.Config(1).Validate(); err != nil {
		return fail(err.Error(), "leave it out: there are too few parties")
	}
	return nil
}

// Config returns the configuration of the session of a number.
func (f *Federation) Config(number uint64) *protocol.Config {
	c := f.Settled.Config(number)
	if f.job != nil {
		return c
	}
	if f.File.Recovery.Sparse {
		c.Colluders = f.sparse.CorruptNeighbours
		c.Recovery.Degree, c.Recovery.Threshold = f.sparse.Neighbours, f.sparse.Threshold
	}
	if f.layout != nil {
		c.Layout = slices.Clone(f.layout)
	}
	return c
}

// Plan returns what was declared, with defaults filled in.
func (f *Federation) Plan() hushsum.Plan {
	if f.job != nil {
		return planOf(f.job, f.Settled)
	}
	p := f.Settled.Plan()
	if f.training == nil {
		return p
	}
	own := f.File.Privacy
	p.Noise, _ = f.noise()
	p.Clip, p.Bits, p.Epsilon, p.Delta = own.Clip, own.Bits, own.Epsilon, own.Delta
	return p.WithDefaults()
}

// accounts is what knows what is spent.
func (f *Federation) accounts() *hushsum.Settled {
	if f.spends != nil {
		return f.spends
	}
	return f.Settled
}

// Ledger returns an empty ledger that holds every party to the budget, nil without noise.
func (f *Federation) Ledger() (*accounting.Ledger, error) { return f.accounts().Ledger() }

// Round returns what a round spends.
func (f *Federation) Round() accounting.Round { return f.accounts().Round() }

// Sample is how many parties take part in a round, 0 for all who are there.
func (f *Federation) Sample() int {
	if f.job != nil {
		return f.job.Parties.PerRound
	}
	return int(math.Round(f.File.Sampling * float64(f.Settled.Roster().Len())))
}

// checkSampling sees that those of a round are enough for a sum.
func (f *Federation) checkSampling() error {
	s, n, least := f.File.Sampling, f.Settled.Roster().Len(), f.Settled.MinSurvivors()
	switch {
	case !(s >= 0 && s <= 1):
		return wrong(f.Text, "sampling", fmt.Sprintf("%v is no part of the roster", s),
			"use 0 for all, or a number such as 0.7")
	case s == 0:
		return nil
	case f.File.Recovery.Sparse:
		return wrong(f.Text, "sampling", "a sparse graph is over all parties", "leave it out")
	case f.Sample() < least:
		return wrong(f.Text, "sampling", fmt.Sprintf("%d of %d parties take part, and recovery.drop_out "+
			"= %v lets no fewer than %d make a sum", f.Sample(), n, f.File.Recovery.DropOut, least),
			fmt.Sprintf("use at least %.2g here, or a larger drop_out, which is then of the whole roster",
				float64(least)/float64(n)))
	}
	return nil
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$`)

// canonical leaves out what different editors write differently: the ends of lines.
func canonical(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }
