package job_test

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/oneshot"
)

// Noise that counts ten shares is none for sums of three, nor a committee's for parties: whatever
// takes sums is completed by noise that was settled for as many.
func TestNoiseOfOtherSums(t *testing.T) {
	parties, members := job.RosterOf(t, 12), job.CommitteeOf(t, 7)
	settled := func(parties12, by string) *job.Settled {
		j, err := job.Parse("job.toml", []byte("name = \"sums\"\nrounds = 2\nmodel.length = 10\n"+
			"parties = { count = 12, "+parties12+" }\nsum = { protocol = \"oneshot\", committee = \"c\" }\n"+
			noisy+by))
		if err != nil {
			t.Fatal(err)
		}
		s, err := j.Settle(job.Files{Roster: parties, Committee: members})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	all := map[string]*job.Settled{
		"10 of parties":        settled("drop_out = 0.17", ""),
		"3 of parties":         settled("drop_out = 0.7, colluders = 1", ""),
		"3 of 4, all honest":   settled("drop_out = 0.75", ""),
		"5 of members":         settled("drop_out = 0.17", "noise_by = \"committee\"\n"),
		"5 of members, others": settled("drop_out = 0.7, colluders = 1", "noise_by = \"committee\"\n"),
	}
	for of, sums := range all {
		for by, s := range all {
			config := &oneshot.Config{Roster: parties, Committee: members, Terms: sums.Job().Terms()}
			err := job.Fill(config, s.Layout(), s.Mechanism(), false)
			if same := sums.Promise() == s.Promise(); (err == nil) != same ||
				same != (of == by || strings.HasPrefix(of, "5") && strings.HasPrefix(by, "5")) ||
				err != nil && !strings.Contains(err.Error(), "shares in a sum") {
				t.Errorf("noise for %s on sums of %s: %v", by, of, err)
			}
		}
		if got, err := sums.Oneshot().Promise(); err != nil || got.Honest != sums.Honest() {
			t.Errorf("%s: %+v, %v", of, got, err)
		}
	}
}
