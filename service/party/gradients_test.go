//go:build unix

package party

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
)

// Variables of a process that is a command for gradients: who its records are of, by numbers, those
// on which it fails, and how.
const (
	gradientsOf    = "HUSHSUM_TEST_GRADIENTS"
	gradientsFail  = "HUSHSUM_TEST_FAIL"
	gradientsFails = "HUSHSUM_TEST_FAILS"
)

func init() {
	if os.Getenv(gradientsOf) != "" {
		makeGradients()
		os.Exit(0)
	}
}

// gradientOf returns the gradient of a record at a model of five numbers.
func gradientOf(who int, model []float64) []float64 {
	r := rand.New(rand.NewPCG(uint64(who), 1))
	g := make([]float64, len(model))
	for i, x := range model {
		g[i] = x * r.NormFloat64()
	}
	return g
}

// numbers reads numbers that are separated by commas.
func numbers(text string) (list []int) {
	for field := range strings.SplitSeq(text, ",") {
		if n, err := strconv.Atoi(field); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// makeGradients is the command.
func makeGradients() {
	who, fail := numbers(os.Getenv(gradientsOf)), numbers(os.Getenv(gradientsFail))
	kind, folder := os.Getenv(gradientsFails), os.Getenv("HUSHSUM_WORK")
	pids, err := os.OpenFile(filepath.Join(folder, "pids"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(pids, "%d,", os.Getpid())
	lines := bufio.NewScanner(os.Stdin)
	for fmt.Println("ready"); lines.Scan(); fmt.Println("ready") {
		var asked struct{ Units []int }
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		file, err := os.ReadFile(filepath.Join(folder, "model.safetensors"))
		if err != nil {
			panic(err)
		}
		spec, model, _, err := tensor.Parse(file)
		if err != nil {
			panic(err)
		}
		n, bad := len(asked.Units), false
		rows := make([][]float64, n)
		for k, u := range asked.Units {
			rows[k] = gradientOf(who[u], model)
			bad = bad || slices.Contains(fail, who[u])
		}
		name := "gradients.safetensors"
		if bad {
			switch kind {
			case "exits":
				os.Exit(3)
			case "exits with 0":
				os.Exit(0)
			case "kills":
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			case "hangs", "hangs with a file":
				if kind == "hangs with a file" {
					os.WriteFile(filepath.Join(folder, name), make([]byte, 100), 0o600)
				}
				select {}
			case "nothing":
				continue
			case "one too few":
				rows, n = rows[1:], n-1
			case "one too many":
				rows, n = append(rows, rows[0]), n+1
			case "no file":
				os.Mkdir(filepath.Join(folder, name), 0o700)
				continue
			case "garbage":
				os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600)
				continue
			case "long":
				os.WriteFile(filepath.Join(folder, name), make([]byte, 8<<20), 0o600)
				continue
			case "not finite":
				rows[0][3] = math.Inf(1)
			}
		}
		fmt.Println("nearly ready")
		var out []float64
		at := 0
		spec.DType = tensor.Float64
		for i, t := range spec.Tensors { // in the order of the model
			for _, row := range rows {
				out = append(out, row[at:at+t.Len()]...)
			}
			at += t.Len()
			spec.Tensors[i].Shape = append([]int{n}, t.Shape...)
		}
		if n == 0 {
			continue
		}
		b, err := spec.Append(nil, out, nil)
		if err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			panic(err)
		}
	}
}

// failing names the ways in which the command fails.
var failing = []string{"exits", "exits with 0", "kills", "hangs", "hangs with a file", "nothing",
	"one too few", "one too many", "no file", "garbage", "long", "not finite"}

const byRecords = `name = "by-records"
rounds = 3
parties = { roster = "r", drop_out = 0.25 }
sum.adversary = "curious"
training.batch = 200
[[model.tensor]]
name = "w"
shape = [2, 2]
[[model.tensor]]
name = "b"
shape = []
[privacy]
unit = "record"
records = 400
noise = "discrete-gaussian"
epsilon = 8.0
clip = 1.5
submit_after = "10m"
[time]
step_time = "30m"
`

// logged is a log that several may write to.
type logged struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// commanded starts a command for records of the given numbers, some of which fail.
func commanded(
	t *testing.T, f *federation.Federation, who, fail []int, kind string,
) (g *Gradients, log *logged) {
	t.Helper()
	list := func(numbers []int) string {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
	}
	line := fmt.Sprintf("%s='%s,' %s='%s' %s='%s' exec '%s'", gradientsOf, list(who), gradientsFail,
		list(fail), gradientsFails, kind, os.Args[0])
	log = new(logged)
	g, err := NewGradients(t.Context(), f, line, t.TempDir(), len(who), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	// Those that hang are told so at once, and no others, however slow this machine is.
	g.expires = func(units []int, limit time.Duration) <-chan time.Time {
		if most := f.Settled.SubmitAfter() / 5; limit > most {
			t.Errorf("%d units have %v, one has %v", len(units), limit, most)
		}
		expired := make(chan time.Time, 1)
		for _, u := range units {
			if strings.HasPrefix(kind, "hangs") && slices.Contains(fail, who[u]) {
				expired <- time.Time{}
				break
			}
		}
		return expired
	}
	return g, log
}

// work returns a round of byRecords.
func (g *Gradients) work(t *testing.T, f *federation.Federation) *Work {
	t.Helper()
	w := &Work{Round: 3, Spec: &f.Spec, Model: []float64{1, -2, 3, 0.5, 1}, Coins: f.Settled.Coins()}
	file, err := f.Spec.Append(nil, w.Model, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.File = file
	return w
}

// coinsOf returns coins of which those of some records come up, and nobody else's.
func coinsOf(who []int, up func(who int) bool) *bytes.Reader {
	var b []byte
	for _, w := range who {
		coin := bytes.Repeat([]byte{0xff}, 8)
		if up(w) {
			clear(coin)
		}
		b = append(b, coin...)
	}
	return bytes.NewReader(b)
}

// Records on which the command raises, ends, is killed, hangs or leaves something else add nothing:
// the sum is that over the data set without them, by the same coins of all others.
func TestGradientsWithoutWhatFails(t *testing.T) {
	f := fewOf(t, byRecords)
	for seed, kind := range failing {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		who, fail := r.Perm(1000)[:20], []int(nil)
		up := make(map[int]bool)
		for k, w := range who {
			up[w] = r.IntN(3) > 0 || k < 2
			if k == 0 || r.IntN(10) == 0 {
				fail = append(fail, w)
			}
		}
		rest := slices.DeleteFunc(slices.Clone(who), func(w int) bool { return slices.Contains(fail, w) })
		var sums [][]float64
		for _, of := range [][]int{who, rest} {
			g, log := commanded(t, f, of, fail, kind)
			g.random = coinsOf(of, func(w int) bool { return up[w] })
			u, err := g.Train(t.Context(), g.work(t, f))
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			sums = append(sums, u.Vector)
			if failed := u.Without != nil; failed != (len(of) == len(who)) {
				t.Errorf("%s: of %d records it says %v", kind, len(of), u.Without)
			}
			if told := log.String(); !strings.Contains(told, "nearly ready\n") ||
				strings.Contains(told, "\nready") {
				t.Errorf("%s: the owner's log has %q", kind, log)
			}
			g.Close()
			pids, err := os.ReadFile(filepath.Join(g.folder, "pids"))
			if err != nil || len(numbers(string(pids))) < 1 {
				t.Fatalf("%s: processes %q, %v", kind, pids, err)
			}
			for _, pid := range numbers(string(pids)) {
				if err := syscall.Kill(pid, 0); err == nil {
					t.Errorf("%s: process %d goes on", kind, pid)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(g.folder, "gradients*")); left != nil {
				t.Errorf("%s: it leaves %q", kind, left)
			}
		}
		off, length := 0.0, 0.0
		for i, x := range sums[0] {
			off, length = math.Hypot(off, x-sums[1][i]), math.Hypot(length, x)
		}
		if off > 1e-12 || length < 0.5 {
			t.Errorf("%s: with them the sum is %v, without them %v", kind, sums[0], sums[1])
		}
	}
}

// The sum is that of clipped gradients, whatever is asked for at once, and of those that come up
// alone; with too many it is zeros.
func TestGradients(t *testing.T) {
	f := fewOf(t, byRecords)
	who := rand.New(rand.NewPCG(3, 3)).Perm(1000)[:30]
	g, _ := commanded(t, f, who, nil, "")
	w := g.work(t, f)
	want := make([]float64, 5)
	for k, one := range who {
		row := gradientOf(one, w.Model)
		norm := 0.0
		for _, x := range row {
			norm = math.Hypot(norm, x)
		}
		for i, x := range row {
			if k%2 == 0 {
				want[i] -= x * min(1, 1.5/norm)
			}
		}
	}
	even := func(one int) bool { return slices.Index(who, one)%2 == 0 }
	for range 2 { // by the same process
		g.random = coinsOf(who, even)
		u, err := g.Train(t.Context(), w)
		if err != nil || u.Without != nil {
			t.Fatal(err, u.Without)
		}
		for i, x := range u.Vector {
			if math.Abs(x-want[i]) > 1e-9 {
				t.Errorf("%v, want %v", u.Vector, want)
			}
		}
	}
	own := *w.Coins
	own.Most = 14
	w.Coins = &own
	g.random = coinsOf(who, even)
	if u, err := g.Train(t.Context(), w); err != nil || slices.Max(u.Vector) != 0 {
		t.Errorf("more than there is time for: %v %v", u, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(host.ErrWentOn)
	g.random, own.Most = coinsOf(who, even), 30
	if _, err := g.Train(ctx, w); !errors.Is(err, host.ErrWentOn) {
		t.Errorf("the round is over: %v", err)
	}
}

// Commands that do not come up, and federations that leave no gradients to their parties.
func TestGradientsRefused(t *testing.T) {
	f := fewOf(t, byRecords)
	for line, want := range map[string]string{
		"exit 4":                         "before it was ready: exit status 4",
		"echo ready to go; echo readier": "before it was ready: it has ended",
	} {
		_, err := NewGradients(t.Context(), f, line, t.TempDir(), 9, nil)
		if !errors.Is(err, ErrTraining) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	_, err := NewGradients(t.Context(), f, "true", t.TempDir(), 401, nil)
	if !errors.Is(err, job.ErrConfig) ||
		!strings.Contains(err.Error(), "have 400, and this one has 401") {
		t.Error(err)
	}
	if _, err := NewGradients(t.Context(), few(t), "true", t.TempDir(), 9, nil); !errors.Is(err,
		job.ErrConfig) {
		t.Error(err)
	}
}

// Nothing but the sum shows that the command fails on a record: the server gets the same messages.
// The owner's log says so, without numbers of records; where a program makes the whole sum and
// fails, it says that nothing is proved.
func TestEventsOfGradients(t *testing.T) {
	f := fewOf(t, strings.Replace(byRecords, `"10m"`, `"2s"`, 1))
	who := []int{5, 6, 7, 8}
	play := func(trainer func() Trainer) (*cheat, string) {
		c := newCheat(f, join(1), round(1))
		log := new(logged)
		c.play(t, func(p *Party) {
			p.Trainer = trainer()
			p.Log = slog.New(slog.NewTextHandler(log, nil))
		}, nil)
		return c, log.String()
	}
	by := func(fail []int, kind string) func() Trainer {
		return func() Trainer {
			g, _ := commanded(t, f, who, fail, kind)
			g.random = coinsOf(who, func(int) bool { return true })
			return g
		}
	}
	want, quiet := play(by(nil, ""))
	if len(want.released) != 1 || strings.Contains(quiet, "without some records") ||
		strings.Contains(quiet, "proved") {
		t.Fatalf("%d submissions: %s", len(want.released), quiet)
	}
	for _, kind := range []string{"kills", "hangs"} {
		got, log := play(by([]int{6}, kind))
		if !slices.Equal(got.heard, want.heard) {
			t.Errorf("%s: the server sees %q, want %q", kind, got.heard, want.heard)
		}
		if !strings.Contains(log, "round=1 error=\"party: the training command failed on some records, "+
			"which add nothing: asked for one alone: ") || strings.Contains(log, "proved") {
			t.Errorf("%s: %s", kind, log)
		}
	}
	got, log := play(func() Trainer {
		return TrainerFunc(func(context.Context, *Work) (*Update, error) { return nil, errors.New("no") })
	})
	if !slices.Equal(got.heard, want.heard) || !strings.Contains(log,
		"none is proved of this party's records for this round") ||
		!strings.Contains(log, " unproved_rounds=1") {
		t.Errorf("a program: the server sees %q: %s", got.heard, log)
	}
	for _, log := range []string{quiet, log} {
		if !strings.Contains(log, " at delta 1e-05 for each record of a party, against a server that "+
			`is curious; assumes program, time, last-bit, coins"`) {
			t.Errorf("what was spent is for %s", log)
		}
	}
}
