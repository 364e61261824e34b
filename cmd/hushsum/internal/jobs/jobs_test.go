package jobs

import (
	"strings"
	"testing"
)

// What a job declares is said in words, none of them of what it does not have.
func TestWords(t *testing.T) {
	const base = "name = \"a\"\nrounds = 1\n"
	for _, c := range []struct {
		text      string
		want, not []string
	}{
		{"parties.count = 3\nmodel.length = 1",
			[]string{"3 parties bring vectors of 1 number, in 1 round.",
				"All parties of a round must submit", "There is no noise"},
			[]string{"rate", "epsilon 0", "committee"}},
		{"parties = { count = 9, drop_out = 0.25, colluders = 1, per_round = 7 }\n" +
			"model.name = \"softmax\"\ntraining.steps = 50",
			[]string{"7 of them are drawn", "25 % of the parties of a round may be missing",
				"a server that cheats with any 1 party", "makes 50 steps, all rows at a time"},
			[]string{"pass"}},
		{"parties.roster = \"r.txt\"\nmodel.file = \"m.npz\"\n" +
			"sum = { recovery = true, adversary = \"curious\" }",
			[]string{"The parties of the roster improve the model of m.npz", "It names r.txt, m.npz",
				"follows the protocol", "None of the parties of a round may"},
			[]string{"In a round"}},
		{"parties.count = 20\nmodel.length = 2\nsum = { protocol = \"oneshot\", classical = true }\n" +
			"privacy = { noise = \"discrete-gaussian\", multiplier = 2.0, clip = 3.0 }",
			[]string{"2 of the 13 members of the committee", "quantum",
				"multiplier 2; no epsilon is promised"},
			[]string{"at most epsilon"}},
		{"parties.count = 20\nmodel.length = 2\nworld.drop = 0.125\nparties.drop_out = 0.2\n" +
			"[[model.tensor]]", nil, nil},
		// Valid but for how many there are.
		{"parties = { count = 10, drop_out = 0.4, colluders = 3 }\nmodel.length = 1", nil, nil},
		{"parties = { count = 10, drop_out = 0.2, colluders = 3 }\nmodel.length = 1",
			[]string{"Up to 20 % of the parties may be missing"}, nil},
	} {
		r := Check("x", []byte(base+c.text), nil)
		text := strings.Join(r.Plan, " ")
		if c.want == nil {
			if r.Valid || len(r.Mistakes) == 0 || r.Digest != "" {
				t.Errorf("%+v is valid", r)
			}
			continue
		}
		if !r.Valid {
			t.Errorf("%+v", r.Mistakes)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %q", want, text)
			}
		}
		for _, not := range c.not {
			if strings.Contains(text, not) {
				t.Errorf("%q is in %q", not, text)
			}
		}
	}
}
