package old

import (
	"crypto/ed25519"
	"fmt"
	"path"
	"reflect"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

const parties = 10 // of testdata's roster, and of plans

func rosterOf(t *testing.T, n int) *keyexchange.Roster {
	t.Helper()
	var members []keyexchange.Entry
	for i := range n {
		key := ed25519.NewKeyFromSeed(append(make([]byte, 31), byte(i))).Public().(ed25519.PublicKey)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("p", i), Key: key})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return roster
}

// planOfFile is the plan that the service made of a federation's file, nil if the file declares a
// training or names a file with the model.
func planOfFile(t *testing.T, text []byte) *job.Plan {
	t.Helper()
	f := new(file)
	if err := decode("x.toml", text, f); err != nil {
		t.Fatal(err)
	}
	if f.Training != nil || f.Model.File != "" {
		return nil
	}
	p := &job.Plan{Name: f.Name, Rounds: f.Rounds, Clip: f.Privacy.Clip, Bits: f.Privacy.Bits,
		Epsilon: f.Privacy.Epsilon, Delta: f.Privacy.Delta, DropOut: f.Recovery.DropOut,
		Colluders: f.Recovery.Colluders, Classical: f.Recovery.Classical}
	if noise := f.Privacy.Noise; noise != "" && noise != "none" {
		if err := p.Noise.UnmarshalText([]byte(noise)); err != nil {
			t.Fatal(err)
		}
	}
	p.Adversary = map[string]protocol.Adversary{"semi-malicious": protocol.SemiMaliciousServer,
		"curious": protocol.CuriousServer}[f.Recovery.Adversary]
	if f.Metrics.Share > 0 {
		p.Length = 2
	}
	for _, tensor := range f.Model.Tensor {
		personal := slices.ContainsFunc(f.Model.Personal, func(pattern string) bool {
			is, err := path.Match(pattern, tensor.Name)
			return is && err == nil
		})
		size := 1
		for _, k := range tensor.Shape {
			size *= k
		}
		if !personal {
			p.Length += size
		}
	}
	return p
}

// A plan, and a federation's file without a training, settles to the same figures as the job that
// it becomes: sessions, noise and what rounds spend.
func TestMeaning(t *testing.T) {
	compared := 0
	roster, committee := rosterOf(t, parties), rosterOf(t, 13)
	each(t, func(t *testing.T, _ string, text []byte, form string, j *job.Job, _ []string) {
		var p *job.Plan
		var err error
		switch form {
		case FormPlan:
			p, err = job.ParsePlan(text)
		case FormFederation:
			p = planOfFile(t, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			return
		}
		var was *job.Settled
		if p.Protocol == job.Oneshot {
			was, err = p.SettleOneshot(roster, committee)
		} else {
			was, err = p.Settle(roster)
		}
		if err != nil {
			t.Fatal(err)
		}
		files := job.Files{Roster: roster, Committee: committee}
		if len(j.Model.Personal) > 0 { // what is shared is fewer than what the job has
			files.Length = p.Length
			if j.Metrics.Share > 0 {
				files.Length -= 2
			}
		}
		is, err := j.Settle(files)
		if err != nil {
			t.Fatal(err)
		}
		compared++
		round, before := is.Round(), was.Round()
		if was.Mechanism() != nil { // of which a job takes no more than it needs
			if now, then := is.StdDev(is.MinSurvivors()), was.StdDev(was.MinSurvivors()); now > then*1.0001 {
				t.Errorf("the noise: %v, and was %v", now, then)
			}
			round.Update, before.Update = accounting.Lane{}, accounting.Lane{}
		}
		for _, c := range []struct {
			what    string
			is, was any
		}{
			{"rounds", is.Rounds(), was.Rounds()},
			{"the fewest in a sum", is.MinSurvivors(), was.MinSurvivors()},
			{"what a round spends", round, before},
			{"length", is.Layout()[0].Length, was.Layout()[0].Length},
		} {
			if !reflect.DeepEqual(c.is, c.was) {
				t.Errorf("%s: %+v, and was %+v", c.what, c.is, c.was)
			}
		}
		if was.Mechanism() != nil && !reflect.DeepEqual(is.Layout(), was.Layout()) {
			t.Errorf("the layout: %v, and was %v", is.Layout(), was.Layout())
		}
		if p.Protocol == job.Oneshot {
			sameTerms(t, is.Oneshot().Terms, was.Oneshot().Terms, was.Mechanism() != nil)
		} else {
			sameSession(t, is.Config(1), was.Config(1), j.Sum.Sparse)
		}
	})
	if compared < 20 {
		t.Errorf("%d are compared: the test does not see them", compared)
	}
}

// sameSession compares what sessions withstand. A plan has no sparse graph: what a graph changes
// is not compared.
func sameSession(t *testing.T, is, was *protocol.Config, sparse bool) {
	t.Helper()
	if is.MinMembers != was.MinMembers || is.Classical != was.Classical || is.Recovery == nil ||
		is.Recovery.Adversary != was.Recovery.Adversary ||
		is.Recovery.MinSurvivors != was.Recovery.MinSurvivors {
		t.Errorf("sessions: %+v %+v, and was %+v %+v", is, is.Recovery, was, was.Recovery)
	}
	if !sparse && (is.Colluders != was.Colluders || !reflect.DeepEqual(is.Recovery, was.Recovery)) {
		t.Errorf("thresholds: %+v, and was %+v", is.Recovery, was.Recovery)
	}
}

// sameTerms compares those of one message. Without noise the encoding, and so the bits, is another.
func sameTerms(t *testing.T, is, was oneshot.Terms, noisy bool) {
	t.Helper()
	if !noisy {
		is.Bits = was.Bits
	}
	is.Noise, was.Noise = noise.Law{}, noise.Law{} // which was compared
	if !reflect.DeepEqual(is, was) {
		t.Errorf("terms: %+v, and was %+v", is, was)
	}
}
