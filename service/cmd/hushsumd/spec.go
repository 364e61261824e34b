package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/internal/named"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training"
)

// spec is what dev --spec takes: a federation's file that declares a training, without
// its roster, and beside it who has which rows. Where a scenario of hushsum simulate has
// a key of the same name, it means the same.
type spec struct {
	federation.File
	About   string      `toml:"about"`
	Data    specData    `toml:"data"`
	Parties []specParty `toml:"party"`

	text []byte
}

// specData is the rows.
type specData struct {
	Set           string  `toml:"set"`           // synthetic, adult, digits, mnist, fashion-mnist, or a folder
	Split         string  `toml:"split"`         // as of hushsum simulate; empty: iid
	Concentration float64 `toml:"concentration"` // of the Dirichlet splits; 0: 0.5
	Rows          int     `toml:"rows"`          // of a party at most; 0: all that it is dealt
	Test          float64 `toml:"test"`          // share that models are judged on; 0: 1/4
}

// specParty is one party, or Count of them.
type specParty struct {
	Name  string `toml:"name"`
	Count int    `toml:"count"`
}

// simulated are keys of scenarios that real machines have no use for.
var simulated = []string{"link", "leaving", "sum", "data.draw", "data.most", "training.algorithm",
	"party.place", "party.compute", "party.slow", "party.straggle", "party.crash", "party.joins",
	"party.leaves", "party.server", "party.epsilon", "party.rows", "privacy.subtract_own",
	"privacy.alpha"}

// mostSpec bounds dev's parties, which are processes of one machine.
const mostSpec = 100

// readSpec reads a spec's file. It fails with a federation.FileError.
func readSpec(file string) (*spec, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("--spec: %w", err)
	}
	if info.Size() > federation.MaxFile {
		return nil, fmt.Errorf("--spec: %s has %d bytes, at most %d are read", file, info.Size(),
			federation.MaxFile)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--spec: %w", err)
	}
	return parseSpec(text)
}

func parseSpec(text []byte) (*spec, error) {
	s := &spec{text: text}
	if err := federation.Decode(text, s); err != nil {
		var wrong *federation.FileError
		if errors.As(err, &wrong) && wrong.Reason == federation.NoField {
			said := *wrong
			for _, key := range simulated {
				if wrong.Field == key || strings.HasPrefix(wrong.Field, key+".") {
					said.Reason = "only a simulation has that: hushsum simulate --scenario FILE"
					said.Advice = "take it out; between machines time, distance and failures are real"
				}
			}
			if wrong.Field == "privacy.colluders" {
				said.Advice = "write colluders under [recovery]"
			}
			return nil, &said
		}
		return nil, err
	}
	fail := func(field, reason, advice string) (*spec, error) {
		return nil, federation.ErrorAt(text, field, reason, advice)
	}
	d := s.Data
	switch {
	case s.Training == nil:
		return fail("training", "it declares no training", "write [training] with a model")
	case s.Training.Rows != federation.Rows{}:
		return fail("training.rows", "dev finds in the data what rows are like", "leave it out")
	case s.Roster != "":
		return fail("roster", "dev makes the parties, and their roster", "leave it out")
	case d.Set == "":
		return fail("data.set", "it names no rows", "write set = \"digits\" under [data], or synthetic, "+
			"adult, mnist, fashion-mnist, or a folder")
	case d.Rows < 0:
		return fail("data.rows", fmt.Sprintf("%d is no number of rows", d.Rows), "use 0 for all")
	case !(d.Test >= 0 && d.Test < 1):
		return fail("data.test", fmt.Sprintf("%v is no share", d.Test), "use one such as 0.25")
	}
	if n := s.size(); n < 4 || n > mostSpec {
		return fail("party", fmt.Sprintf("there are %d parties", n),
			fmt.Sprintf("write [[party]] with count, for 4 to %d all together", mostSpec))
	}
	if split := cmp.Or(d.Split, "iid"); !slices.Contains(learning.PartitionNames(), split) {
		return fail("data.split", fmt.Sprintf("there is no split %q", split), "use "+
			strings.Join(learning.PartitionNames(), ", "))
	}
	return s, nil
}

// size is how many parties there are.
func (s *spec) size() int {
	n := 0
	for _, p := range s.Parties {
		n += min(max(1, p.Count), mostSpec+1)
	}
	return n
}

// names are the parties' in the roster.
func (s *spec) names() (list []string) {
	for k, p := range s.Parties {
		name := cmp.Or(p.Name, fmt.Sprint("party-", k+1))
		for j := range max(1, p.Count) {
			if p.Count > 1 {
				list = append(list, fmt.Sprint(name, "-", j+1))
			} else {
				list = append(list, name)
			}
		}
	}
	return list
}

// Of synthetic rows: how many there are at least, and how many of them test.
const (
	syntheticRows = 20_000
	syntheticTest = 10_000
)

// rows reads or makes the rows, and deals them as hushsum simulate does.
func (s *spec) rows() (own []*learning.Dataset, test *learning.Dataset, about string, err error) {
	d, n := s.Data, s.size()
	share := cmp.Or(d.Test, .25)
	split := func(all *learning.Dataset, err error) (*learning.Dataset, *learning.Dataset, error) {
		if err != nil {
			return nil, nil, err
		}
		return all.Split(share, s.Seed)
	}
	dir := d.Set
	switch d.Set {
	case "adult", "digits", "mnist", "fashion-mnist":
		dir = filepath.Join(cmp.Or(os.Getenv("HUSHSUM_DATA"), filepath.Join("..", "shared", "data")), dir)
	}
	holds := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && !info.IsDir()
	}
	var train *learning.Dataset
	switch {
	case d.Set == "synthetic":
		count := max(n*d.Rows, syntheticRows) + syntheticTest
		if d.Test == 0 {
			share = syntheticTest / float64(count)
		}
		var all *learning.Dataset
		if all, _, err = learning.Census(count, s.Seed); err == nil {
			train, test, err = split(all, nil)
		}
	case holds("digits.csv.gz"):
		train, test, err = split(learning.ReadDigits(dir))
	case holds("train-images-idx3-ubyte.gz"):
		if d.Test != 0 {
			return nil, nil, "", federation.ErrorAt(s.text, "data.test", "the set has test rows of its own",
				"leave it out")
		}
		writers := filepath.Join(filepath.Dir(filepath.Clean(dir)), "qmnist-writers")
		if _, missing := os.Stat(writers); d.Split == "writers" && missing == nil {
			train, test, err = learning.ReadMNISTWriters(dir, writers)
		} else {
			train, test, err = learning.ReadMNIST(dir)
		}
	default:
		train, test, err = split(learning.ReadAdult(dir))
	}
	if err != nil {
		return nil, nil, "", federation.ErrorAt(s.text, "data.set", fmt.Sprintf("%s: %v", dir, err),
			"name the folder that holds the data sets in HUSHSUM_DATA, or use synthetic")
	}
	own, test, err = learning.Partition(cmp.Or(d.Split, "iid"), train, test,
		learning.PartitionOptions{Clients: n, Seed: s.Seed, Concentration: d.Concentration})
	if err != nil {
		return nil, nil, "", federation.ErrorAt(s.text, "data.split", err.Error(), "")
	}
	for i, rows := range own {
		if d.Rows == 0 || rows.Len() <= d.Rows {
			continue
		}
		first := make([]int, d.Rows)
		for k := range first {
			first[k] = k
		}
		if own[i], err = rows.Subset(first); err != nil {
			return nil, nil, "", err
		}
	}
	return own, test, d.Set, nil
}

// specOnly finds the top-level keys that are no federation's.
var specOnly = regexp.MustCompile(`^\s*about\s*=`)

// declared returns the federation's file: the spec without what it has beside one, each
// line where it was, and what the rows are like behind it.
func (s *spec) declared(own []*learning.Dataset, test *learning.Dataset) []byte {
	lines := strings.Split(string(s.text), "\n")
	table := ""
	for i, line := range lines {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "[") {
			table = strings.Trim(strings.SplitN(trimmed, "#", 2)[0], "[] \t")
		}
		if table == "data" || table == "party" || table == "" && specOnly.MatchString(line) {
			lines[i] = ""
		}
	}
	most := 0
	for _, rows := range own {
		most = max(most, rows.Len())
	}
	text := strings.Join(lines, "\n") +
		fmt.Sprintf("\n[training.rows]\nfeatures = %d\nclasses = %d\n", test.Features,
			named.Classes(append(slices.Clone(own), test)...))
	if s.Training.ByRows {
		text += fmt.Sprintf("most = %d\n", most)
	}
	return []byte(text)
}

// beside runs the same training simulated: with the same parties in every sum without
// noise, or in the clear. It returns the last model, and whether it is to be equal.
func (s *spec) beside(
	ctx context.Context, fed *federation.Federation, own []*learning.Dataset, test *learning.Dataset,
	included [][]int,
) (model []float64, equal bool, err error) {
	t, err := fed.Trained(own[0])
	if err != nil {
		return nil, false, err
	}
	o := t.Options()
	run := simulation.Of(o)
	run.Parties, run.Test, run.EvaluateEvery = own, test, math.MaxInt
	run.Range, run.FractionBits = fed.FixedPoint()
	exchanges := fed.Exchanges()
	run.Rounds = len(included) / exchanges
	if run.Rounds == 0 {
		return o.Model.Init(o.Seed), false, nil
	}
	whole := !slices.ContainsFunc(included, func(who []int) bool {
		return len(who) != len(own)
	})
	switch {
	case o.NoiseClip > 0:
		run.Clip = training.Clipping{Kind: training.DifferenceClip, Norm: o.NoiseClip}
		run.Sum = simulation.Clear
	case exchanges == 1:
		run.Sum, run.Replay, equal = simulation.Ring, included, true
	default:
		run.Sum, equal = simulation.Ring, whole
	}
	result, err := simulation.Run(ctx, run, nil)
	if err != nil {
		return nil, false, err
	}
	return result.Model, equal && fed.Exact(), nil
}
