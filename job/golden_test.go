package job_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"testing"

	"github.com/hushsum/hushsum/job"
)

var rewriteGolden = flag.Bool("rewrite-golden", false, "write what jobs settle to anew")

// goldenJobs are jobs of vectors, for ten parties and a committee of thirteen.
var goldenJobs = []string{
	`name = "averaging"
rounds = 20
parties.drop_out = 0.3
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
model.length = 105
`, `name = "boundary"
rounds = 1000
parties.drop_out = 0.2
privacy = { noise = "discrete-gaussian", epsilon = 1000.0, clip = 1.0 }
model.length = 105
`, `name = "a"
rounds = 1
sum = { protocol = "oneshot", faults = 2, covered = true }
privacy.clip = 1.0
model.length = 4
`, `name = "benchmark"
rounds = 100
parties.drop_out = 0.3
sum = { adversary = "curious", range = 100.0 }
privacy.clip = 100.0
model.length = 1000001
`, `name = "memory"
rounds = 100
sum = { adversary = "curious", recovery = true }
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
model.length = 100000
`, `name = "mnist"
rounds = 10
parties.drop_out = 0.2
sum.adversary = "curious"
privacy.clip = 5.0
model.length = 21840
`, `name = "narrow"
rounds = 2
parties.drop_out = 0.1
sum = { range = 0.001, fraction_bits = 29 }
privacy.clip = 0.001
model.length = 30
`, `name = "one"
rounds = 3
parties.drop_out = 0.3
sum.protocol = "oneshot"
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0, bits = 32 }
model.length = 2000
`, `name = "skellam--tiny"
rounds = 2
parties.colluders = 1
sum = { adversary = "semi-malicious", recovery = true, classical = true }
privacy = { noise = "skellam", epsilon = 8.0, delta = 1e-6, clip = 0.001, bits = 24 }
model.length = 30
`, `name = "steps-a-day"
rounds = 1
parties.drop_out = 0.2
sum = { protocol = "oneshot", range = 100.0 }
privacy.clip = 100.0
model.length = 2
`, `name = "vectors"
rounds = 3
sum.recovery = true
privacy.clip = 1.0
model.length = 2
`,
}

// What jobs settle to stays as it is: digests, sessions, noise, the terms of one message, and the
// submission of a vector without noise. All sides of a job must find the same.
func TestGolden(t *testing.T) {
	var out bytes.Buffer
	roster, committee := job.RosterOf(t, 10), job.CommitteeOf(t, 13)
	for _, text := range goldenJobs {
		j, err := job.Parse("job.toml", []byte(text+"parties.count = 10\n"))
		if err != nil {
			t.Fatal(err)
		}
		with := job.Files{Roster: roster}
		if j.Oneshot() {
			with.Committee = committee
		}
		s, err := j.Settle(with)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %x\n", j.Name, j.Digest())
		tellSettled(&out, s)
		if s.Mechanism() != nil { // whose last bits may differ on another processor
			continue
		}
		vector := make([]float64, s.Length())
		for i := range vector {
			vector[i] = math.Sin(float64(i)) / 1000
		}
		made := job.Update[float64]{Vector: vector, Samples: 1, Signed: vector, Trained: s.Trains()}
		values, err := s.Encode(job.BroadcastDigest([]byte("begun")), made, nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "  submission %x\n", sha256.Sum256(fmt.Append(nil, values)))
	}
	const golden = "testdata/golden.txt"
	if *rewriteGolden {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%v: it is\n%s", err, &out)
	}
}

func tellSettled(out io.Writer, s *job.Settled) {
	c := s.Config(3)
	fmt.Fprintf(out, "  %s\n  rounds %d number %d members %d colluders %d classical %v\n", c.Label,
		s.Rounds(), c.Number, c.MinMembers, c.Colluders, c.Classical)
	fmt.Fprintf(out, "  layout %v recovery %v draw %v\n", c.Layout, c.Recovery,
		s.Draw(2, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 4))
	if s.Mechanism() != nil {
		r := s.Round()
		fmt.Fprintf(out, "  round %v %d of %d %d %.5g samples %v std %.5g\n", r.Family, r.Shares,
			s.MinSurvivors(), s.Colluders(), []float64{r.Update.ShareSigma, r.Update.ShareVariance,
				r.Update.SumScale, r.Update.Sensitivity.L1, r.Update.Sensitivity.L2}, r.Samples,
			s.StdDev(s.MinSurvivors()))
	}
	if o := s.Oneshot(); o != nil {
		terms := o.Terms
		fmt.Fprintf(out, "  %s\n  %v length %d least %d colluders %d faults %d covered %v bits %d\n",
			o.Label, terms.KEM, terms.Length, terms.MinSurvivors, terms.Colluders, terms.Faults,
			terms.Covered, terms.Bits)
	}
}
