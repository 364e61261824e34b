// Package federation makes a federation from a job: see package job. It works the job out for the
// parties of its roster, holds the first model, and computes the next model from a sum.
//
// Everything that the job declares is in the label that every key is signed with, so that a party
// that has accepted a federation takes part in no other under its name.
package federation

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"io"
	"os"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/training"
)

// Federation is a job worked out for the service. It is safe for concurrent use.
type Federation struct {
	Job     *job.Job // with its defaults, and without a world
	Settled *job.Settled
	Text    []byte      // of the job's file
	Spec    tensor.Spec // the tensors that are shared, in order
	Kept    []string    // names of those that stay with parties
	Initial []float64   // the first shared model, nil: zeros
	ID      string      // 64 hexadecimal digits over all of it
	// JobDigest is the digest of the declared job, see [job.Job.Digest], in 64 hexadecimal digits.
	JobDigest string
	// World reports whether the file has a world for simulations, which Text leaves out.
	World bool
	// Key signs the decisions of the federation. It is the server's word, which a party pins; nil: not
	// known, as of a federation that was read from files.
	Key ed25519.PublicKey

	training *training.Training // nil: parties train with their own programs, or are asked
	asks     *query.Plan        // nil: nothing is asked
	expected func() []query.Expected
}

// Files holds what a federation is made from: the text of its file, and the contents of the files
// that it names: the parties, the committee of one-message sums, what was spent before, and the
// first model.
type Files struct {
	Text, Roster, Committee, Model []byte
	Before                         []byte // text of a job.Before
	// Succession is an operator's signed statement that this federation continues the federation that
	// Before names: see Sign. Nil: parties join manually.
	Succession []byte
}

// Committee lists the members of the committee, nil if sums are pairwise.
func (f *Federation) Committee() *keyexchange.Roster {
	if one := f.Settled.Oneshot(); one != nil {
		return one.Committee
	}
	return nil
}

// Read reads a federation's file, the roster next to it, and the model if it names one.
func Read(name string) (*Federation, error) {
	f, _, err := ReadFiles(name)
	return f, err
}

// ReadFiles is [Read], and also returns the files that it read, without a world for simulations.
func ReadFiles(name string) (*Federation, *Files, error) {
	files, err := readFiles(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := New(*files)
	if err != nil {
		return nil, nil, err
	}
	files.Text = f.Text
	return f, files, nil
}

func readFiles(name string) (*Files, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, job.MaxFile+1))
	if err != nil {
		return nil, err
	}
	j, err := job.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if j.Parties.Roster == "" {
		return nil, j.Mistake("parties.roster",
			`write parties.roster = "roster.txt"; see hushsumd roster`, "it names no file of parties")
	}
	files, err := j.Files()
	if err != nil {
		return nil, err
	}
	out := &Files{Text: text, Model: files.Model, Before: files.Before}
	if out.Roster, err = files.Roster.MarshalText(); err == nil && files.Committee != nil {
		out.Committee, err = files.Committee.MarshalText()
	}
	return out, err
}

// New works out a federation from the contents of its files: the bytes of a committee and of a
// first model only where the text names such files. It fails with a [job.ConfigError].
func New(files Files) (*Federation, error) {
	j, err := job.Parse("", files.Text)
	if err != nil {
		return nil, err
	}
	roster, err := keyexchange.ParseRoster(files.Roster)
	if err != nil {
		return nil, j.Mistake("parties.roster",
			"have parties send the line of 'hushsumd roster line NAME IDENTITY'",
			"of the file that it names: %v", err)
	}
	with := job.Files{Roster: roster, Model: files.Model, Before: files.Before}
	if files.Committee != nil {
		if with.Committee, err = keyexchange.ParseRoster(files.Committee); err != nil {
			return nil, j.Mistake("sum.committee",
				"have members send the line of 'hushsumd roster line NAME IDENTITY'",
				"of the file that it names: %v", err)
		}
	}
	return newJob(j, files.Text, with)
}

// Of works out a job that was already read or made, as [New] works out a job's text. It fails with
// a [job.ConfigError], which names the line of the file from which the job was read.
func Of(j *job.Job, files job.Files) (*Federation, error) { return newJob(j, nil, files) }

// newJob works out a job. Without a text, and where that has a world, the text is made from the
// job.
func newJob(j *job.Job, text []byte, files job.Files) (*Federation, error) {
	world := !emptyWorld(j)
	if world || text == nil { // the world is for a simulation only, and sent to nobody
		j = j.Clone()
		j.World = job.World{}
		var err error
		if text, err = j.MarshalText(); err != nil {
			return nil, err
		}
	}
	if !j.Recovers() && !j.Oneshot() {
		return nil, j.Mistake("sum.recovery", "write sum.recovery = true, or parties.drop_out",
			"a federation's sums survive parties that drop out")
	}
	declared := j.Digest()
	f := &Federation{
		Job:       j.WithDefaults(),
		Text:      text,
		JobDigest: hex.EncodeToString(declared[:]),
		World:     world,
	}
	return f, f.settle(j, files)
}

// emptyWorld reports whether a job declares no world.
func emptyWorld(j *job.Job) bool {
	with, err := j.MarshalText()
	own := j.Clone()
	own.World = job.World{}
	without, err2 := own.MarshalText()
	return err == nil && err2 == nil && bytes.Equal(with, without)
}

// alone refuses what would be sent next to the vectors of the parties' own programs, which bring
// nothing else: no submission could be encoded.
func (f *Federation) alone(j *job.Job) error {
	asked := j.Clone()
	asked.Sum.MaxWeight = j.MaxRows() // next to declared weights it counts no rows
	if e := asked.Lacks(job.Programs, "leave it out, or write model.name"); e != nil {
		return e
	}
	return nil
}

// settle finds the tensors, the sessions and the first model.
func (f *Federation) settle(j *job.Job, files job.Files) (err error) {
	trains := f.Job.Model.Name != ""
	if !trains {
		if err := f.settleModel(files.Model); err != nil {
			return err
		}
		if f.Job.Model.File != "" {
			for _, t := range f.Spec.Tensors {
				files.Tensors = append(files.Tensors, job.Tensor(t))
			}
		}
	}
	if f.Settled, err = j.Settle(files); err != nil {
		return err
	}
	f.Job = f.Settled.Job()
	digest := f.Settled.Digest()
	f.ID = hex.EncodeToString(digest[:])
	if !trains {
		if err := f.alone(j); err != nil {
			return err
		}
		return f.settleQueries()
	}
	if f.training, err = training.Of(f.Settled); err != nil {
		return err
	}
	if f.Job.Model.DType == "float64" {
		f.Spec.DType = tensor.Float64
	}
	for _, t := range f.Job.Standing() {
		f.Spec.Tensors = append(f.Spec.Tensors, tensor.Tensor{Name: t.Name, Shape: t.Shape})
	}
	f.Initial = f.training.Flat(f.training.First())
	if f.Job.Model.File != "" {
		if err := f.begin(files.Model); err != nil {
			return err
		}
	}
	f.Spec.Round(f.Initial)
	return nil
}
