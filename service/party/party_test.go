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

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
	stores "github.com/hushsum/hushsum/store"
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

// A stored state opens for its key, party and federation only, and an older copy is found.
func TestStore(t *testing.T) {
	folder := t.TempDir()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	open := func(key *keyexchange.SealKey, id string) (*stores.Vault, []byte, error) {
		t.Helper()
		return opened(t, ownerOf(folder, id, key))
	}
	s, state, err := open(key, "f")
	if state != nil || err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(key, "f"); !errors.Is(err, ErrLocked) {
		t.Errorf("a second process: %v", err)
	}
	if err := s.Save([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Save([]byte{2}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s, state, err = open(key, "f")
	if err != nil || state[0] != 2 {
		t.Errorf("%+v %v", state, err)
	}
	s.Close()
	if _, _, err := open(key, "another"); !errors.Is(err, ErrStored) {
		t.Errorf("for another federation: %v", err)
	}
	if _, _, err := open(new(keyexchange.SealKey), "f"); !errors.Is(err, ErrStored) {
		t.Errorf("under another key: %v", err)
	}
	if err := os.Remove(filepath.Join(folder, "state.0")); err != nil { // the second one
		t.Fatal(err)
	}
	if _, _, err := open(key, "f"); !errors.Is(err, ErrStored) || !errors.Is(err, stores.ErrOldState) {
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
	folder := t.TempDir()
	open := func() (*stores.Vault, []byte, error) {
		t.Helper()
		return opened(t, ownerOf(folder, "f", key))
	}
	file := func(name string) string { return filepath.Join(folder, name) }
	s, v, err := open()
	if v != nil || err != nil {
		t.Fatal(err)
	}
	for round := range uint64(3) {
		if err := s.Save([]byte{byte(round)}); err != nil {
			t.Fatal(err)
		}
	}
	newest, err := os.ReadFile(file(fileState + ".1"))
	if err != nil {
		t.Fatal(err)
	}
	// The counter of the last one was not written, and of each file a half is left.
	counter := stores.FileCounter(file(fileCounter))
	if err := counter.Advance(2); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fileState, fileCounter, fileVariates, fileSubmission, "work"} {
		if err := os.WriteFile(file(name+".5.new"), newest, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	_, v, err = open()
	if err != nil || v[0] != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	if n, err := counter.Value(); n != 3 || err != nil {
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
	counter := stores.FileCounter(filepath.Join(p.Folder, fileCounter))
	if err := counter.Advance(7); err != nil {
		t.Fatal(err)
	}
	_, err = p.Run(ctx)
	if !errors.Is(err, stores.ErrOldState) || !errors.Is(err, ErrStored) ||
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
		var field *job.ConfigError
		if _, err := p.Run(ctx); !errors.As(err, &field) || field.Path != c.field {
			t.Errorf("spent %d, from %d on: %v", c.spent, c.least, err)
		}
	}
	r.Spent, r.LeastNumber, r.Key, r.Folder = 3, 9, p.Key, p.Folder
	settings, err := r.settings()
	if err != nil {
		t.Fatal(err)
	}
	// The second time the state knows it; the third, which says more, the greater counts.
	for life, spent := range []int{3, 3, 4} {
		if err := begins(t, r, kindParty, settings); err != nil {
			t.Fatal(err)
		}
		guard := r.part.Guard()
		if int(guard.Count()) != spent || int(guard.Last()) != spent || r.part.Hello().Least != 9 {
			t.Errorf("life %d: %d rounds are spent, %d is the least number", life, guard.Count(),
				r.part.Hello().Least)
		}
		if ready, _ := r.part.Ready(); life == 2 && (len(ready.Reports) != 1 || !ready.Save ||
			!strings.HasSuffix(ready.Reports[0].Err.Error(),
				"the state counts 3 rounds, and --spent says 4: rounds up to 4 count as spent")) {
			t.Errorf("%+v", ready)
		}
		if n, err := counter.Value(); n != []uint64{8, 8, 9}[life] || err != nil {
			t.Errorf("life %d: the counter is %d, %v", life, n, err)
		}
		r.Spent, r.LeastNumber = 4*life, 0 // 0, and then 4
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
	if err != nil || u.Vector[1] != 2 || u.Loss != 0.5 || u.Accuracy != 0.75 {
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
		leave + `echo '{"loss": "x"}' > metrics.json`:    "metrics.json: the field",
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
	if !errors.Is(err, ErrTraining) || !strings.Contains(err.Error(), "save in float64") {
		t.Errorf("a sum over records in float32: %+v %v", u, err)
	}
	spec.DType = tensor.Float64
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
		!strings.Contains(err.Error(), `party: "12" is not a fingerprint`) {
		t.Errorf("a short fingerprint: %v", err)
	}
}
