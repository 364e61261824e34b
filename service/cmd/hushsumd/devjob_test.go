package main

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

const goodJob = `name = "six"
about = "who has what"
rounds = 4
seed = 2
model.name = "mlp:4"
parties.drop_out = 0.3
sum.max_weight = 50
training = { steps = 2, rate = 0.1 }
[world.data] # for the parties of dev
split = "dirichlet-labels"
rows = 50
[[parties.group]]
name = "clinic"
count = 5
[[parties.group]]
name = "other"
`

// The federation of dev is that of the job, for rows such as those that are dealt, and has no
// world.
func TestDevJob(t *testing.T) {
	j, err := parseDevJob("six.toml", []byte(goodJob))
	if err != nil {
		t.Fatal(err)
	}
	own, err := dealRows(j)
	if err != nil {
		t.Fatal(err)
	}
	const names = "clinic-1 clinic-2 clinic-3 clinic-4 clinic-5 other"
	if len(own.parties) != 6 || strings.Join(j.Names(), " ") != names {
		t.Errorf("%d parties: %v", len(own.parties), j.Names())
	}
	for _, rows := range own.parties {
		if rows.Len() > 50 {
			t.Errorf("%d rows", rows.Len())
		}
	}
	most := 0
	all := j.Clone()
	all.World.Data.Rows, all.World.Data.All = 0, true
	whole, err := dealRows(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range whole.parties {
		most += rows.Len()
	}
	if want := 20_000; most != want { // as many are made for a split
		t.Errorf("%d of all %d rows are dealt", most, want)
	}
	folder := t.TempDir()
	f, _, err := prepareDev(folder, j, own)
	if err != nil {
		t.Fatal(err)
	}
	again, err := readFederation(folder)
	if err != nil || again.ID != f.ID || again.JobDigest != f.JobDigest {
		t.Errorf("parties read another federation: %v", err)
	}
	is, err := job.Parse("federation.toml", f.Text)
	if err != nil || strings.Contains(string(f.Text), "world") || !f.World ||
		is.Model.Features != own.test.Features || is.Model.Classes != 2 {
		t.Errorf("%v\n%s", err, f.Text)
	}
	written, err := job.Parse("six.toml", []byte(strings.Replace(goodJob, "model.name",
		"model.features = 40\nmodel.classes = 2\nmodel.name", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if digest := written.Digest(); f.JobDigest != hex.EncodeToString(digest[:]) {
		t.Error("dev's job has another digest than the file, which has all")
	}
}

// What dev cannot run is refused with its path, its line and what to do.
func TestDevJobMistakes(t *testing.T) {
	for _, c := range []struct {
		from, to string
		line     int
		path     string
		want     string
	}{
		{"rounds = 4", "rouds = 4", 3, "rouds", "rounds"},
		{`model.name = "mlp:4"`, "model.length = 4", 0, "", "model.name"},
		{"count = 5", "count = 2", 0, "parties.count", "4 to 100"},
		{"count = 5", "count = 100", 0, "parties.count", "4 to 100"},
		{"count = 5", "count = 5\n[[world.link]]\nbetween = [\"a\", \"b\"]", 15, "world.link", "are real"},
		{"count = 5", "count = 5\n[[world.party]]\nname = \"clinic\"\ncrash = [{ round = 2 }]", 15,
			"world.party", "hushsum simulate"},
		{"rows = 50", "rows = 50\n[world]\ndrop = 0.1", 13, "world.drop", "hushsum simulate"},
		{"rows = 50", "rows = 50\n[world]\nfidelity = \"ring\"", 13, "world.fidelity", "real"},
		{"rows = 50", "rows = 50\n[world]\ntolerance = 0.1", 13, "world.tolerance", ""},
		{"rows = 50", "rows = 50\n[world]\nevaluate_every = 2", 13, "world.evaluate_every", "every round"},
		{"rows = 50", "rows = 50\n[world]\nskip_clear = true", 13, "world.skip_clear", "in the clear"},
		{"rows = 50", "rows = 50\n[world]\nservers = [\"Oslo\"]", 13, "world.servers", "one server"},
		{"rows = 50", "rows = 50\nmost = 900", 12, "world.data.most", "all rows"},
		{`split = "dirichlet-labels"`, `draw = "new"`, 10, "world.data.draw", "keep their rows"},
		{"steps = 2", "steps = 2, restart = true", 8, "training.restart", "hushsum simulate"},
	} {
		_, err := parseDevJob("six.toml", []byte(strings.Replace(goodJob, c.from, c.to, 1)))
		all := job.Errors(err)
		if len(all) == 0 || c.path != "" && all[0].Path != c.path ||
			c.line > 0 && all[0].Line != c.line || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

// What only rows and sessions tell is refused with the line of the job's file too.
func TestDevJobSettled(t *testing.T) {
	for _, c := range []struct {
		from, to, path string
		line           int
	}{
		{"rows = 50", "rows = 50\nset = \"/nowhere\"", "world.data.set", 12},
		{"dirichlet-labels", "colour", "world.data.split", 10},
		{`"mlp:4"`, "\"mlp:4\"\nmodel.features = 3", "model.features", 6},
		{"drop_out = 0.3", "drop_out = 0.6", "parties.drop_out", 6},
		{"drop_out = 0.3", "drop_out = 0.3\nparties.hidden = 0.5", "parties.hidden", 7},
	} {
		j, err := parseDevJob("six.toml", []byte(strings.Replace(goodJob, c.from, c.to, 1)))
		if err == nil {
			var own *ownRows
			if own, err = dealRows(j); err == nil {
				_, _, err = prepareDev(t.TempDir(), j, own)
			}
		}
		var wrong *job.ConfigError
		path, line := "", 0
		if errors.As(err, &wrong) {
			path, line = wrong.Path, wrong.Line
		}
		if err == nil || c.path != "" && path != c.path || line != c.line {
			t.Errorf("%s: %s at line %d: %v", c.to, path, line, err)
		}
	}
}

// The example of the page on the service is one that dev runs.
func TestDevDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../../../docs/service-begin.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "`hushsumd dev --spec FILE` runs a job")
	_, example, _ = strings.Cut(example, "```toml\n")
	example, _, _ = strings.Cut(example, "```")
	if j, err := parseDevJob("digits.toml", []byte(example)); err != nil ||
		j.World.Data.Set != "digits" {
		t.Errorf("%v\n%s", err, example)
	}
}
