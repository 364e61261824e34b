package old

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

const federation = `name = "Four & more"
rounds = 8
[data]
set = "digits"
rows = 150
[training]
algorithm = "fresh"
[sum]
kind = "clear"
[recovery]
[privacy]
noise = "continuous-laplace"
epsilon = 1.0
alpha = 1.0
colluders = 1
[[link]]
between = ["Oslo", "server"]
latency = "300ms"
[[party]]
name = "client 1"
place = "Oslo"
count = 3
[[party]]
name = "Bergen"
epsilon = 0.1
compute = ["10ms", "6ms"]
[[party.crash]]
round = 2
[[party]]
name = "Hamar"
`

// What a scenario meant stands in the job, also where defaults differ.
func TestScenario(t *testing.T) {
	if !IsScenario([]byte(federation)) || IsScenario([]byte("name = \"x\"\nworld.data.rows = 3\n")) {
		t.Error("scenarios are not told from jobs")
	}
	j, notes, err := Scenario("x.toml", []byte(federation))
	if err != nil {
		t.Fatal(err)
	}
	want := `name = "Four---more"
rounds = 8

[parties]
drop_out = 0.2
colluders = 1

[model]
name = "softmax"

[training]
steps = 50
rate = 1.0
submit = "weights"
restart = true

[time]
step_time = "1000h0m0s"

[world.data]
set = "digits"
rows = 150
draw = "fixed"

[world]
fidelity = "ring"

[world.reference]
law = "continuous-laplace"
epsilon = 1.0
alpha = 1.0

[[parties.group]]
name = "client-1"
count = 3

[[parties.group]]
name = "Bergen"

[[parties.group]]
name = "Hamar"

[[world.link]]
between = ["Oslo", "server"]
latency = "300ms"

[[world.party]]
name = "client-1"
place = "Oslo"

[[world.party]]
name = "Bergen"
compute = ["10ms", "6ms"]
reference_epsilon = 0.1

[[world.party.crash]]
round = 2
`
	text, err := j.MarshalText()
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
	if len(notes) != 10 {
		t.Errorf("%d notes: %q", len(notes), notes)
	}
}

// With noise for release parties submit updates, and what a job has to say is said.
func TestScenarioWithNoise(t *testing.T) {
	text := strings.NewReplacer("continuous-laplace", "skellam", "alpha = 1.0", "bits = 20").
		Replace(federation)
	j, _, err := Scenario("x.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if p := j.Privacy; p.Noise != "skellam" || p.Clip != 1 || p.Bits != 20 || p.Epsilon != 0.1 ||
		j.Training.Submit != "" || !j.Training.Restart {
		t.Errorf("%+v", j)
	}
}

func TestScenarioMistakes(t *testing.T) {
	for _, test := range []struct {
		from, to string
		line     int
		want     string
	}{
		{"rounds = 8", "rouds = 8", 2, "there is no key rouds"},
		{"rounds = 8", "rounds = 8\nRounds = 9", 3, "did you mean rounds?"},
		{`"300ms"`, `"soon"`, 18, "soon"},
		{"rounds = 8", "rounds = 0", 0, "rounds: it is missing"},
		{"[data]", "[data", 3, ""},
	} {
		_, _, err := Scenario("x.toml", []byte(strings.Replace(federation, test.from, test.to, 1)))
		all := job.Errors(err)
		if len(all) == 0 || all[0].Line != test.line || all[0].File != "x.toml" ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.to, err)
		}
	}
}

// Whatever the text, it is a job or a list of what is wrong.
func FuzzScenario(f *testing.F) {
	f.Add([]byte(federation))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, _, err := Scenario("fuzz.toml", text)
		if err == nil {
			if err := j.Validate(); err != nil {
				t.Fatal(err)
			}
			return
		}
		for _, e := range job.Errors(err) {
			if e.File == "fuzz.toml" && e.Reason != "" {
				return
			}
		}
		t.Fatalf("%q", err)
	})
}
