package job_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/training"
)

// settle works a job of ten parties out.
func settle(t *testing.T, more string) (*job.Job, *job.Settled) {
	t.Helper()
	if !strings.Contains(more, "parties =") && !strings.Contains(more, "parties.count") {
		more += "parties.count = 10\n"
	}
	j, err := job.Parse("job.toml", []byte("name = \"meaning\"\nrounds = 6\n"+
		"model = { name = \"softmax\", features = 4, classes = 3 }\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	var members []keyexchange.Entry
	for i := range 10 {
		seed := make([]byte, ed25519.SeedSize)
		seed[0] = byte(i + 1)
		key := ed25519.NewKeyFromSeed(seed)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party-", i+1),
			Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	s, err := j.Settle(job.Files{Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	return j, s
}

// Where no party of a round may be missing from its sum, it is said.
func TestNoneMissing(t *testing.T) {
	const none = "None of the parties of a round may be missing from its sum."
	for more, want := range map[string]bool{
		"sum.recovery = true\n":                                       true,
		"parties = { count = 10, drop_out = 0.09 }\n":                 true,
		"parties = { count = 10, drop_out = 0.1 }\n":                  false,
		"parties = { count = 10, drop_out = 0.1, per_round = 9 }\n":   true,
		"parties = { count = 10, drop_out = 0.2, per_round = 5 }\n":   false,
		"sum = { protocol = \"oneshot\", members = 4, buffer = 5 }\n": false,
		"sum = { protocol = \"oneshot\", members = 4 }\n":             true,
		"parties = { roster = \"r\", drop_out = 0.1 }\n":              false,
		"parties.roster = \"r\"\nsum.recovery = true\n":               true,
		"parties.roster = \"r\"\nsum.adversary = \"curious\"\n":       false, // all must submit
	} {
		if !strings.Contains(more, "parties") {
			more += "parties.count = 10\n"
		}
		j, err := job.Parse("job.toml", []byte("name = \"meaning\"\nrounds = 6\n"+
			"model = { name = \"softmax\", features = 4, classes = 3 }\n"+more))
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Join(j.Explain(), "\n"); strings.Contains(lines, none) != want {
			t.Errorf("%s: %v\n%s", more, want, lines)
		}
	}
}

// Where more may be missing than an adversary lets, it is said how many may.
func TestTooFew(t *testing.T) {
	for parties, wants := range map[string][]string{
		"count = 3, drop_out = 0.34": {"lets 2 of 3 parties make a sum", "0 colluders a sum takes 3",
			"; allow none (sum.recovery = true, and no drop_out) to be missing, or have 4 parties, or " +
				"write sum.adversary = \"curious\""},
		"count = 10, drop_out = 0.4, colluders = 3": {"3 colluders a sum takes 8",
			"; allow at most 2 of them to be missing, or write parties.colluders = 0, or write " +
				"sum.adversary = \"curious\""},
		"count = 3, drop_out = 0.34 }\nsum = { adversary = \"semi-malicious\"": {
			"allow none (sum.recovery = true, and no drop_out) to be missing, or have 4 parties, or write " +
				"sum.adversary = \"curious\""},
	} {
		j, err := job.Parse("job.toml", []byte("name = \"few\"\nrounds = 1\nmodel = { name = "+
			"\"softmax\", features = 4, classes = 3 }\nparties = { "+parties+" }\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = j.Settle(job.Files{Roster: job.RosterOf(t, j.Parties.Count)})
		if err == nil {
			t.Errorf("%s is allowed", parties)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: nothing says %q: %v", parties, want, err)
			}
		}
	}
}

// Noise that does not fit the ring names the bits.
func TestNoRoom(t *testing.T) {
	j, err := job.Parse("job.toml", []byte(`name = "narrow"
rounds = 6
parties = { count = 5, drop_out = 0.3, colluders = 1 }
model.length = 1000
privacy = { noise = "discrete-gaussian", epsilon = 0.01, clip = 100.0, bits = 8 }
`))
	if err != nil {
		t.Fatal(err)
	}
	var c *job.ConfigError
	if _, err := j.Settle(job.Files{Roster: job.RosterOf(t, 5)}); !errors.As(err, &c) ||
		c.Path != "privacy.bits" {
		t.Errorf("8 bits: %v", err)
	}
}

// What front ends once said differently has one meaning.
func TestOneMeaning(t *testing.T) {
	is := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	_, s := settle(t, "")
	is("sums without a word of recovery", s.Config(1).Recovery == nil, true)
	is("and their fewest parties", s.MinSurvivors(), 10)
	is("local work without a word", s.Job().Training.Epochs, 1)
	is("and no steps", s.Job().Training.Steps, 0)

	_, s = settle(t, "sum.recovery = true\n")
	is("recovery without drop_out", s.Config(1).Recovery.MinSurvivors, 10)
	_, s = settle(t, "parties = { count = 10, drop_out = 0.2, colluders = 2 }\n")
	is("drop_out", s.Config(1).Recovery.MinSurvivors, 8)
	is("colluders of sessions", s.Config(1).Colluders, 2)

	noise := "privacy = { noise = \"discrete-gaussian\", epsilon = 4.0, clip = 1.0 }\n"
	_, s = settle(t, "parties.colluders = 2\n"+noise)
	is("honest shares", s.Round().Shares, 8)
	is("width of the ring with noise", s.Layout()[0].Bits, 32)

	for rule, sums := range map[string]int{"fedavg": 6, "fedga": 12,
		"scaffold\", variates = \"fresh": 12} {
		_, s = settle(t, "training = { rule = \""+rule+"\" }\n")
		is("sums of 6 rounds of "+rule, s.Rounds(), sums)
	}

	// One encoding without noise, whoever sums: fixed-point, of this many places.
	_, s = settle(t, "")
	trained, err := training.Of(s)
	if err != nil {
		t.Fatal(err)
	}
	is("the training's submission", fmt.Sprint(trained.Layout()), fmt.Sprint(s.Layout()))
	values, err := s.Encode(job.BroadcastDigest(nil), job.Update[float64]{Samples: 1, Trained: true,
		Vector: []float64{0.5, -2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	is("half of a unit", values[0][0], uint64(1)<<19)
	is("and minus two", values[0][1], uint64(1)<<s.Layout()[0].Bits-1<<21)

	// Neither time nor world is in a digest, and comments and order are not.
	j, s := settle(t, "")
	other, same := settle(t, "# a comment\ntime = { pace = \"1h\", step_time = \"9s\" }\n"+
		"world = { drop = 0.0, seed = 9, data = { set = \"adult\" } }\nparties.drop_out = 0.0\n")
	is("Job.Digest", other.Digest(), j.Digest())
	is("Settled.Digest", same.Digest(), s.Digest())
	is("the number of parties is in both", s.Job().Digest(), j.Digest())

	// Where a roster alone counts the parties, the job is the same before it is settled and after,
	// and another than one that says how many there are.
	named, counted := settle(t, "parties = { roster = \"roster.txt\" }\n")
	is("the parties", counted.Job().Size(), 10)
	is("the digest without a number", counted.Job().Digest(), named.Digest())
	var differs *job.DifferenceError
	if err := counted.Job().Compare(s.Job().Greeting(1 << 20)); !errors.As(err, &differs) ||
		differs.Field != "parties.count" || counted.Digest() == s.Digest() {
		t.Errorf("Compare with a job that says how many parties there are: %v", err)
	}
	said := counted.Job().Clone()
	if said.Parties.Count = 11; said.Digest() == named.Digest() {
		t.Error("a number that is written is in no digest")
	}
}
