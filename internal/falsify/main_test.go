package falsify

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
)

var (
	first = flag.Uint64("first", 0, "the first seed of jobs; 0: fixed ones, and one by date")
	many  = flag.Int("jobs", 0, "how many jobs are made; 0: 300, or 20,000 of the long form")
	brief = flag.Bool("brief", false, "end at the first job that fails, and do not make it smaller")
)

// fixed is the seed of jobs that are the same every day.
const fixed = 1_000_000

// dated is the share of the jobs whose seeds follow from the date.
const dated = 4

// neighbours are tried for each job.
const neighbours = 20

// seeds returns those of all jobs. Those by date are printed with the first failure, and by -v.
func seeds(t *testing.T) (out []uint64) {
	n := *many
	switch {
	case n > 0:
	case suite.Long():
		n = 20_000
	default:
		n = 300
	}
	if *first > 0 {
		for i := range n {
			out = append(out, *first+uint64(i))
		}
		return out
	}
	today := uint64(time.Now().UTC().Unix() / 86400)
	t.Logf("seeds from %d, and from %d by date", fixed, today*100_000)
	for i := range n {
		if i%dated == dated-1 {
			out = append(out, today*100_000+uint64(i))
		} else {
			out = append(out, fixed+uint64(i))
		}
	}
	return out
}

// tried is a job that was made of a seed.
type tried struct {
	name    string
	draft   draft
	settled *job.Settled // nil: it was refused
	err     error
}

// random returns the randomness of an oracle for a job, which does not depend on other jobs.
func (x *tried) random(oracle uint64) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, c := range []byte(x.draft.String()) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(h, oracle))
}

// cache has jobs of seeds: settling is most of the work, and every oracle takes the same jobs.
var cache sync.Map

func jobOf(seed uint64) *tried {
	if x, found := cache.Load(seed); found {
		return x.(*tried)
	}
	x := try(fmt.Sprint("seed ", seed), draftOf(seed))
	if !suite.Long() {
		cache.Store(seed, x)
	}
	return x
}

// try settles a draft.
func try(name string, d draft) *tried {
	x := &tried{name: name, draft: d}
	x.settled, x.err = d.settle()
	return x
}

// over has an oracle try the jobs of testdata and those of all seeds. It returns how many settled
// and had what the oracle is about.
func over(t *testing.T, number uint64, oracle func(x *tried) (about bool, err error)) {
	t.Helper()
	settled, of, had := 0, 0, 0
	one := func(x *tried) bool {
		of++
		if errors.Is(x.err, errOdd) {
			t.Errorf("%s: %v\n%s", x.name, x.err, x.draft)
		}
		if x.settled == nil {
			return true
		}
		settled++
		about, err := oracle(x)
		if about {
			had++
		}
		if err == nil {
			return true
		}
		if *brief {
			t.Fatalf("F%d refutes a job (%s): %v\n%s", number, x.name, err, x.draft)
		}
		small := shrunk(x, func(y *tried) bool {
			_, err := oracle(y)
			return err != nil
		})
		_, why := oracle(small)
		t.Errorf("F%d refutes a job (%s): %v\nIt is, but for what does not matter:\n%s", number, x.name,
			why, small.draft)
		return false
	}
	once, err := kept()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range once {
		one(x)
	}
	wrong := 0
	for _, seed := range seeds(t) {
		if !one(jobOf(seed)) {
			if wrong++; wrong == 3 {
				break // the rest is more of the same
			}
		}
	}
	t.Logf("%d jobs, of which %d settle, and %d have what F%d is about", of, settled, had, number)
	if wrong == 0 && had*10 < of {
		t.Errorf("F%d was about %d jobs of %d: it sees nothing", number, had, of)
	}
}
