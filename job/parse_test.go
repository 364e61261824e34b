package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const first = `name = "first"
rounds = 20
parties.count = 10
model.name = "logistic"
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
`

func parse(t *testing.T, text string) *Job {
	t.Helper()
	j, err := Parse("x.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func written(t *testing.T, j *Job) string {
	t.Helper()
	b, err := j.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestParse(t *testing.T) {
	j := parse(t, first)
	want := &Job{Name: "first", Rounds: 20, Parties: Parties{Count: 10},
		Model:   Model{Name: "logistic"},
		Privacy: Privacy{Noise: "discrete-gaussian", Epsilon: 8, Clip: 1}, read: j.read}
	if !reflect.DeepEqual(j, want) {
		t.Errorf("%+v, want %+v", j, want)
	}
	same := parse(t, `{"rounds": 2e1, "name": "first", "model": {"name": "logistic"},
		"privacy": {"clip": 1, "noise": "discrete-gaussian", "epsilon": 8, "delta": 1e-5},
		"parties": {"group": [{"name": "a", "count": 4}, {"name": "b", "count": 6}]},
		"time": {"start": "2027-01-31T08:00:00Z", "pace": "1h"}, "world": {"drop": 0}}`)
	if same.Digest() == j.Digest() {
		t.Error("groups have names, and are in the digest")
	}
	same.Parties = j.Parties
	if same.Digest() != j.Digest() {
		t.Error("defaults, time, order and form are in the digest")
	}
	if got := parse(t, written(t, same)); got.Digest() != j.Digest() ||
		!got.Time.Start.Equal(same.Time.Start) || got.Time.Pace != time.Hour {
		t.Errorf("read back: %s", written(t, same))
	}
}

// A tensor without dimensions is a single number.
func TestScalar(t *testing.T) {
	j := parse(t, strings.Replace(first, `model.name = "logistic"`,
		`model.tensor = [{ name = "steps", shape = [] }]`, 1))
	if back := parse(t, written(t, j)); back.Model.Tensor[0].Shape == nil ||
		len(back.Model.Tensor[0].Shape) != 0 || back.Digest() != j.Digest() {
		t.Errorf("%+v", back.Model.Tensor)
	}
}

// All fields are written and read back.
func TestText(t *testing.T) {
	j := new(Job)
	rows(&theJob, j, func(r *row, owner any) {
		for _, v := range []any{"x1", int64(3), int64(9), 0.3, true, "5s", "2027-01-31T08:00:00Z",
			[]any{"x1", "y2"}, []any{int64(3)}, []any{0.3}, []any{"5s"}, "server", "oneshot", "member-1"} {
			if r.Kind == Word {
				v = r.Words[len(r.Words)-1]
			}
			if r.Path == "model.name" {
				v = "mlp:200,100"
			}
			if r.set(owner, v) == nil && !r.zero(owner) {
				return
			}
		}
		t.Errorf("%s: nothing fits", r.Path)
	})
	object, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{written(t, j), string(object)} {
		s := &source{name: "x"}
		tree, err := s.read([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		back, r := new(Job), new(reader)
		r.table(back, &theJob, "", "", tree)
		if len(r.wrong) > 0 || !reflect.DeepEqual(back, j) {
			t.Errorf("%v\n%+v, want\n%+v", r.wrong, back, j)
		}
	}
}

// A job within JSON is read as strictly as one of a file, and has the same digest.
func TestJSON(t *testing.T) {
	var got struct{ Job *Job }
	object, err := json.Marshal(map[string]any{"job": parse(t, first)})
	if err != nil {
		t.Fatal(err)
	}
	err = json.Unmarshal(object, &got)
	if err != nil || got.Job.Digest() != parse(t, first).Digest() {
		t.Errorf("%s: %v", object, err)
	}
	err = json.Unmarshal([]byte(`{"job": {"name": "x", "Rounds": 1}}`), &got)
	if wrong := Errors(err); len(wrong) != 1 || wrong[0].Path != "Rounds" {
		t.Error(err)
	}
}

const mistakes = `name = "no name"
rounds = 0
ronds = 3
EPSILON = 100.0
seed = -1
parties = { count = 1, drop_out = 1.0, colluders = 1.5 }
[privacy]
noise = "gausian"
epsilon = 0
Epsilon = 100.0
delta = nan
clip = "one"
bits = 7
[model]
name = "resnet"
[sum]
adversary = true
fraction_bits = 41
[training]
rate = -1
steps = [3]
[world]
drop = inf
[world.data]
rows = 20000000
[[world.link]]
latency = 5
between = "Oslo"
[time]
step_time = "soon"
[world.party]
name = "x"
[recovery]
drop_out = 0.2
`

// All mistakes of a file are told at once, each with its line and what to write.
func TestMistakes(t *testing.T) {
	_, err := Parse("bad.toml", []byte(mistakes))
	if !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	lines := map[string]int{}
	all := Errors(err)
	for _, e := range all {
		lines[e.Path] = e.Line
		if e.Reason == "" || e.Advice == "" || e.Line == 0 || e.Column == 0 || e.File != "bad.toml" {
			t.Errorf("%+v", e)
		}
	}
	want := map[string]int{"name": 1, "rounds": 2, "ronds": 3, "EPSILON": 4, "seed": 5,
		"parties.count": 6, "parties.drop_out": 6, "parties.colluders": 6, "privacy.noise": 8,
		"privacy.epsilon": 9, "privacy.Epsilon": 10, "privacy.delta": 11, "privacy.clip": 12,
		"privacy.bits": 13, "model.name": 15, "sum.adversary": 17, "sum.fraction_bits": 18,
		"training.rate": 20, "training.steps": 21, "world.drop": 23, "world.data.rows": 25,
		"world.link.0.latency": 27, "world.link.0.between": 28, "time.step_time": 30,
		"world.party": 31, "recovery.drop_out": 34}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("got %v\nwant %v", lines, want)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Line < all[i-1].Line {
			t.Errorf("line %d comes after line %d", all[i].Line, all[i-1].Line)
		}
	}
	for _, advice := range []string{"did you mean rounds?", "write parties.drop_out",
		"did you mean discrete-gaussian?", "did you mean privacy.epsilon?", "write [[world.party]]"} {
		if !strings.Contains(err.Error(), advice) {
			t.Errorf("nothing says %q:\n%v", advice, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"twice":       {"name = \"a\"\nname = \"b\"\n", "x.toml:2: "},
		"JSON twice":  {`{"name": "a", "name": "b"}`, "name: it is given twice"},
		"JSON behind": {`{"name": "a"} {}`, "after the job"},
		"deep":        {`{"name":` + strings.Repeat("[", 40), "x.toml:1: it is nested more than 16 deep"},
		"deep key":    {"name = \"a\"\n" + strings.Repeat("a.", 16) + "a = 1", "x.toml:2: it is nested more"},
		"long key":    {strings.Repeat("a", 201) + " = 1", "a key is longer than 200 characters; use"},
		"many keys":   {lines("a%d = 1\n", 2001), "x.toml:2001: it has more than 2,000 keys outside"},
		"many tables": {strings.Repeat("[[query]]\n", 100_001), "more than 100,000 keys and tables; write"},
		"many values": {"seed = [" + strings.Repeat("0,", 100_001) + "]", "more than 100,000 values; write"},
		"queries":     {strings.Repeat("[[query]]\n", 1001), "there are 1001, and 1000 is the most; divide"},
		"cut":         {`{"name": "a"`, "x.toml:1: "},
		"UTF-8":       {"name = \"\xff\"", "UTF-8"},
		"long":        {strings.Repeat("#", MaxFile+1), "megabyte"},
		"empty":       {"", "rounds: it is missing"},
	} {
		_, err := Parse("x.toml", []byte(c.text))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Of the mistakes of a long file the first hundred are told, by line, and the number of the others.
func TestLongFile(t *testing.T) {
	text := first + strings.Repeat("\n[[world.party]]\nname = \"party-1\"", 30_000)
	_, err := Parse("x.toml", []byte(text))
	all := Errors(err)
	if len(all) != 101 || all[99].Line != 208 || all[100].Reason != "and 29899 more mistakes" ||
		all[100].File != "x.toml" || all[100].Advice == "" {
		t.Errorf("%d mistakes, the last %+v", len(all), all[len(all)-1])
	}
}

// lines writes a line once for each number from 0.
func lines(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestSet(t *testing.T) {
	j := parse(t, first+"[[world.party]]\nname = \"party-1\"\n")
	for path, text := range map[string]string{"privacy.epsilon": "4", "world.party.0.rows": "100",
		"world.servers": "Oslo, Rome", "time.step_time": "5m", "sum.classical": "true",
		"world.party.0.compute": "1s,2s", "parties.count": "12", "about": "a, b"} {
		if err := j.Set(path, text); err != nil {
			t.Error(err)
		}
	}
	p := j.World.Party[0]
	if j.Privacy.Epsilon != 4 || p.Rows != 100 || len(j.World.Servers) != 2 || !j.Sum.Classical ||
		j.Time.StepTime != 5*time.Minute || len(p.Compute) != 2 || j.About != "a, b" {
		t.Errorf("%+v", j)
	}
	for path, want := range map[string]string{"epsilon": "write privacy.epsilon",
		"privacy.epsilom": "did you mean privacy.epsilon?", "world.party.1.rows": "no element",
		"world.party": "no element", "rounds": "write a whole number: 1 to 1,000,000"} {
		err := j.Set(path, "many")
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// What is set counts in place of what a text says, before the job is checked as a whole.
func TestParseSet(t *testing.T) {
	text := strings.Replace(first, "rounds = 20", "rounds = 0", 1) + "[metrics]\nshare = \"x\"\n"
	if text == first {
		t.Fatal("the job has other rounds")
	}
	j, err := Parse("x.toml", []byte(text), "rounds=7", "metrics.share=0")
	if err != nil || j.Rounds != 7 {
		t.Fatal(err)
	}
	for set, want := range map[string]string{"rounds=0": "outside", "rounds": "no value",
		"round=1": "did you mean rounds?", "parties.colluders=99": "parties.colluders"} {
		_, err := Parse("x.toml", []byte(first), set)
		if len(Errors(err)) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// Rules of more than one field: each line breaks one of them, and names it.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base, rules, _ := strings.Cut(string(b), "\n---\n")
		parse(t, base)
		for _, rule := range strings.Split(strings.TrimSpace(rules), "\n") {
			sets, want, _ := strings.Cut(rule, " -> ")
			j := parse(t, base)
			for _, set := range strings.Fields(sets) {
				path, value, _ := strings.Cut(set, "=")
				if err := j.Set(path, value); err != nil {
					t.Fatalf("%s: %v", rule, err)
				}
			}
			paths := []string{}
			for _, e := range Errors(j.Validate()) {
				paths = append(paths, e.Path)
				if e.Advice == "" {
					t.Errorf("%s: %v says nothing to do", rule, e)
				}
			}
			if got := strings.Join(paths, " "); got != want {
				t.Errorf("%s: %q, want %q", rule, got, want)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(first))
	f.Add([]byte(mistakes))
	f.Add([]byte(`{"name": "a", "parties": {"group": [{"name": "a"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := Parse("x", text)
		if err != nil {
			if len(Errors(err)) == 0 {
				t.Fatalf("%v is no ConfigError", err)
			}
			return
		}
		own, err := j.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("x", own)
		if err != nil || back.Digest() != j.Digest() {
			t.Fatalf("%v\n%s", err, own)
		}
	})
}

// What others find wrong has the line of the field, or of what it is in.
func TestMistakeOfOthers(t *testing.T) {
	j := parse(t, first)
	for path, line := range map[string]int{
		"rounds": 2, "privacy.epsilon": 5, "privacy.clip_rate": 5, "world.drop": 0,
	} {
		e := j.Mistake(path, "write 3", "%d is %s", 1, "wrong")
		if e.File != "x.toml" || e.Line != line || e.Path != path || e.Reason != "1 is wrong" {
			t.Errorf("%s: %+v", path, e)
		}
	}
	own := &Job{}
	if e := own.Mistake("rounds", "", "few"); !errors.Is(e, ErrConfig) || e.File != "" {
		t.Errorf("%+v", e)
	}
}

// What Get returns Set takes.
func TestGet(t *testing.T) {
	j := parse(t, first+"time = { step_time = \"90s\" }\nworld.servers = [\"Oslo\"]\n")
	own := &Job{}
	for path, want := range map[string]string{"rounds": "20", "model.name": "logistic",
		"privacy.epsilon": "8.0", "time.step_time": "1m30s", "world.servers": "Oslo", "seed": "",
		"parties.group": ""} {
		got := j.Get(path)
		if got != want && got != `"`+want+`"` {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if got == "" {
			continue
		}
		if err := own.Set(path, got); err != nil || own.Get(path) != got {
			t.Errorf("%s = %s: %v, %q", path, got, err, own.Get(path))
		}
	}
}

// A clone's lists of tables are its own.
func TestClone(t *testing.T) {
	j := parse(t, `name = "x"
rounds = 1
model.length = 1
parties = { drop_out = 0.3, group = [{ name = "a", count = 3 }] }
world.party = [{ name = "a", crash = [{ round = 1 }] }]
`)
	was := written(t, j)
	own := j.Clone()
	for path, text := range map[string]string{
		"parties.group.0.count": "5", "world.party.0.crash.0.at": "sign", "rounds": "7",
	} {
		if err := own.Set(path, text); err != nil {
			t.Fatal(err)
		}
	}
	if written(t, j) != was || written(t, own) == was {
		t.Errorf("%s\nand the clone:\n%s", written(t, j), written(t, own))
	}
}
