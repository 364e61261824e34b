package training

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
)

// made returns the training of a job of three parties with some rows.
func made(t *testing.T, change func(j *job.Job)) (*Training, *learning.Dataset) {
	t.Helper()
	rows, _, err := learning.Census(40, 1)
	if err != nil {
		t.Fatal(err)
	}
	j := &job.Job{Name: "x", Rounds: 9, Parties: job.Parties{Count: 3},
		Model: job.Model{Name: "logistic", Features: rows.Features, Classes: 2}}
	change(j)
	var members []keyexchange.Entry
	for i := range 3 {
		key := ed25519.NewKeyFromSeed(append(make([]byte, 31), byte(i))).Public().(ed25519.PublicKey)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("p", i), Key: key})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	settled, err := j.Settle(job.Files{Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	out, err := Of(settled)
	if err != nil {
		t.Fatal(err)
	}
	return out, rows
}

// The tensors that a job lists hold all of a standing, whatever the rules.
func TestStandingFlat(t *testing.T) {
	for name, change := range map[string]func(j *job.Job){
		"averaging": func(j *job.Job) {},
		"scaffold":  func(j *job.Job) { j.Training.Rule = "scaffold" },
		"fresh":     func(j *job.Job) { j.Training.Rule, j.Training.Variates = "scaffold", "fresh" },
		"fedga":     func(j *job.Job) { j.Training.Rule = "fedga" },
	} {
		made, _ := made(t, change)
		s := made.First()
		for i := range s.Counted {
			s.Counted[i] = i
		}
		for _, part := range [][]float64{s.Model, s.Variate, s.Gradient} {
			for k := range part {
				part[k] = float64(k)
			}
		}
		s.Round, s.Exchange = 5, made.Exchanges()
		again, err := made.Standing(made.Flat(s))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%s: %+v, %v, want %+v", name, again, err, s)
		}
	}
}

// A party keeps its control variates in a store, and takes those of a round that was counted.
func TestPartyKeepsVariates(t *testing.T) {
	made, rows := made(t, func(j *job.Job) { j.Training.Rule = "scaffold" })
	var store memory
	send := func(s *Standing) []float64 {
		t.Helper()
		p, err := made.Party(1, rows, &store)
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Message(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return m.Control
	}
	first := made.First()
	change := send(first)
	if !reflect.DeepEqual(send(first), change) {
		t.Error("the same sum has another message the second time")
	}
	missed, counted := *first, *first
	missed.Round, counted.Round = 2, 2
	counted.Counted = []int{0, 1, 0}
	before := append(memory(nil), store...)
	other := send(&missed)
	store = before
	if reflect.DeepEqual(send(&counted), other) {
		t.Error("whether a round counted a party makes no difference")
	}
	store = memory("none")
	p, err := made.Party(1, rows, &store)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Message(t.Context(), first); !errors.Is(err, ErrVariates) {
		t.Errorf("of another program: %v", err)
	}
}
