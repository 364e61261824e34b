package main

import (
	"crypto/ed25519"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/training"
)

//go:embed dev.toml
var devText []byte

// mostDev bounds dev's parties, which are processes of one machine.
const mostDev = 100

// readDevJob reads the job that dev --spec names. It fails with all mistakes joined, each a
// [job.ConfigError].
func readDevJob(name string) (*job.Job, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--spec: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, job.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("--spec: %w", err)
	}
	return parseDevJob(name, text)
}

func parseDevJob(name string, text []byte) (*job.Job, error) {
	j, err := job.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return j, checkDev(j)
}

// checkDev refuses a job that declares what dev cannot do. It fails with a [job.ConfigError].
func checkDev(j *job.Job) error {
	const real = "across machines, time, distance and failures are real"
	const simulate = "leave it out, or run the job with hushsum simulate"
	n, w := j.Size(), &j.World
	for _, c := range []struct {
		is                bool
		path, why, advice string
	}{
		{j.Model.Name == "", "model.name", "the job trains no model, and dev has no program of its own",
			`write model.name = "logistic"`},
		{n < 4 || n > mostDev, "parties.count", fmt.Sprintf("there are %d parties", n),
			fmt.Sprintf("have 4 to %d, each a process on this machine", mostDev)},
		{j.Oneshot() && j.Sum.Members > mostDev, "sum.members",
			fmt.Sprintf("there are %d members", j.Sum.Members),
			fmt.Sprintf("have 4 to %d, each a process on this machine", mostDev)},
		{j.Training.Restart, "training.restart", "it is not compared with a simulation", simulate},
		{len(w.Link) > 0, "world.link", real, simulate},
		{len(w.Party) > 0, "world.party", real, simulate},
		{len(w.Servers) > 0, "world.servers", "dev has one server", simulate},
		{w.Topology == "serverless", "world.topology", "dev has a server", simulate},
		{w.Fidelity != "" && w.Fidelity != "messages", "world.fidelity", "dev's sums are real", simulate},
		{w.Drop > 0, "world.drop", real, simulate},
		{w.EvaluateEvery > 1, "world.evaluate_every", "dev evaluates the model of every round", simulate},
		{w.SkipClear, "world.skip_clear", "dev compares with the same training in the clear", simulate},
		{w.Tolerance > 0, "world.tolerance", "nobody leaves dev", simulate},
		{w.Reference.Law != "", "world.reference.law", "dev's noise is for release", simulate},
		{w.SubtractOwn, "world.subtract_own", "parties of dev have one model", simulate},
		{w.Data.Draw != "", "world.data.draw", "parties of dev keep their rows", simulate},
		{w.Data.Most > 0, "world.data.most", "dev deals all rows of a set", simulate},
	} {
		if c.is {
			return j.Mistake(c.path, c.advice, "%s", c.why)
		}
	}
	return nil
}

// prepareDev writes the files that the parties' processes are given, and works out the federation:
// that of the job, for rows such as theirs.
func prepareDev(
	folder string, j *job.Job, own *ownRows,
) (fed *federation.Federation, files *federation.Files, err error) {
	var with job.Files
	with.Roster, err = newRoster(j.Names(), func(i int) string { return partyFolder(folder, i) })
	if err != nil {
		return nil, nil, err
	}
	for i, rows := range own.parties {
		if err := writeRows(filepath.Join(partyFolder(folder, i), "rows"), rows); err != nil {
			return nil, nil, err
		}
	}
	files = new(federation.Files)
	if files.Roster, err = with.Roster.MarshalText(); err != nil {
		return nil, nil, err
	}
	if j.Oneshot() {
		var names []string
		for k := range j.WithDefaults().Sum.Members {
			names = append(names, fmt.Sprint("member-", k+1))
		}
		with.Committee, err = newRoster(names, func(k int) string { return memberFolder(folder, k) })
		if err != nil {
			return nil, nil, err
		}
		if files.Committee, err = with.Committee.MarshalText(); err != nil {
			return nil, nil, err
		}
	}
	formed, err := training.WithRows(j, append([]*learning.Dataset{own.test}, own.parties...)...)
	if err != nil {
		return nil, nil, err
	}
	if fed, err = federation.Of(formed, with); err != nil {
		return nil, nil, err
	}
	files.Text = fed.Text
	b, err := json.Marshal(files)
	if err != nil {
		return nil, nil, err
	}
	return fed, files, os.WriteFile(filepath.Join(folder, "federation.json"), b, 0o600)
}

// newRoster makes identities in folders of their own.
func newRoster(names []string, folder func(i int) string) (*keyexchange.Roster, error) {
	var entries []keyexchange.Entry
	for i, name := range names {
		dir := folder(i)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, err
		}
		if err := keyfile.WriteIdentity(filepath.Join(dir, "identity.pem"), key); err != nil {
			return nil, err
		}
		entries = append(entries, keyexchange.Entry{Name: name, Key: key.Public().(ed25519.PublicKey)})
	}
	return keyexchange.NewRoster(entries)
}

// readFederation works out the federation that dev declared.
func readFederation(folder string) (*federation.Federation, error) {
	b, err := os.ReadFile(filepath.Join(folder, "federation.json"))
	if err != nil {
		return nil, err
	}
	var files federation.Files
	if err := json.Unmarshal(b, &files); err != nil {
		return nil, err
	}
	return federation.New(files)
}
