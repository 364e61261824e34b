package crowd

import (
	"flag"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
)

// The size of TestThousands: "A Practical Approach to Federated Learning" (the thesis) has
// 5,000 parties and 20 rounds, which took it 12 hours of one core.
var (
	parties = flag.Int("parties", 60, "parties of TestThousands")
	degree  = flag.Int("degree", 0, "neighbours of each; 0: the complete graph")
	rounds  = flag.Int("rounds", 2, "rounds")
)

// Adult, 200 rows drawn anew for every party and round, 50 steps each: every sum under
// masks is that of what was submitted, and the model learns.
func TestThousands(t *testing.T) {
	all, err := learning.ReadAdult(realdata.Dir(t, "adult"))
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := all.Split(0.25, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := learning.Logistic{Features: train.Features, Lambda: 1e-4}
	release := privacy.Release{
		Promise:   privacy.Assumed(*parties, *parties),
		Noise:     privacy.Noise{Family: accounting.FamilyDiscreteGaussian, Clip: 2, Bits: 24},
		Dimension: model.NumParams(),
	}
	budget := privacy.Budget{Epsilon: 8}
	if release.Noise.Multiplier, err = release.Calibrate(budget, *rounds); err != nil {
		t.Fatal(err)
	}
	mechanism, err := release.Mechanism()
	if err != nil {
		t.Fatal(err)
	}
	layout, err := mechanism.Layout()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	last := start
	lap := func(what string) {
		t.Logf("%-10s %8.1f s, %s", what, time.Since(last).Seconds(), peakMemory())
		last = time.Now()
	}
	c, err := New(t.Context(), Options{
		Parties: *parties,
		Degree:  *degree,
		Length:  layout[0].Length,
		Bits:    layout[0].Bits,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d parties, %d pairs, layout %v", *parties, c.Counts().Pairs, layout)
	lap("set-up")
	w := model.Init(0)
	sgd := learning.SGD{Rate: 2, Steps: 50}
	var training sync.Mutex
	var trained time.Duration
	for round := range *rounds {
		rotation := privacy.Rotation(c.session, uint64(round))
		plain := make([]uint64, layout[0].Length)
		sum, err := c.Round(t.Context(), nil, nil, func(i int, dst []uint64) error {
			began := time.Now()
			rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			rows := make([]int, 200)
			for k := range rows {
				rows[k] = rng.IntN(train.Len())
			}
			own, err := train.Subset(rows)
			if err != nil {
				return err
			}
			local := slices.Clone(w)
			if _, err := sgd.Train(model, local, own, 0); err != nil {
				return err
			}
			for k := range local {
				local[k] -= w[k]
			}
			took := time.Since(began)
			values, err := mechanism.Encode(rotation, local, nil, nil)
			if err != nil {
				return err
			}
			copy(dst, values[0])
			training.Lock()
			defer training.Unlock()
			trained += took
			addTo(plain, dst)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for k := range plain {
			plain[k] &= 1<<layout[0].Bits - 1
		}
		if !slices.Equal(sum, plain) {
			t.Fatalf("round %d: the sum under masks is not the plain one", round+1)
		}
		mean, _, err := mechanism.Decode(rotation, [][]uint64{sum}, *parties)
		if err != nil {
			t.Fatal(err)
		}
		if w, err = (&aggregation.Optimizer{}).Apply(w, mean, nil); err != nil {
			t.Fatal(err)
		}
		judged, err := model.Evaluate(w, test)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: MCC %.4f, accuracy %.4f", round+1, judged.MCC(), judged.Accuracy())
		lap("round")
	}
	t.Logf("training %.1f s of all; counts %+v", trained.Seconds(), c.Counts())
	lap("all")
	t.Logf("%.1f s in all", time.Since(start).Seconds())
}

// peakMemory tells the process's largest resident set, where the system says so.
func peakMemory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "memory unknown"
	}
	peak := regexp.MustCompile(`VmHWM:\s*(\d+ kB)`).FindSubmatch(status)
	if peak == nil {
		return "memory unknown"
	}
	return "at most " + string(peak[1]) + " resident"
}
