package federation_test

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/federation"
)

// A federation goes on with what its job has written, and what follows from that follows from what
// an operator changes: noise by another clip, a committee of another size, rules of the server.
func TestContinued(t *testing.T) {
	trained := `name = "trained"
rounds = 6
seed = 3
parties = { roster = "roster.txt", drop_out = 0.2 }
model = { name = "logistic", features = 5, classes = 2 }
training.rate = 0.1
server.rule = "fedadam"
`
	oneshot := `name = "one-2"
rounds = 3
parties = { roster = "roster.txt", drop_out = 0.2 }
sum = { protocol = "oneshot", committee = "c.txt", buffer = 4 }
model.length = 4
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
`
	started := "[time]\nstart = 2026-12-01T20:00:00Z\n"
	for _, c := range []struct {
		name, text     string
		edit, by, want string // what is changed, and what the job then has
	}{
		{"tensors", strings.Replace(good, "[time]\n", started, 1), "[model]\n", "[model]\n",
			`name = "study-8"
rounds = 4
[parties]
roster = "roster.txt"
colluders = 1
drop_out = 0.2
[privacy]
noise = "discrete-gaussian"
epsilon = 8.0
delta = 1e-5
clip = 1.0
[model]
file = "model.safetensors"
dtype = "float32"
personal = ["bn*"]
[server]
rule = "fedadam"
rate = 0.1
[metrics]
share = 0.2
[time]
step_time = "5s"
`},
		{"training", trained, "fedadam", "fedavg", `name = "trained-2"
rounds = 6
seed = 3
parties = { roster = "roster.txt", drop_out = 0.2 }
model = { name = "logistic", features = 5, classes = 2, file = "model.safetensors" }
training.rate = 0.1
server.rule = "fedavg"
`},
		{"another committee", oneshot, "buffer = 4", "buffer = 5", `name = "one-3"
rounds = 3
parties = { roster = "roster.txt", drop_out = 0.2 }
sum = { protocol = "oneshot", committee = "committee.txt", buffer = 5 }
model.file = "model.safetensors"
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
`},
		{"pairwise sums", oneshot, "buffer = 4\ncommittee = \"committee.txt\"\nprotocol = \"oneshot\"",
			"", ""},
	} {
		files := federation.Files{Text: []byte(c.text), Roster: rosterOf(t, 10)}
		if strings.Contains(c.text, "committee") {
			files.Committee = committeeOf(t, 15)
		}
		f, err := federation.New(files)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		text, err := f.Continued(false)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		edited := strings.Replace(string(text), c.edit, c.by, 1)
		files.Text, files.Roster = []byte(edited), rosterOf(t, 11)
		if files.Committee != nil {
			files.Committee = committeeOf(t, 17)
		}
		if files.Model, err = f.Spec.Append(nil, make([]float64, f.Spec.Len()), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := federation.New(files); err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, edited)
		}
		if c.want == "" {
			continue
		}
		got, err := job.Parse("", files.Text)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		want, err := job.Parse("", []byte(c.want))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got.Digest() != want.Digest() {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, edited, c.want)
		}
		has, err := got.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := want.MarshalText(); err != nil || string(b) != string(has) {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, has, b)
		}
	}
}
