package hushsum

import (
	"crypto"
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// testTerms are of noise by its multiplier with signs next to the vectors, among five.
func testTerms(t *testing.T) (*job.Terms, []crypto.Signer) {
	t.Helper()
	people, roster := identities(t, 5)
	return &job.Terms{
		Release: privacy.Release{
			Contributors: privacy.Contributors{Parties: 5},
			Noise: privacy.Noise{
				Family: accounting.FamilySkellam, Multiplier: 2, Clip: 1, Bits: 20,
			},
			Dimension: 6,
			Signs:     &privacy.Signs{Dimension: 6, Part: .5},
		},
		Session: protocol.Config{Label: "by hand", Roster: roster},
	}, people
}

// Terms give sessions, submissions and means as a plan does, with signs next to them.
func TestTerms(t *testing.T) {
	terms, people := testTerms(t)
	settled, err := terms.Settle()
	if err != nil {
		t.Fatal(err)
	}
	m := settled.Mechanism()
	if layout, err := m.Layout(); err != nil || !slices.Equal(layout, settled.Layout()) ||
		len(layout) != 2 {
		t.Fatalf("%v, %v, want %v", layout, err, settled.Layout())
	}
	local, err := protocol.NewLocal(settled.Config(0), people, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{.5, -.5, .25, 0, 0, 0}
	inputs := make([][][]uint64, len(people))
	for i := range inputs {
		if inputs[i], err = m.Encode([32]byte{1}, want, []float64{1, 1, 1, 1, 1, -1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := local.Round(nil, inputs)
	if err != nil {
		t.Fatal(err)
	}
	mean, signs, err := m.Decode([32]byte{1}, sum, len(people))
	if err != nil || len(signs) != 6 {
		t.Fatal(signs, err)
	}
	for j := range want {
		// Ten standard deviations: once in 10^20 runs.
		if d := mean[j] - want[j]; d*d > 100*settled.StdDev(5)*settled.StdDev(5) {
			t.Errorf("coordinate %d: %v, want about %v", j, mean[j], want[j])
		}
	}
	if ledger, err := settled.Ledger(); ledger != nil || err != nil {
		t.Errorf("a ledger without a limit: %v, %v", ledger, err)
	}
	if settled.Round().Shares != 5 {
		t.Errorf("%+v", settled.Round())
	}
}

// Two sides whose terms differ in the noise alone have no session in common, and the
// driver takes plans only.
func TestTermsErrors(t *testing.T) {
	terms, people := testTerms(t)
	settled, err := terms.Settle()
	if err != nil {
		t.Fatal(err)
	}
	other := *terms
	other.Release.Noise.Multiplier = 1
	differs, err := other.Settle()
	if err != nil {
		t.Fatal(err)
	}
	if settled.Digest() == differs.Digest() ||
		settled.Config(0).Label == differs.Config(0).Label {
		t.Error("other noise under one label")
	}
	other.Release.Noise.Bits = 3
	var wrong *privacy.ConfigError
	if _, err := other.Settle(); !errors.As(err, &wrong) || wrong.Field != "Noise.Bits" ||
		!errors.Is(err, aggregation.ErrBits) {
		t.Errorf("3 bits: %v", err)
	}
	other = *terms
	other.Session.Colluders = 4
	if _, err := other.Settle(); !errors.Is(err, ErrConfig) || !errors.Is(err, protocol.ErrConfig) {
		t.Errorf("4 of 5 collude: %v", err)
	}
	var c *ConfigError
	for _, plan := range []*Settled{nil, settled} {
		if _, err := (&Coordinator{Job: plan}).Run(t.Context()); !errors.As(err, &c) ||
			c.Path != "Job" {
			t.Errorf("coordinator: %v", err)
		}
		p := &Participant{Job: plan, Identity: people[0]}
		if _, err := p.Run(t.Context()); !errors.As(err, &c) || c.Path != "Job" {
			t.Errorf("participant: %v", err)
		}
	}
}
