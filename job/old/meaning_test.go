package old

import (
	"crypto/ed25519"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

const parties = 10 // of testdata's roster, and of plans

func rosterOf(t *testing.T, n int) *keyexchange.Roster {
	t.Helper()
	var members []keyexchange.Member
	for i := range n {
		key := ed25519.NewKeyFromSeed(append(make([]byte, 31), byte(i))).Public().(ed25519.PublicKey)
		members = append(members, keyexchange.Member{Name: fmt.Sprint("p", i), Key: key})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return roster
}

// planOfFile is the plan that the service made of a federation's file without a training.
func planOfFile(t *testing.T, text []byte) *job.Plan {
	t.Helper()
	f := new(file)
	if err := decode("x.toml", text, f); err != nil {
		t.Fatal(err)
	}
	if f.Training != nil {
		return nil
	}
	p := &job.Plan{Name: f.Name, Rounds: f.Rounds, Clip: f.Privacy.Clip, Bits: f.Privacy.Bits,
		Epsilon: f.Privacy.Epsilon, Delta: f.Privacy.Delta, DropOut: f.Recovery.DropOut,
		Colluders: f.Recovery.Colluders, Classical: f.Recovery.Classical, Length: 100}
	if noise := f.Privacy.Noise; noise != "" && noise != "none" {
		if err := p.Noise.UnmarshalText([]byte(noise)); err != nil {
			t.Fatal(err)
		}
	}
	p.Adversary = map[string]protocol.Adversary{"semi-malicious": protocol.SemiMaliciousServer,
		"curious": protocol.CuriousServer}[f.Recovery.Adversary]
	return p
}

// A plan, and a federation's file without a training, settles to the same figures as the job that
// it becomes: thresholds, noise and what rounds spend, worked out here from the job's fields.
func TestMeaning(t *testing.T) {
	settled := 0
	each(t, func(t *testing.T, _ string, text []byte, form string, j *job.Job, _ []string) {
		var p *job.Plan
		var err error
		length := j.Model.Length
		switch form {
		case FormPlan:
			p, err = job.ParsePlan(text)
		case FormFederation:
			p, length = planOfFile(t, text), 100
		}
		if err != nil || p == nil {
			return
		}
		var s *job.Settled
		if p.Protocol == job.Oneshot {
			s, err = p.SettleOneshot(rosterOf(t, parties), rosterOf(t, 13))
		} else {
			s, err = p.Settle(rosterOf(t, parties))
		}
		if err != nil {
			t.Fatal(err)
		}
		settled++
		d := j.WithDefaults()
		survivors := max(1, parties-int(math.Floor(d.Parties.DropOut*parties+1e-9)))
		threshold := d.Parties.Colluders + 1
		if d.Sum.Adversary != "curious" {
			threshold = (parties-1+d.Parties.Colluders)/2 + 1
		}
		config := s.Config(1)
		if r := config.Recovery; !d.Recovers() && !d.Oneshot() || r.MinSurvivors != survivors ||
			r.Threshold != threshold || config.Classical != d.Sum.Classical ||
			config.Colluders != d.Parties.Colluders || s.Plan().Rounds != d.Rounds ||
			adversaries[r.Adversary] != d.Sum.Adversary {
			t.Errorf("%+v of %+v, and %+v of the job", config, r, d)
		}
		if one := s.Oneshot(); one != nil && (d.Sum.Covered != one.Terms.Covered ||
			max(d.Sum.Faults, 3*(1-min(d.Sum.Faults, 1))) != one.Terms.Faults) {
			t.Errorf("%+v, and %+v of the job", one.Terms, d.Sum)
		}
		if (p.Noise != 0) != d.Noisy() {
			t.Fatalf("noise %v is %q", p.Noise, d.Privacy.Noise)
		}
		if d.Noisy() {
			sameNoise(t, s, d, length, survivors)
		}
	})
	if settled < 18 {
		t.Errorf("%d are settled: the test does not see them", settled)
	}
}

// sameNoise compares what is settled with the noise that a job declares.
func sameNoise(t *testing.T, s *job.Settled, d *job.Job, length, survivors int) {
	t.Helper()
	var law accounting.Family
	if err := law.UnmarshalText([]byte(d.Privacy.Noise)); err != nil {
		t.Fatal(err)
	}
	release := privacy.Release{
		Contributors: privacy.Contributors{
			Parties:      parties,
			MinSurvivors: survivors,
			Colluders:    d.Parties.Colluders,
		},
		Noise:     privacy.Noise{Family: law, Clip: d.Privacy.Clip, Bits: d.Privacy.Bits},
		Dimension: length,
	}
	var err error
	release.Noise.Multiplier, err = release.Calibrate(
		privacy.Budget{Epsilon: d.Privacy.Epsilon, Delta: d.Privacy.Delta}, d.Rounds)
	if err != nil {
		t.Fatal(err)
	}
	mechanism, err := release.Mechanism()
	if err != nil {
		t.Fatal(err)
	}
	layout, err := mechanism.Layout()
	if err != nil || !reflect.DeepEqual(layout, s.Layout()) {
		t.Errorf("%v: layout %v, was %v", err, layout, s.Layout())
	}
	if !reflect.DeepEqual(mechanism.Round(), s.Round()) {
		t.Errorf("a round spends %+v, was %+v", mechanism.Round(), s.Round())
	}
}
