package consent

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
)

// declare declares a job of ten parties, with more lines at the top of its file and under
// [privacy].
func declare(t *testing.T, privacy, more string) *job.Settled {
	t.Helper()
	s, err := settle(`name = "p"
parties.roster = "r"
rounds = 4
`+more+`
[[model.tensor]]
name = "w"
shape = [3]
[[model.tensor]]
name = "head.w"
shape = [2]
[privacy]
clip = 1.0
`+privacy, 10, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func digestOf(s *job.Settled) string {
	digest := s.Declared()
	return hex.EncodeToString(digest[:])
}

const (
	curses = "parties.drop_out = 0.2\nparties.colluders = 1"
	weakly = `sum = { adversary = "curious", recovery = true }`
)

// What is weaker than the policy is refused, with the reason.
func TestPolicy(t *testing.T) {
	strong, weak := declare(t, noise, curses), declare(t, "", weakly)
	multiplied := declare(t, "noise = \"discrete-gaussian\"\nmultiplier = 0.1", curses)
	recorded := ofRecords(t)
	for _, c := range []struct {
		policy Policy
		f      *job.Settled
		want   string // empty: it is within
	}{
		{Policy{}, weak, ""},
		{Policy{LeastHonest: 7, Colluders: 1, Adversary: "cheating", MaxEpsilon: 8, Delta: 1e-5,
			MaxBytesRound: 1000}, strong, ""},
		{Policy{LeastHonest: 8}, strong, "least_honest"},
		{Policy{Colluders: 2}, strong, "colluders"},
		{Policy{Adversary: "cheating"}, weak, "made for a curious server"},
		{Policy{Adversary: "semi-malicious"}, weak, "made for a curious server"},
		{Policy{Adversary: "cheating"}, declare(t, "", `sum.adversary = "curious"`), ""}, // all submit
		{Policy{MaxEpsilon: 100}, weak, "no noise"},
		{Policy{MaxEpsilon: 7.9}, strong, "max_epsilon"},
		{Policy{MaxEpsilon: 30}, multiplied, "it may spend epsilon"},
		{Policy{MaxEpsilon: 8, Delta: 1e-6}, strong, "at delta 1e-06, max_epsilon is 8"},
		{Policy{MaxEpsilon: 8, Unit: "records of each patient"}, strong, "each patient's records at a"},
		{Policy{MaxEpsilonRound: 1}, strong, "a round may spend"},
		{Policy{MaxEpsilonRound: 1}, multiplied, "a round may spend"},
		{Policy{MaxEpsilon: 8}, recorded, "for each record of a party, and the policy's for each p"},
		{Policy{MaxEpsilon: 8, Unit: "record"}, recorded, ""},
		{Policy{MaxEpsilon: 8, Unit: "record"}, strong, "for each record it may spend epsilon"},
		{Policy{MaxEpsilon: 30, Unit: "record"}, strong, ""},
		{Policy{Keep: []string{"head.*"}}, strong, "head.w"},
		{Policy{Keep: []string{"["}}, strong, "keep"},
		{Policy{MaxBytesRound: 10}, strong, "max_bytes_round"},
		{Policy{JobDigest: digestOf(strong)}, strong, ""},
		{Policy{JobDigest: digestOf(strong)}, weak, digestOf(weak)},
	} {
		err := c.policy.Check(c.f)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.policy, err)
		case c.want != "" && (!errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", c.policy, err, c.want)
		}
	}
}

func TestReadPolicy(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.toml")
	for text, want := range map[string]string{
		"least_honest = 3\nkeep = [\"a*\"]":       "",
		"least_honst = 3":                         "did you mean least_honest?",
		"colluders = 1\nadversary = \"cheeting\"": ":2: there is no adversary",
		"max_epsilon = \"3\"":                     "a TOML string, and takes a number",
		"max_epsilon = 1.0\nMAX_EPSILON = 9.0":    "MAX_EPSILON",
		"Least_Honest = 3":                        `write "least_honest"`,
		"from_hour = 24":                          "hours",
		"max_epsilon = nan":                       "max_epsilon = NaN",
		"max_epsilon_round = -0.5":                "max_epsilon_round = -0.5",
		"delta = -1.0":                            "delta = -1",
		"delta = nan":                             "delta = NaN",
		"\nassumes = [\"coin\"]":                  ":2: assumes: ",
		"assumes = []":                            "",
		"plan = \"fixed\"":                        "use gaussian or adds",
		"unit = \"patient\"":                      "unit",
		"least_honest = -1":                       "least_honest = -1",
		"colluders = -1":                          "colluders = -1",
		"max_bytes_round = -1":                    "max_bytes_round = -1",
		"keep = [\"[\"]":                          "not a pattern",
		"job_digest = \"" + strings.Repeat("0a", 32) + "\"": "",
		"job_digest = \"" + strings.Repeat("0A", 32) + "\"": "lower case",
		"job_digest = \"0a\"":                               "64 hexadecimal digits",
		"Job_Digest = \"0a\"":                               `write "job_digest"`,
		"\ufeffcolluders = 1":                               "",
		"\xff\xfec\x00":                                     "it is UTF-16, and not UTF-8; convert it: iconv",
		"# stra\xdfe":                                       "it is not UTF-8, but Latin-1",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadPolicy(name)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && (!errors.Is(err, ErrPolicy) || strings.Contains(err.Error(), "within")) {
			t.Errorf("%q is said of a job: %v", text, err)
		}
	}
}

// A star of the policy stands for slashes too.
func TestKept(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		kept          bool
	}{
		{"head*", "head.w", true}, {"head*", "head/w", true}, {"head/*", "head/a/b", true},
		{"*/bias", "layer/0/bias", true}, {"head", "head/w", false}, {"bn?", "bn/", true},
		{"head*", "ahead", false}, {"[", "any", true},
	} {
		if got := kept(c.pattern, c.name); got != c.kept {
			t.Errorf("%q of %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestHours(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 30, 0, 0, time.Local) }
	night := Policy{From: 20, Until: 6}
	day := Policy{From: 8, Until: 18}
	for hour := range 24 {
		if got, want := night.within(at(hour)), hour >= 20 || hour < 6; got != want {
			t.Errorf("at night, %d h: %v", hour, got)
		}
		if got, want := day.within(at(hour)), hour >= 8 && hour < 18; got != want {
			t.Errorf("by day, %d h: %v", hour, got)
		}
		if all := new(Policy); !all.within(at(hour)) {
			t.Errorf("always, %d h", hour)
		}
	}
}
