package hushsum

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// Fields that were left out, or are of no use, are told of at once by their names: nothing
// panics, stands still or dials.
func TestMisuseFields(t *testing.T) {
	j := newJob(t, testJob(), 7)
	committee := settledOneshot(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	is := func(name, field string, err error) {
		t.Helper()
		var c *ConfigError
		if !errors.As(err, &c) || c.Path != field {
			t.Errorf("%s: %v, want a ConfigError of %s", name, err, field)
		}
	}
	for name, c := range map[string]struct {
		field  string
		change func(p *Participant[float64])
	}{
		"no job":              {"Job", func(p *Participant[float64]) { p.Job = nil }},
		"no identity":         {"Identity", func(p *Participant[float64]) { p.Identity = nil }},
		"a nil identity":      {"Identity", func(p *Participant[float64]) { p.Identity = ed25519.PrivateKey(nil) }},
		"a short identity":    {"Identity", func(p *Participant[float64]) { p.Identity = make(ed25519.PrivateKey, 31) }},
		"no dialer":           {"Dialer", func(p *Participant[float64]) { p.Dialer = nil }},
		"a nil dialer":        {"Dialer", func(p *Participant[float64]) { p.Dialer = (*TCPDialer)(nil) }},
		"no work":             {"Work", func(p *Participant[float64]) { p.Work = nil }},
		"a dialer of nobody":  {"Dialer", func(p *Participant[float64]) { p.Dialer = &TCPDialer{} }},
		"a store without key": {"Key", func(p *Participant[float64]) { p.Store = new(MemoryStore) }},
	} {
		p := j.participant(0, nil)
		c.change(p)
		_, err := p.Run(ctx)
		is(name, c.field, err)
	}
	for name, c := range map[string]struct {
		field  string
		change func(c *Coordinator[float64])
	}{
		"no job":         {"Job", func(c *Coordinator[float64]) { c.Job = nil }},
		"no listener":    {"Listener", func(c *Coordinator[float64]) { c.Listener = nil }},
		"a nil listener": {"Listener", func(c *Coordinator[float64]) { c.Listener = (*TCPListener)(nil) }},
		"a time below 0": {"StepTime", func(c *Coordinator[float64]) { c.StepTime = -1 }},
		"no committee":   {"Committee", func(c *Coordinator[float64]) { c.Job = committee }},
	} {
		coordinator := j.coordinator(nil)
		c.change(coordinator)
		_, err := coordinator.Run(ctx)
		is(name, c.field, err)
	}
	members, _ := named(t, "member", 4)
	for name, c := range map[string]struct {
		field  string
		change func(m *Member)
	}{
		"no job":       {"Job", func(m *Member) { m.Job = nil }},
		"no committee": {"Job", func(m *Member) { m.Job = j.settled }},
		"no identity":  {"Identity", func(m *Member) { m.Identity = nil }},
		"no dialer":    {"Dialer", func(m *Member) { m.Dialer = nil }},
	} {
		m := &Member{Job: committee, Identity: members[0], Dialer: j.memory.Dialer(0)}
		c.change(m)
		is("member: "+name, c.field, m.Run(ctx))
	}

	// Keys that are of another kind, or of nobody.
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := j.participant(0, nil)
	p.Identity = other
	if _, err := p.Run(ctx); !errors.Is(err, keyexchange.ErrSigner) {
		t.Errorf("another kind of key: %v", err)
	}
	p.Identity = members[0]
	if _, err := p.Run(ctx); !errors.Is(err, ErrPeer) {
		t.Errorf("a key of nobody in the roster: %v", err)
	}
	m := &Member{Job: committee, Identity: j.signers[0], Dialer: j.memory.Dialer(0)}
	if err := m.Run(ctx); !errors.Is(err, ErrPeer) {
		t.Errorf("a key of nobody in the committee: %v", err)
	}
	for name, listen := range map[string]func() (*TCPListener, error){
		"Identity": func() (*TCPListener, error) {
			return ListenTCP("127.0.0.1:0", nil, j.settled.Roster())
		},
		"Roster": func() (*TCPListener, error) { return ListenTCP("127.0.0.1:0", members[0], nil) },
	} {
		l, err := listen()
		is("listen", name, err)
		if l != nil {
			t.Errorf("%s: a listener next to an error", name)
		}
	}
}

// oneshotJob settles a job with a committee of four.
func settledOneshot(t *testing.T) *Settled {
	t.Helper()
	declared := testJob()
	declared.Sum.Protocol, declared.Parties.DropOut = "oneshot", 0
	_, roster := identities(t, 7)
	_, committee := named(t, "member", 4)
	settled, err := declared.Settle(job.Files{Roster: roster, Committee: committee})
	if err != nil {
		t.Fatal(err)
	}
	return settled
}
