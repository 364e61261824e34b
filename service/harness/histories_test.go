package harness

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/hushsum/hushsum/internal/children"
	"github.com/hushsum/hushsum/internal/suite"
)

var (
	seed   = flag.Uint64("harness.seed", 0, "of the first world; 0: 1, and with -long the clock")
	only   = flag.String("harness.nemesis", "", "plays worlds of this nemesis alone")
	worlds = flag.Int("harness.worlds", 0, "of histories; 0: 24, and 160 with -long")
	lasts  = flag.Duration("harness.for", 0, "worlds begin for as long as this, in place of a number")
)

// batch says which worlds a process plays.
type batch struct {
	First, Most uint64
	Nemesis     string
	Clock       bool   // in real time, and not in a bubble
	Keep        string // the folder for the files of failures
}

// came tells what came of a world.
type came struct {
	Seed    uint64
	Nemesis string
	Legal   int // histories
	Ops     int
	Struck  int    // flips, cuts and old copies
	Digest  []byte // of the histories
	Named   int    // losses, and refusals
	Ended   string // by damage of what the record starts on
	Stuck   string // JetStream does not answer any more, and says so
	Wrong   []string
}

// batchVariable has a batch, in a process of TestHistories.
const batchVariable = "HUSHSUM_HARNESS_BATCH"

// TestWorlds runs the process of TestHistories in which worlds are played: there is damage on which
// JetStream counts for ever.
func TestWorlds(t *testing.T) {
	text := os.Getenv(batchVariable)
	if text == "" {
		t.Skip("it is a process of TestHistories")
	}
	var b batch
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	ats.Register() // the clock of files of NATS stays out of bubbles
	for at := b.First; at < b.First+b.Most; at++ {
		var out *came
		if b.Clock {
			out = b.world(t, at)
		} else {
			synctest.Test(t, func(t *testing.T) { out = b.world(t, at) })
		}
		line, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("came %s\n", line)
	}
	if b.Clock {
		os.Exit(0) // JetStream counts on
	}
}

// memory is a folder of files in memory, if the system has one: there nothing waits for a disk.
func memory() string {
	const shared = "/dev/shm"
	if info, err := os.Stat(shared); err == nil && info.IsDir() {
		return shared
	}
	return ""
}

// world plays a world, and compares its histories with the model.
func (b *batch) world(t *testing.T, seed uint64) *came {
	folder, err := os.MkdirTemp(memory(), "hushsum-harness-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	w := newWorld(seed, folder)
	if b.Nemesis != "" {
		w.nemesis = b.Nemesis
	}
	out := &came{Seed: seed, Nemesis: w.nemesis}
	if w.external {
		out.Nemesis += " on NATS"
	}
	if err := w.play(ctx); err != nil {
		out.Wrong = append(out.Wrong, err.Error())
	}
	out.Ended, out.Stuck = w.ended, w.stuck
	digest := sha256.New()
	for k, p := range w.all {
		fmt.Fprintf(digest, "%s\n%s\n", w.struck, p)
		out.Ops += len(p.ops)
		out.Named += p.named
		text := p.verdict()
		if w.nemesis == kills && p.named > 0 {
			text += "; a loss was named where nothing was lost"
		}
		if text == "" {
			out.Legal++
			continue
		}
		out.Wrong = append(out.Wrong, fmt.Sprintf("federation %d: %s\n%s", k, text, p))
	}
	out.Digest, out.Struck = digest.Sum(nil), len(w.struck)
	if len(out.Wrong) > 0 {
		out.Wrong = append(out.Wrong, fmt.Sprint("after ", w.struck))
		if err := os.CopyFS(filepath.Join(b.Keep, fmt.Sprint(seed)), os.DirFS(folder)); err != nil {
			t.Log(err)
		}
	}
	return out
}

// mostWork is how many seconds of a processor a process may take for a world in a bubble, before it
// is taken for one that counts.
const mostWork = 12

// patience is how long it may take without a bubble.
const patience = 5 * time.Minute

// plays starts a process for a batch, hands on what comes of its worlds, and returns how many there
// were, and what the process said last.
func (b batch) plays(t *testing.T, each func(*came)) (done uint64, said string) {
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWorlds$", "-test.timeout=0")
	c.Env = append(os.Environ(), batchVariable+"="+string(text), "GOMAXPROCS=2")
	children.EndWith(c)
	out, err := c.StdoutPipe()
	var errs strings.Builder
	c.Stderr = &errs
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	bound(c.Process.Pid)
	var began float64 // processor seconds, at the last that came
	var mutex sync.Mutex
	watch := time.NewTicker(time.Second)
	defer watch.Stop()
	go func() {
		for limit := time.Now().Add(patience); ctx.Err() == nil; <-watch.C {
			mutex.Lock()
			counts := work(c.Process.Pid)-began > mostWork
			mutex.Unlock()
			if counts && !b.Clock || b.Clock && time.Now().After(limit) {
				cancel()
			}
		}
	}()
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if text, is := strings.CutPrefix(line, "came "); is {
			mutex.Lock()
			began = work(c.Process.Pid)
			mutex.Unlock()
			w := new(came)
			if err := json.Unmarshal([]byte(text), w); err != nil {
				t.Fatal(err)
			}
			each(w)
			done++
		} else {
			errs.WriteString(line)
		}
		if err == io.EOF {
			break
		}
	}
	_ = c.Wait() // what is missing says it
	return done, errs.String()
}

// counted has the legal histories of a nemesis, and its flips, cuts and old copies.
type counted struct{ Legal, Struck int }

// tally counts what came of worlds.
type tally struct {
	mutex                                   sync.Mutex
	worlds, legal, ops, named, again, stuck int
	ended                                   map[string]int
	by                                      map[string]*counted // by nemesis
}

func (all *tally) add(t *testing.T, w *came) {
	all.mutex.Lock()
	defer all.mutex.Unlock()
	all.worlds++
	all.legal += w.Legal
	all.ops += w.Ops
	all.named += w.Named
	if all.by[w.Nemesis] == nil {
		all.by[w.Nemesis] = new(counted)
	}
	all.by[w.Nemesis].Legal += w.Legal
	all.by[w.Nemesis].Struck += w.Struck
	if w.Stuck != "" {
		all.stuck++
	}
	if w.Ended != "" {
		all.ended[w.Nemesis]++
	}
	if len(w.Wrong) > 0 {
		t.Errorf("-harness.seed %d -harness.worlds 1: %s: %s", w.Seed, w.Nemesis,
			strings.Join(w.Wrong, "\n"))
	}
}

// Nodes claim, decide and are killed in the steps of decisions, and files are damaged or replaced
// by older ones in between: every history keeps the record's promises.
func TestHistories(t *testing.T) {
	t.Parallel()
	first, most := *seed, *worlds
	if first == 0 && suite.Long() {
		first = uint64(time.Now().UnixNano())
	}
	if most == 0 {
		most = suite.Size(8, 24, 160, 1300)
	}
	began := time.Now()
	all := &tally{by: make(map[string]*counted), ended: make(map[string]int)}
	ctx, cancel := context.WithTimeout(t.Context(), *lasts)
	defer cancel()
	var mutex sync.Mutex
	next := max(first, 1)
	t.Logf("-harness.seed %d", next)
	end := next + uint64(most)
	take := func() (from, n uint64) {
		const each = 20
		mutex.Lock()
		defer mutex.Unlock()
		from = next
		if n = min(each, (uint64(most)+1)/2, end-next); *lasts > 0 {
			if n = each; ctx.Err() != nil {
				n = 0
			}
		}
		next += n
		return from, n
	}
	keep := t.ArtifactDir()
	t.Run("processes", func(t *testing.T) {
		for k := range 2 {
			t.Run(fmt.Sprint(k), func(t *testing.T) {
				t.Parallel()
				for from, n := take(); n > 0; from, n = take() {
					all.batch(t, batch{First: from, Most: n, Nemesis: *only, Keep: keep})
				}
			})
		}
	})
	t.Logf("%d worlds, %d legal histories, %d operations in %v", all.worlds, all.legal, all.ops,
		time.Since(began).Round(100*time.Millisecond))
	for _, nemesis := range slices.Sorted(maps.Keys(all.by)) {
		n := all.by[nemesis]
		t.Logf("%6d legal histories, %5d times struck: %s", n.Legal, n.Struck, nemesis)
	}
	t.Logf("%d times a loss was named; %d worlds were played again by the clock; in %d JetStream did "+
		"not answer any more; of %v the record did not start, by name", all.named, all.again,
		all.stuck, all.ended)
}

// batch plays a batch. A world in which a process counts, or ends, is played again by the clock.
func (all *tally) batch(t *testing.T, b batch) {
	for b.Most > 0 {
		done, _ := b.plays(t, func(w *came) { all.add(t, w) })
		b.First, b.Most = b.First+done, b.Most-done
		if b.Most == 0 {
			return
		}
		one := b
		one.Most, one.Clock = 1, true
		all.mutex.Lock()
		all.again++
		all.mutex.Unlock()
		done, said := one.plays(t, func(w *came) { all.add(t, w) })
		if done == 0 && strings.Contains(said, "out of memory") { // as a node ends that counts
			all.mutex.Lock()
			all.stuck++
			all.mutex.Unlock()
		} else if done == 0 {
			t.Errorf("-harness.seed %d -harness.worlds 1: its process ends: %.3000s", b.First, said)
		}
		b.First, b.Most = b.First+1, b.Most-1
	}
}

// A seed repeats its histories and its damage exactly, but where goroutines of JetStream, which see
// the clock of the machine, come between: of some times two are alike.
func TestRepeats(t *testing.T) {
	t.Parallel()
	keep := t.ArtifactDir()
	had := map[string]bool{}
	for range 4 {
		var all []byte
		batch{First: 1, Most: 4, Keep: keep}.plays(t, func(w *came) { all = append(all, w.Digest...) })
		if had[string(all)] && len(all) > 0 {
			return
		}
		had[string(all)] = true
	}
	t.Error("the same seeds have other histories each time")
}
