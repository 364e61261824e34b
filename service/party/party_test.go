package party

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
)

// declare declares a federation of ten parties, with more lines at the top of its file and under
// [privacy].
func declare(t *testing.T, privacy, more string) *federation.Federation {
	t.Helper()
	var roster strings.Builder
	for i := range 10 {
		seed := make([]byte, 32)
		seed[0] = byte(i)
		key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		fmt.Fprintf(&roster, "p%d %x\n", i, []byte(key))
	}
	f, err := federation.New(federation.Files{Text: []byte(`name = "p"
parties.roster = "r"
rounds = 4
` + more + `
[[model.tensor]]
name = "w"
shape = [3]
[[model.tensor]]
name = "head.w"
shape = [2]
[privacy]
clip = 1.0
` + privacy), Roster: []byte(roster.String())})

	if err != nil {
		t.Fatal(err)
	}
	return f
}

const (
	noise  = "noise = \"discrete-gaussian\"\nepsilon = 8.0\ndelta = 1e-5"
	curses = "parties.drop_out = 0.2\nparties.colluders = 1"
	weakly = `sum = { adversary = "curious", recovery = true }`
)

// What is weaker than the policy is refused, with the reason.
func TestPolicy(t *testing.T) {
	strong, weak := declare(t, noise, curses), declare(t, "", weakly)
	older := fewBefore(t)
	multiplied := declare(t, "noise = \"discrete-gaussian\"\nmultiplier = 0.1", curses)
	recorded := &federation.Federation{}
	*recorded = *strong
	recorded.Job = strong.Job.Clone()
	recorded.Job.Privacy.Unit = "record"
	for _, c := range []struct {
		policy Policy
		f      *federation.Federation
		want   string // empty: it is within
	}{
		{Policy{}, weak, ""},
		{Policy{LeastHonest: 7, Colluders: 1, Adversary: "cheating", MaxEpsilon: 8, MaxDelta: 1e-5,
			MaxBytesRound: 1000}, strong, ""},
		{Policy{LeastHonest: 8}, strong, "least_honest"},
		{Policy{Colluders: 2}, strong, "colluders"},
		{Policy{Adversary: "cheating"}, weak, "made for a curious server"},
		{Policy{Adversary: "semi-malicious"}, weak, "made for a curious server"},
		{Policy{MaxEpsilon: 100}, weak, "no noise"},
		{Policy{MaxEpsilon: 7.9}, strong, "max_epsilon"},
		{Policy{MaxEpsilon: 100}, multiplied, "guarantees no epsilon"},
		{Policy{MaxEpsilonRound: 1}, strong, "a round spends"},
		{Policy{MaxEpsilonRound: 1}, multiplied, "a round spends"},
		{Policy{MaxDelta: 1e-6}, strong, "max_delta"},
		{Policy{MaxEpsilon: 8}, recorded, "of each record of a party"},
		{Policy{MaxEpsilon: 8, Unit: "record"}, recorded, ""},
		{Policy{MaxEpsilon: 8, Unit: "record"}, strong, ""},
		{Policy{Keep: []string{"head.*"}}, strong, "head.w"},
		{Policy{Keep: []string{"["}}, strong, "keep"},
		{Policy{MaxBytesRound: 10}, strong, "max_bytes_round"},
		{Policy{JobDigest: strong.JobDigest}, strong, ""},
		{Policy{JobDigest: strong.JobDigest}, weak, weak.JobDigest},
		{Policy{JobDigest: strong.JobDigest}, older, "an earlier release"},
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
		"least_honest = 3\nkeep = [\"a*\"]":                 "",
		"least_honst = 3":                                   "did you mean least_honest?",
		"colluders = 1\nadversary = \"cheeting\"":           ":2: there is no adversary",
		"max_epsilon = \"3\"":                               "a TOML string, and takes a number",
		"max_epsilon = 1.0\nMAX_EPSILON = 9.0":              "MAX_EPSILON",
		"Least_Honest = 3":                                  `write "least_honest"`,
		"from_hour = 24":                                    "hours",
		"max_epsilon = nan":                                 "max_epsilon = NaN",
		"max_epsilon_round = -0.5":                          "max_epsilon_round = -0.5",
		"max_delta = -1.0":                                  "max_delta",
		"unit = \"patient\"":                                "unit",
		"least_honest = -1":                                 "least_honest = -1",
		"colluders = -1":                                    "colluders = -1",
		"max_bytes_round = -1":                              "max_bytes_round = -1",
		"keep = [\"[\"]":                                    "not a pattern",
		"job_digest = \"" + strings.Repeat("0a", 32) + "\"": "",
		"job_digest = \"" + strings.Repeat("0A", 32) + "\"": "lower case",
		"job_digest = \"0a\"":                               "64 hexadecimal digits",
		"Job_Digest = \"0a\"":                               `write "job_digest"`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadPolicy(name)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && (!errors.Is(err, ErrPolicy) || strings.Contains(err.Error(), "federation")) {
			t.Errorf("%q is said of a federation: %v", text, err)
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

// A stored state opens for its key, party and federation only, and an older copy is found.
func TestStore(t *testing.T) {
	folder := t.TempDir()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	identity := ed25519.NewKeyFromSeed(make([]byte, 32))
	open := func(key *keyexchange.SealKey, id string) *store {
		t.Helper()
		s, err := openStore(folder, key, kindParty, id, identity)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(key, "f")
	if _, err := openStore(folder, key, kindParty, "f", identity); !errors.Is(err, ErrLocked) {
		t.Errorf("a second process: %v", err)
	}
	if err := s.save(&saved{Round: 1}); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(filepath.Join(folder, "state"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.save(&saved{Round: 2}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(key, "f")
	if v, err := s.load(false); err != nil || v.Round != 2 {
		t.Errorf("%+v %v", v, err)
	}
	s.Close()
	s = open(key, "another")
	if _, err := s.load(false); !errors.Is(err, ErrStored) {
		t.Errorf("for another federation: %v", err)
	}
	s.Close()
	s = open(new(keyexchange.SealKey), "f")
	if _, err := s.load(false); !errors.Is(err, ErrStored) {
		t.Errorf("under another key: %v", err)
	}
	s.Close()
	if err := os.WriteFile(filepath.Join(folder, "state"), older, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(key, "f")
	defer s.Close()
	if _, err := s.load(false); !errors.Is(err, ErrStored) || !errors.Is(err, hushsum.ErrOldState) {
		t.Errorf("an older copy: %v", err)
	}
}

// A kill between any two writes of the state and its counter leaves the newest state, and once
// that has opened none before it opens. Temporary files of the killed are gone.
func TestStoreKilled(t *testing.T) {
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	identity := ed25519.NewKeyFromSeed(make([]byte, 32))
	folder := t.TempDir()
	open := func() (*store, *saved, error) {
		t.Helper()
		s, err := openStore(folder, key, kindParty, "f", identity)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		v, err := s.load(false)
		return s, v, err
	}
	file := func(name string) string { return filepath.Join(folder, name) }
	s, v, err := open()
	if v != nil || err != nil {
		t.Fatal(err)
	}
	for round := range uint64(3) {
		if err := s.save(&saved{Round: round}); err != nil {
			t.Fatal(err)
		}
	}
	newest, err := os.ReadFile(file(fileState))
	if err != nil {
		t.Fatal(err)
	}
	// The counter of the last one was not written, and of each file a half is left.
	if err := s.counter.Advance(2); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fileState, fileCounter, fileVariates, fileSubmission, "work"} {
		if err := os.WriteFile(file(name+".5.new"), newest, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	s, v, err = open()
	if err != nil || v.Round != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	if n, err := s.counter.Value(); n != 3 || err != nil {
		t.Errorf("what is sent from here on follows from number 3, the counter has %d, %v", n, err)
	}
	left, err := filepath.Glob(file("*.new"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "work.5.new" {
		t.Errorf("left %q, %v", left, err)
	}
}

// A counter that knows of a state which is not there, or of a newer one, ends Run before
// anything is sent; the party's word that the state is lost begins anew, with the rounds and
// the number that it says.
func TestLostState(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRunning(t, func(_ http.ResponseWriter, q *http.Request) {
		t.Errorf("asked for %s", q.URL.Path)
		cancel()
	})
	p := r.Party
	p.Folder = t.TempDir()
	var err error
	if p.Key, err = keyexchange.GenerateSealKey(nil); err != nil {
		t.Fatal(err)
	}
	s, err := openStore(p.Folder, p.Key, kindParty, p.Federation.ID, p.Identity)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.counter.Advance(7); err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, err = p.Run(ctx)
	if !errors.Is(err, hushsum.ErrOldState) || !errors.Is(err, ErrStored) ||
		!strings.Contains(err.Error(), "--spent") || !strings.Contains(err.Error(), p.Folder) ||
		!strings.Contains(err.Error(), p.Federation.Job.Name) {
		t.Errorf("without a state: %v", err)
	}
	for _, c := range []struct {
		spent int
		least uint64
		field string
	}{{-1, 1, "Spent"}, {5, 1, "Spent"}, {1, 0, "LeastNumber"}, {1, 1 << 62, "LeastNumber"}} {
		p.Spent, p.LeastNumber = c.spent, c.least
		var field *hushsum.ConfigError
		if _, err := p.Run(ctx); !errors.As(err, &field) || field.Path != c.field {
			t.Errorf("spent %d, from %d on: %v", c.spent, c.least, err)
		}
	}
	r.Spent, r.LeastNumber, r.Key = 3, 9, p.Key
	for life := range 2 { // in the second the state knows it, and the word counts no more
		if r.store, err = openStore(p.Folder, p.Key, kindParty, p.Federation.ID, p.Identity); err != nil {
			t.Fatal(err)
		}
		if err := r.load(); err != nil {
			t.Fatal(err)
		}
		guard := r.party.Guard()
		if guard.Count() != 3 || guard.Last() != 3 || r.party.Least() != 9 {
			t.Errorf("%d rounds are spent, %d is the least number", guard.Count(), r.party.Least())
		}
		if r.ask().Round != 0 {
			t.Errorf("it tells of round %d, which it only may have submitted in", r.ask().Round)
		}
		if n, err := r.store.counter.Value(); n != 8 || err != nil {
			t.Errorf("life %d: the counter is %d, %v", life, n, err)
		}
		r.store.Close()
		r.Spent, r.LeastNumber = 0, 0
	}
}

// A training command in the shell: what it leaves is the update, and what goes wrong is an
// absence with a reason.
func TestCommand(t *testing.T) {
	spec := &tensor.Spec{DType: tensor.Float32, Tensors: []tensor.Tensor{{Name: "w", Shape: []int{2}}}}
	file, err := spec.Append(nil, []float64{1, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &Work{Round: 3, Spec: spec, Model: []float64{1, 2}, File: file, Metrics: true}
	folder := t.TempDir()
	run := func(line string) (*Update, error) {
		c := &Command{Line: line, Folder: folder, Limit: time.Minute}
		if strings.HasPrefix(line, "sleep") {
			c.Limit = time.Second
		}
		return c.Train(context.Background(), w)
	}
	u, err := run(`cd "$HUSHSUM_WORK" && grep -q 3 round.json && cp model.safetensors update.safetensors &&
		echo '{"loss": 0.5, "accuracy": 0.75}' > metrics.json`)
	if err != nil || u.Vector[1] != 2 || u.Loss != .5 || u.Accuracy != .75 {
		t.Errorf("an update: %+v %v", u, err)
	}
	const leave = `cp "$HUSHSUM_WORK"/model.npz "$HUSHSUM_WORK"/update.npz; cd "$HUSHSUM_WORK"; `
	for line, want := range map[string]string{
		"exit 3": "exit status 3",
		"true":   "left none of", // the update of the round before is gone
		`echo x > "$HUSHSUM_WORK"/update.safetensors`:    "safetensors form",
		`echo PKx > "$HUSHSUM_WORK"/update.npz`:          "safetensors form",
		`touch "$HUSHSUM_WORK"/trained.npz`:              "safetensors form",
		`mkdir "$HUSHSUM_WORK"/update.npz`:               "is a directory",
		"sleep 600":                                      "longer than 1s",
		leave:                                            "it left no metrics.json",
		leave + `echo '{"loss": "x"}' > metrics.json`:    "metrics.json: json",
		leave + `echo '{"loss": 0.1}' > metrics.json`:    `both "loss" and "accuracy"`,
		leave + `head -c 70000 /dev/zero > metrics.json`: "70000 bytes",
		leave + `mkdir metrics.json`:                     "is a directory",
	} {
		_, err := run(line)
		if !errors.Is(err, ErrTraining) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	w.Metrics = false
	u, err = run(`cp "$HUSHSUM_WORK"/model.safetensors "$HUSHSUM_WORK"/trained.safetensors`)
	if err != nil || u.Vector[0] != 0 || u.Vector[1] != 0 || u.Loss != 0 {
		t.Errorf("trained weights: %+v %v", u, err)
	}
	w.Coins = &job.Coins{Count: 9, Rate: 0.25, Most: 8, Clip: 2}
	u, err = run(`cd "$HUSHSUM_WORK"; cp model.npz update.npz; grep -q '"rate":0.25,"most":8' round.json`)
	if err != nil || u.Vector[0] != 1 {
		t.Errorf("a sum over records: %+v %v", u, err)
	}
	if _, err = run(`cp "$HUSHSUM_WORK"/model.npz "$HUSHSUM_WORK"/trained.npz`); !errors.Is(err,
		ErrTraining) || !strings.Contains(err.Error(), "not a sum of the gradients") {
		t.Errorf("weights in place of a sum over records: %v", err)
	}
	w.Coins = nil
	u, err = run(`cp "$HUSHSUM_WORK"/model.npz "$HUSHSUM_WORK"/update.npz`)
	if err != nil || u.Vector[0] != 1 || u.Vector[1] != 2 {
		t.Errorf("an update as .npz: %+v %v", u, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(nil)
	c := &Command{Line: "sleep 600", Folder: folder, Limit: time.Minute}
	if _, err := c.Train(ctx, w); !errors.Is(err, context.Canceled) {
		t.Errorf("the round went on: %v", err)
	}
}

// Addresses and fingerprints that cannot be used.
func TestNewServer(t *testing.T) {
	identity := ed25519.NewKeyFromSeed(make([]byte, 32))
	for address, ok := range map[string]bool{
		"https://a.example:8443":              true,
		"https://a.example,https://b.example": true,
		"http://127.0.0.1:1":                  true,
		"http://a.example":                    false,
		"a.example":                           false,
		"ftp://a.example":                     false,
		"https://a.example/path":              false,
	} {
		if _, err := NewServer(address, "", identity); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := NewServer("https://a.example", "12", identity); !errors.Is(err, ErrServer) ||
		!strings.Contains(err.Error(), `party: "12" is no fingerprint`) {
		t.Errorf("a short fingerprint: %v", err)
	}
}
