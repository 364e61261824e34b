package old

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

const small = `name = "small"
roster = "roster.txt"
rounds = 4
sampling = 0.8
[training]
model = "mlp:4"
rule = "fedga"
beta = 0.1
by_rows = true
rate = 0.1
[training.rows]
features = 5
classes = 3
most = 40
[recovery]
drop_out = 0.3
`

const smallPlan = `{"name": "a", "rounds": 2, "length": 3, "clip": 1}`

const smallSpec = `name = "small"
rounds = 4
[data]
set = "adult"
split = "iid"
[training]
model = "mlp:4"
rate = 0.1
[[party]]
name = "clinic"
count = 5
`

// What cannot be read is refused with its line and what to do; all mistakes that are found at once
// are told at once.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		text, from, to string
		line           int
		want           string
	}{
		{small, "rounds = 4", "rouds = 4", 3, "no key rouds"},
		{small, "rounds = 4", "rouds = 4\nrounds = 4", 3, "no key rouds"},
		{small, "rounds = 4", "Rounds = 4", 0, "did you mean rounds?"},
		{small, "rounds = 4", "rounds = 4\nrounds = 5", 4, "rounds"},
		{small, "rounds = 4", "rounds = 3", 3, "twice the number"},
		{small, "rounds = 4", "rounds = 0", 3, "at least 1"},
		{small, "rounds = 4", "rounds = 4\nstart = \"soon\"", 4, "2026-11-30"},
		{small, "rounds = 4", "rounds = 4\npace = \"5\"", 4, "5"},
		{small, "rounds = 4", "rounds = 4\nabout = \"x\x00\"", 4, ""},
		{small, "sampling = 0.8", "sampling = 1.1", 4, "such as 0.7"},
		{small, "sampling = 0.8", "sampling = 0.1", 0, "parties.per_round"},
		{small, `roster = "roster.txt"`, `roster = "none.txt"`, 4, "give parties.count=10"},
		{small, `roster = "roster.txt"`, "", 0, `write roster = "roster.txt"`},
		{small, "by_rows = true", "", 14, "by_rows = true"},
		{small, "most = 40", "", 9, "give sum.max_weight"},
		{small, "rate = 0.1\n", "", 5, "training.rate: it is missing"},
		{small, `model = "mlp:4"`, `model = "tree"`, 0, "model.name"},
		{small, "[training]", "[server]\nrule = \"fedavgm\"\n[training]", 6, "use momentum"},
		{small, "[recovery]", "[privacy]\nnoise = \"gauss\"\n[recovery]", 0, "privacy.noise"},
		{small, "[recovery]", "[privacy]\nepsilon = 1.0\nEPSILON = 9.0\n[recovery]", 0,
			"did you mean epsilon?"},
		{small, "[recovery]", "[world]\n[recovery]", 0, "a job of today's form"},
		{small, small, " ", 0, "the file is empty"},
		{small, small, "name = ", 1, "toml"},
		{smallPlan, "", "", 0, "give parties.count=10"},
		{smallPlan, `"clip": 1`, `"clip": 1, "clipp": 1`, 0, "clipp"},
		{smallPlan, `"clip": 1`, `"clip": 1, "clip": 2`, 0, "given twice"},
		{smallPlan, `"clip": 1`, `"Clip": 1`, 0, "Clip"},
		{smallPlan, `, "clip": 1`, ``, 0, "clip: it is missing"},
		{smallPlan, `"clip": 1`, `"clip": 1, "adversary": 3`, 0, "2 for curious"},
		{smallPlan, `"clip": 1`, `"clip": 1, "parties": {}`, 0, "a job of today's form"},
		{smallPlan, `}`, ``, 0, "ends early"},
		{smallSpec, `set = "adult"`, "", 3, "name of a set"},
		{smallSpec, "[training]", "[training.rows]\nfeatures = 3\n[training]", 6, "leave it out"},
		{smallSpec, "rounds = 4", "rounds = 4\nroster = \"r\"", 3, "leave it out"},
		{smallSpec, "[[party]]\nname = \"clinic\"\ncount = 5\n", "", 0, "[[party]]"},
		{smallSpec, "count = 5", "count = -5", 11, "1 or more"},
		{smallSpec, "rate = 0.1", "rate = 0.1\nby_rows = true", 9, "give sum.max_weight"},
		{smallSpec, "count = 5", "place = \"Oslo\"", 5, "there is no key data.split"},
	} {
		text := strings.Replace(c.text, c.from, c.to, 1)
		_, _, _, err := Read(filepath.Join("testdata", "federations", "x.toml"), []byte(text))
		all := job.Errors(err)
		if !errors.Is(err, job.ErrConfig) || len(all) == 0 {
			t.Errorf("%s: %v", c.to, err)
			continue
		}
		if c.line > 0 && all[0].Line != c.line || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "x.toml") {
			t.Errorf("%s: line %d, want %d: %v", c.to, all[0].Line, c.line, err)
		}
	}
	_, _, _, err := Read("x.toml", []byte(strings.NewReplacer("rounds = 4", "rounds = 0",
		"rate = 0.1", "rate = 0.0", "most = 40", "").Replace(small)), "parties.count=10")
	if all := job.Errors(err); len(all) != 3 {
		t.Errorf("%d mistakes: %v", len(all), err)
	}
}

// What the old form does not say can be said, by the job's names.
func TestSet(t *testing.T) {
	text := []byte(strings.Replace(small, "roster.txt", "none.txt", 1))
	j, form, _, err := Read("x.toml", text, "parties.count=20", "privacy.clip=0.5")
	if err != nil || form != FormFederation || j.Parties.PerRound != 16 || j.Parties.Count != 20 ||
		j.Privacy.Clip != 0.5 || j.Rounds != 2 {
		t.Errorf("%+v: %v", j, err)
	}
	for set, want := range map[string]string{"parties.count": "PATH=VALUE", "parties.cuont=3": "count",
		"parties.count=1": "outside"} {
		if _, _, _, err := Read("x.toml", text, set); !errors.Is(err, job.ErrConfig) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// A text that says nothing but what scenarios and specs share is a scenario's, and the note says
// how it is a spec's.
func TestEitherForm(t *testing.T) {
	both := strings.Replace(smallSpec, "split = \"iid\"", "rows = 50", 1)
	both = strings.Replace(both, "mlp:4", "logistic", 1)
	j, form, notes, err := Read("x.toml", []byte(both))
	if err != nil || form != FormScenario || !strings.Contains(notes[0], `split = "iid"`) ||
		j.Sum.Recovery {
		t.Errorf("it is a %s, with %q: %v", form, notes, err)
	}
	one := strings.Replace(both, "rows = 50", "rows = 50\nsplit = \"iid\"", 1)
	if j, form, _, err := Read("x.toml", []byte(one)); form != FormSpec || err != nil ||
		!j.Sum.Recovery || j.World.Data.Rows != 50 {
		t.Errorf("it is a %s: %v", form, err)
	}
}

// Without noise a vector of the clip's length fits whatever the clip is, with places to spare, also
// of as many parties as there can be.
func TestClear(t *testing.T) {
	for _, c := range []struct {
		clip   string
		bounds float64
		places int
	}{
		{"1e-9", 1e-9, 40}, {"0.001", 0.001, 29}, {"0.5", 0.5, 21}, {"1", 0, 0}, {"64", 0, 0},
		{"65", 65, 0}, {"1e6", 1e6, 0}, {"1e7", 1e7, 16}, {"1e11", 1e11, 3},
	} {
		text := strings.Replace(smallPlan, `"clip": 1`, `"clip": `+c.clip, 1)
		j, _, _, err := Read("x.json", []byte(text), "parties.count=10")
		if err != nil || j.Sum.Range != c.bounds || j.Sum.FractionBits != c.places {
			t.Errorf("clip %s: range %v, %d places: %v", c.clip, j.Sum.Range, j.Sum.FractionBits, err)
			continue
		}
		s, err := j.Settle(job.Files{Roster: rosterOf(t, parties)})
		if err != nil {
			t.Fatal(err)
		}
		vector := []float64{0, -1e300, 0}
		if _, err := s.Encode(make([]byte, 32), vector, nil); err != nil {
			t.Errorf("clip %s: %v", c.clip, err)
		}
		d := j.WithDefaults()
		if math.Ldexp(d.Sum.Range, d.Sum.FractionBits)*job.MaxParties > math.Ldexp(1, 63) {
			t.Errorf("clip %s: there is no room for a million parties", c.clip)
		}
	}
}

// Whatever is read becomes a valid job that reads back, or an error with a reason.
func FuzzRead(f *testing.F) {
	for folder := range declared {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.[jt]*"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		j, _, _, err := Read("x", text, "parties.count=10")
		if err != nil {
			if !errors.Is(err, job.ErrConfig) {
				t.Fatal(err)
			}
			return
		}
		again, err := j.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := job.Parse("x", again); err != nil || back.Digest() != j.Digest() {
			t.Fatalf("%v\n%s", err, again)
		}
	})
}
