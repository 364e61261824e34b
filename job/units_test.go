package job_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
)

// TestBoundedUnits: a job with a bound and without privacy.bits settles, whatever its length and
// its number of parties are and whoever deals the noise, with a factor near 3.05 if members do.
// With any privacy.bits it settles, or is refused with a field and a number that settles.
func TestBoundedUnits(t *testing.T) {
	crowds, lengths := []int{8, 10_000}, []int{1000, 10_000_000}
	multipliers, widths := []string{"multiplier = 1.0"}, []int{16, 32, 64}
	if suite.Long() {
		multipliers = append(multipliers, "multiplier = 6.0")
		widths = []int{16, 24, 32, 48, 64}
		crowds = []int{8, 30, 100, 1000, 10_000, 100_000, 1_000_000}
		lengths = []int{1000, 10_000, 70_000, 100_000, 1_000_000, 10_000_000}
	}
	members, refused := job.CommitteeOf(t, 40), 0
	for _, n := range crowds {
		parties := job.RosterOf(t, n)
		settle := func(length int, by, noise, bits string) (*job.Settled, error) {
			j, err := job.Parse("job.toml", fmt.Appendf(nil, `name = "bound"
rounds = 1
model.length = %d
parties = { count = %d, drop_out = 0.1 }
sum = { protocol = "oneshot", committee = "c", bounded = true }
privacy = { noise = "discrete-gaussian", clip = 1.0, noise_by = %q, %s%s }
`, length, n, by, noise, bits))
			if err != nil {
				t.Fatal(err)
			}
			return j.Settle(job.Files{Roster: parties, Committee: members})
		}
		for _, length := range lengths {
			for _, noise := range multipliers {
				for _, by := range []string{"parties", "committee"} {
					of := fmt.Sprintf("%d numbers of %d parties, %s by %s", length, n, noise, by)
					s, err := settle(length, by, noise, "")
					if err != nil {
						t.Errorf("%s: %v", of, err)
						continue
					}
					f, err := s.Oneshot().Parameters()
					if err != nil || by == "committee" && f.Factor > 3.2 {
						t.Errorf("%s: factor %v, %v", of, f.Factor, err)
					}
					if v := s.Mechanism().Vector.Sensitivity.L2; v < 52*math.Sqrt(float64(length))/2 {
						t.Errorf("%s: a clip of %g units", of, v)
					}
					for _, bits := range widths {
						_, err := settle(length, by, noise, fmt.Sprintf(", bits = %d", bits))
						var mistake *job.ConfigError
						if err == nil {
							continue
						}
						refused++
						if !errors.As(err, &mistake) || mistake.Path != "privacy.bits" {
							t.Errorf("%s with %d bits: %v", of, bits, err)
							continue
						}
						if strings.HasPrefix(mistake.Advice, "use more bits") && bits < 32 {
							continue // as in all sums with noise, without a number
						}
						var advised int
						if _, after, ok := strings.Cut(mistake.Advice, "leave it out, or write "); ok {
							fmt.Sscan(after, &advised)
						}
						if _, err := settle(length, by, noise, fmt.Sprintf(", bits = %d", advised)); err != nil {
							t.Errorf("%s with %d bits: %v, %q: %v", of, bits, mistake.Reason, mistake.Advice, err)
						}
					}
				}
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// Where a job with a bound does not say who adds the noise, the committee does, and a party that
// lies has nothing to hide in; what it says is kept, and without a bound parties add it.
func TestBoundedNoiseBy(t *testing.T) {
	files := job.Files{Roster: job.RosterOf(t, 12), Committee: job.CommitteeOf(t, 13)}
	for _, c := range []struct {
		bounded bool
		by      string
		members bool
	}{
		{true, "", true},
		{true, `, noise_by = "parties"`, false},
		{true, `, noise_by = "committee"`, true},
		{false, "", false},
		{false, `, noise_by = "committee"`, true},
	} {
		j, err := job.Parse("job.toml", fmt.Appendf(nil, `name = "bound"
rounds = 1
model.length = 100
parties = { count = 12, drop_out = 0.2, colluders = 1 }
sum = { protocol = "oneshot", committee = "c", bounded = %v }
privacy = { noise = "discrete-gaussian", clip = 1.0, multiplier = 4.0%s }
`, c.bounded, c.by))
		if err != nil {
			t.Fatal(err)
		}
		s, err := j.Settle(files)
		if err != nil {
			t.Fatal(err)
		}
		sums := s.Oneshot()
		f, err := sums.Parameters()
		if err != nil || sums.CommitteeNoise != c.members ||
			c.bounded && c.members != (f.Factor < 3.2 && f.MemberAdds > 3) {
			t.Errorf("bounded %v, by %q: members deal noise: %v, factor %v, a member adds %v (%v)",
				c.bounded, c.by, sums.CommitteeNoise, f.Factor, f.MemberAdds, err)
		}
	}
}
