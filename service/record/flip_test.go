package record_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/children"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/harness"
	"github.com/hushsum/hushsum/service/record"
)

var flipSeed = flag.Uint64("flip.seed", 0, "of the damage that TestFlip does; 0: another each time")

// flipKey seals the record of a TestFlip, whose processes share it.
var flipKey = keyexchange.SealKey{1, 2, 3}

// damage is a case of TestFlip.
type damage struct {
	harness.Damage
	// Again is a folder with the damage, in which a record did not start; empty: there is none.
	Again string
}

// Outcomes of damage. A silent one is that what was decided is gone, without an error.
const (
	harmless = "harmless"
	healed   = "healed"
	named    = "named"
	silent   = "SILENT"
)

const flipDecisions = 5

// flipped makes the files of a record with a federation that has made some decisions.
func flipped(t *testing.T) (folder string) {
	t.Helper()
	ctx, folder := t.Context(), t.TempDir()
	r, stop := open(t, folder, &flipKey)
	d := record.Definition{ID: id, Text: []byte("text"), Roster: []byte("roster"), Created: time.Now()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Create(ctx, d, []byte("the first model"), nil, record.Line{Event: record.EventCreated}))
	h, err := r.Claim(ctx, id, "a")
	must(err)
	var model *record.Ref
	for i := range flipDecisions {
		before := model
		model, err = h.Put(ctx, fmt.Sprint("model-", i), fmt.Append(nil, "model ", i))
		must(err)
		h.Round, h.Lines = uint64(i+1), []record.Line{{Event: "begun", Round: i + 1}}
		must(h.Decide(ctx, fmt.Append(nil, "decision ", i, " ", model.Name), before))
	}
	stop()
	return folder
}

// outcome starts a record on damaged files, and compares what it says with what was decided.
func outcome(ctx context.Context, folder string) (string, error) {
	e, err := record.StartEmbedded(ctx, record.EmbeddedOptions{Folder: folder, Name: "n"})
	if err != nil {
		return named, err
	}
	defer e.Close()
	if all := e.Aside(); len(all) > 0 {
		return named, fmt.Errorf("all is in %s", all)
	}
	r, err := record.Open(ctx, e.JS, 1, record.NewKeys(flipKey))
	if err != nil {
		return named, err
	}
	if err := r.KeepIn(folder); err != nil {
		return named, err
	}
	defer r.Close()
	out, why := harmless, error(nil)
	notes := func(err error) {
		if out, why = named, errors.Join(why, err); !errors.Is(err, record.ErrRecord) {
			out = "UNNAMED" // it would be asked for again, for ever
		}
	}
	last := fmt.Sprint("decision ", flipDecisions-1, " ")
	ids, err := r.List(ctx)
	if err != nil {
		notes(err)
	} else if !slices.Equal(ids, []string{id}) {
		return silent, fmt.Errorf("federations %.8q", ids)
	}
	if d, err := r.Definition(ctx, id); err != nil {
		notes(err)
	} else if b, err := r.Initial(ctx, d, d.Model); err != nil {
		notes(err)
	} else if string(b) != "the first model" {
		return silent, fmt.Errorf("the first model %q", b)
	}
	if b, err := r.State(ctx, id); err != nil {
		notes(err)
	} else if !strings.HasPrefix(string(b), last) {
		return silent, fmt.Errorf("read state %q", b)
	}
	h, err := r.Claim(ctx, id, "a")
	if err != nil {
		notes(err)
		return out, why
	}
	b, err := h.State(ctx)
	if err == nil && !strings.HasPrefix(string(b), last) {
		return silent, fmt.Errorf("claimed state %q", b)
	}
	if err == nil && h.Round != flipDecisions {
		return silent, fmt.Errorf("%d rounds", h.Round)
	}
	if err == nil && h.Healed() != nil {
		return healed, h.Healed()
	}
	if err == nil && h.DamagedLines() > 0 && out == harmless {
		return named, errors.New("lines of the own file are damaged")
	}
	if err == nil {
		return out, why
	}
	notes(err)
	// Until something is decided it is still named to whoever reads.
	if b, err := r.State(ctx, id); err == nil && !strings.HasPrefix(string(b), last) {
		return silent, fmt.Errorf("read state %q after a claim", b)
	}
	if _, err = h.Back(ctx); err != nil {
		notes(err)
		return out, why
	}
	if b, err = h.State(ctx); err != nil || !strings.HasPrefix(string(b), "decision") {
		return silent, fmt.Errorf("state %q after going back: %w", b, err)
	}
	return out, why
}

// TestFlipped runs the process of TestFlip in which records are started: some damage makes
// JetStream count for ever.
func TestFlipped(t *testing.T) {
	from := os.Getenv("HUSHSUM_FLIP_FROM")
	if from == "" {
		t.Skip("it is a process of TestFlip")
	}
	record.LeastStart(1500 * time.Millisecond)
	for in := json.NewDecoder(os.Stdin); ; {
		var d damage
		if err := in.Decode(&d); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		folder := d.Again
		if folder == "" {
			var err error
			folder, err = os.MkdirTemp(from, "case-")
			if err == nil {
				err = os.CopyFS(folder, os.DirFS(filepath.Join(from, "files")))
			}
			if err == nil {
				err = d.Do(folder)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		what, why := outcome(ctx, folder)
		cancel()
		if d.Again == "" && what == named && strings.Contains(why.Error(), "does not start") {
			d.Again = folder
			again, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("again %s\n", again)
			os.Exit(0) // JetStream counts on
		}
		os.RemoveAll(folder)
		fmt.Printf("flipped %s: %s\n", what, strings.ReplaceAll(fmt.Sprint(why), "\n", "; "))
	}
}

// flips gives damage to processes, and returns the outcome of each.
func flips(t *testing.T, from string, cases []damage) (outcomes []string) {
	t.Helper()
	cases = slices.Clone(cases)
	for len(cases) > 0 {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFlipped$")
		c.Env = append(os.Environ(), "HUSHSUM_FLIP_FROM="+from)
		children.EndWith(c)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		c.Stderr = &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		go func(cases []damage) {
			defer in.Close()
			to := json.NewEncoder(in)
			for _, d := range cases {
				if to.Encode(d) != nil {
					return
				}
			}
		}(slices.Clone(cases))
		had, again := len(outcomes), 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if line, is := strings.CutPrefix(lines.Text(), "flipped "); is {
				outcomes = append(outcomes, line)
			} else if line, is := strings.CutPrefix(lines.Text(), "again "); is {
				d := new(damage)
				if err := json.Unmarshal([]byte(line), d); err != nil {
					t.Fatal(err)
				}
				cases[len(outcomes)-had] = *d
				again++
			} else if lines.Text() != "PASS" {
				said.WriteString(lines.Text() + "\n")
			}
		}
		err = c.Wait()
		got := len(outcomes) - had
		if err != nil && got < len(cases) {
			// A process that ends by a panic ends the node too, as often as it is started.
			outcomes, got = append(outcomes, fmt.Sprintf("DIED: %v\n%.2000s", err, said.String())), got+1
		} else if got == 0 && again == 0 {
			t.Fatalf("%v\n%s", err, said.String())
		}
		cases = cases[got:]
	}
	return outcomes
}

// A node alone whose files lose a bit or their end, and that is started again, has its decisions,
// or says that it does not: a model is never the first again, nor is anything spent unspent.
func TestFlip(t *testing.T) {
	cases := 60
	if suite.Long() {
		cases = 2400
	}
	seed := *flipSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-flip.seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	from := t.TempDir()
	if err := os.Rename(flipped(t), filepath.Join(from, "files")); err != nil {
		t.Fatal(err)
	}
	type file struct {
		name string
		size int64
	}
	var all []file
	files := filepath.Join(from, "files")
	err := filepath.WalkDir(files, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 {
			name, err = filepath.Rel(files, name)
			all = append(all, file{filepath.ToSlash(name), info.Size()})
		}
		return err
	})
	if err != nil || len(all) < 8 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	// Blocks have what was decided; of other files a few cases each show that nothing hangs on them.
	blocks := slices.DeleteFunc(slices.Clone(all), func(f file) bool {
		return !strings.HasSuffix(f.name, ".blk") && !strings.HasSuffix(f.name, ".chain")
	})
	var damages []damage
	for k := range cases {
		from := blocks
		if k%4 == 3 {
			from = all
		}
		f := from[random.IntN(len(from))]
		damages = append(damages, damage{Damage: harness.Damage{File: f.name,
			Cut: random.IntN(3) == 0, At: random.Int64N(f.size), Bit: random.IntN(8)}})
	}
	count, kinds := map[string]int{}, map[string]int{}
	// Most of the time they wait for what is missing.
	outcomes := make([]string, len(damages))
	t.Run("processes", func(t *testing.T) {
		const size = 15
		for k := 0; k < len(damages); k += size {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				copy(outcomes[k:], flips(t, from, damages[k:min(k+size, len(damages))]))
			})
		}
	})
	for k, said := range outcomes {
		what, why, _ := strings.Cut(said, ": ")
		count[what]++
		kinds[fmt.Sprintf("%-8s %s", what, kindOf(damages[k].File))]++
		if what != harmless && what != healed && what != named {
			t.Errorf("%v: %s: %s", damages[k], what, why)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%5d %s", kinds[kind], kind)
	}
	t.Logf("%d cases: %d silent, %d healed, %d named, %d harmless", len(damages), count[silent],
		count[healed], count[named], count[harmless])
}

// kindOf says what a file of a record has.
func kindOf(name string) string {
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if strings.HasPrefix(part, "KV_") || strings.HasPrefix(part, "OBJ_") ||
			strings.HasPrefix(part, "HUSHSUM") {
			return part[:min(len(part), 20)] + " " + filepath.Ext(parts[len(parts)-1])
		}
	}
	return parts[len(parts)-1]
}
