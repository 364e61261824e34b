package job_test

import (
	"testing"

	"github.com/hushsum/hushsum/job"
)

// Advice names numbers that the job may have: of one number that number, of none another way.
func TestAdviceCanBeFollowed(t *testing.T) {
	const model, bands = "[model]\nlength = 3\n",
		"[model]\nname = \"softmax\"\n[privacy]\nnoise = \"discrete-gaussian\"\nclip = 1.0\n" +
			"multiplier = 2.0\nfactorise = 9\n"
	const sparse = "[sum]\nsparse = true\nrecovery = true\nadversary = \"curious\"\ndegree = 8\n"
	const buffer = "[sum]\nprotocol = \"oneshot\"\nbuffer = 2\n"
	for _, c := range []struct{ text, path, advice string }{
		{"rounds = 1\nparties.count = 10\n" + bands, "privacy.factorise", "leave it out"},
		{"rounds = 2\nparties.count = 10\n" + bands, "privacy.factorise", "write 2, or leave it out"},
		{"rounds = 3\nparties.count = 10\n" + bands, "privacy.factorise",
			"write 2 to 3, or leave it out"},
		{"rounds = 30\nparties.count = 2\n" + bands, "privacy.factorise", "write 2, or leave it out"},
		{"rounds = 3\nparties.count = 4\nparties.colluders = 3\n" + model, "parties.colluders",
			"write 0 to 2"},
		{"rounds = 3\nparties.count = 2\nparties.colluders = 1\n" + model, "parties.colluders",
			"write 0"},
		{"rounds = 3\nparties.count = 2\nparties.per_round = 3\n" + model, "parties.per_round",
			"write 2, or write 0 for all"},
		{"rounds = 3\nparties.roster = \"r.txt\"\nparties.per_round = 1\n" + model,
			"parties.per_round", "write 2 to 1,000,000, or write 0 for all"},
		{"rounds = 1\nparties.count = 2\nparties.participations = 2\n" + model,
			"parties.participations", "write 1, or leave it out"},
		{"rounds = 3\nparties = { count = 9, per_round = 9, participations = 1 }\n" + model,
			"parties.participations", "write 3, or have fewer rounds or fewer parties a round"},
		{"rounds = 3\nparties = { count = 9, per_round = 4, participations = 1 }\n" + model,
			"parties.participations", "write 2 to 3, or have fewer rounds or fewer parties a round"},
		{"rounds = 3\nparties = { count = 9, drop_out = 0.4 }\ntime.begin_with = 5\n" + model,
			"time.begin_with", "write 6 to 9, or write 0 for as many as a sum takes"},
		{"rounds = 3\nparties.count = 9\ntime.begin_with = 10\n" + model, "time.begin_with",
			"write 9, or write 0 for as many as a sum takes"},
		{"rounds = 3\nparties.count = 2\n" + sparse + model, "sum.degree", "leave it out"},
		{"rounds = 3\nparties.count = 3\n" + sparse + model, "sum.degree", "write 2, or leave it out"},
		{"rounds = 3\nparties.count = 5\n" + sparse + model, "sum.degree",
			"write 2 to 4, or leave it out"},
		{"rounds = 3\nparties = { count = 3, colluders = 1 }\n" + buffer + model, "sum.buffer",
			"write 3, and allow that many by parties.drop_out"},
		{"rounds = 3\nparties = { count = 3, colluders = 2 }\n" + buffer + model, "sum.buffer", ""},
		{"rounds = 1\nparties.count = 3\n" + model + "[world]\nfidelity = \"ring\"\nlost_rounds = 2\n",
			"world.lost_rounds", "write 0"},
		{"rounds = 1\nparties.count = 3\n" + model + "[[world.party]]\nname = \"party-1\"\njoins = 2\n",
			"world.party.0.joins", "write 1"},
	} {
		_, err := job.Parse("job.toml", []byte("name = \"x\"\n"+c.text))
		advice := ""
		for _, e := range job.Errors(err) {
			if e.Path == c.path {
				advice = e.Advice
			}
		}
		if err == nil || advice != c.advice {
			t.Errorf("%s\nadvises %q, want %q: %v", c.text, advice, c.advice, err)
		}
	}
}
