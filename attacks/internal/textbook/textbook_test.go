package textbook

import (
	"bytes"
	"crypto"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

const parties = 7

// testSession is a session of all parties, with segments of different widths.
func testSession(
	recovery *protocol.Recovery, colluders int,
) ([]crypto.Signer, *protocol.Config) {
	signers := Signers(parties)
	return signers, &protocol.Config{
		Label:     "textbook",
		Roster:    RosterOf("party", signers),
		Recovery:  recovery,
		Colluders: colluders,
		Classical: true,
		Layout: masking.Layout{
			{Length: 9, Bits: 20},
			{Length: 2, Bits: 64},
			{Length: 3, Bits: 3},
		},
	}
}

func stream(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// newParty makes a party of either implementation.
func newParty(
	t testing.TB, config *protocol.Config, signer crypto.Signer, random io.Reader, ours bool,
) Party {
	t.Helper()
	if ours {
		c, err := NewClient(config, signer, random, 0)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, err := protocol.NewClient(config, signer, random)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newServer(t testing.TB, config *protocol.Config, ours bool) Summer {
	t.Helper()
	if ours {
		s, err := NewServer(config, 0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, err := protocol.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inputs are those of a round; parties that are out have none. Their sum is that
// of the others.
func inputs(layout masking.Layout, rng *rand.Rand, out ...int) (in [][][]uint64, sum [][]uint64) {
	total, _ := masking.NewVector(layout)
	for i := range parties {
		v, _ := masking.NewVector(layout)
		values := v.Values()
		for j, s := range layout {
			for k := range values[j] {
				values[j][k] = rng.Uint64() >> (64 - s.Bits)
			}
		}
		for _, o := range out {
			if i == o {
				values = nil
			}
		}
		in = append(in, values)
		if values != nil {
			_ = v.Set(values...)
			_ = total.Add(v)
		}
	}
	return in, total.Values()
}

// In one session any mix of clients and either server come to exact sums, over
// rounds with and without drop-outs.
func TestMixedSessions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for _, recovery := range []*protocol.Recovery{
		nil, {}, {Threshold: 5}, {Adversary: protocol.CuriousServer},
	} {
		for mix := range 1 << 3 {
			signers, config := testSession(recovery, mix%3)
			s := NewSession(config, newServer(t, config, mix&1 == 1), nil)
			for i, signer := range signers {
				s.Clients = append(s.Clients, newParty(t, config, signer, nil, mix>>(1+i%2)&1 == 1))
			}
			if err := s.SetUp(); err != nil {
				t.Fatal(err)
			}
			for _, out := range [][]int{nil, {2}, nil, {0}, {6}} {
				if recovery == nil {
					out = nil
				}
				in, want := inputs(config.Layout, rng, out...)
				sum, err := s.Round([]byte("model"), in)
				if err != nil || !reflect.DeepEqual(sum, want) || len(s.Refusals) != 0 {
					t.Fatalf("recovery %+v, mix %03b, without %v: %v, refusals %v",
						recovery, mix, out, err, s.Refusals)
				}
			}
		}
	}
}

// Both implementations, given the same randomness and messages, send the same
// bytes.
func TestSameBytes(t *testing.T) {
	for _, recovery := range []*protocol.Recovery{nil, {}} {
		signers, config := testSession(recovery, 1)
		s := NewSession(config, newServer(t, config, false), nil)
		twins := make([]*twin, parties)
		for i, signer := range signers {
			twins[i] = &twin{Party: newParty(t, config, signer, stream(byte(i)), false),
				other: newParty(t, config, signer, stream(byte(i)), true)}
			s.Clients = append(s.Clients, twins[i])
		}
		if err := s.SetUp(); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 0))
		compared := 0
		for round := range 4 {
			in, _ := inputs(config.Layout, rng)
			if recovery != nil && round == 1 {
				in[3] = nil
			}
			if _, err := s.Round(nil, in); err != nil {
				t.Fatal(err)
			}
		}
		for i, tw := range twins {
			if tw.different != 0 || tw.compared == 0 {
				t.Errorf("party %d: %d of %d messages differ", i, tw.different, tw.compared)
			}
			compared += tw.compared
		}
		t.Logf("recovery %v: %d messages of parties are the same", recovery != nil, compared)
	}
}

// twin lets two implementations of a party answer the same messages.
type twin struct {
	Party
	other               Party
	compared, different int
}

func (w *twin) compare(a, b []byte, err error) ([]byte, error) {
	w.compared++
	if !bytes.Equal(a, b) {
		w.different++
	}
	return a, err
}

func (w *twin) Announce() []byte {
	a, _ := w.compare(w.Party.Announce(), w.other.Announce(), nil)
	return a
}

func (w *twin) Receive(message []byte) ([]byte, error) {
	b, _ := w.other.Receive(message)
	a, err := w.Party.Receive(message)
	return w.compare(a, b, err)
}

func (w *twin) Submit(broadcast []byte, values ...[]uint64) ([]byte, error) {
	b, _ := w.other.Submit(broadcast, values...)
	a, err := w.Party.Submit(broadcast, values...)
	return w.compare(a, b, err)
}

// Both have the same rules and digests for configurations.
func TestTerms(t *testing.T) {
	valid := 0
	for adversary := protocol.CheatingServer; adversary <= protocol.CuriousServer; adversary++ {
		for c := -1; c < parties; c++ {
			for threshold := range parties + 1 {
				for least := range parties + 2 {
					signers, config := testSession(&protocol.Recovery{
						Adversary:    adversary,
						Threshold:    threshold,
						MinSurvivors: least,
					}, c)
					a, err := NewTerms(config, 0)
					theirs := config.Validate()
					if (err == nil) != (theirs == nil) {
						t.Fatalf("%+v: got %v, protocol has %v", *config.Recovery, err, theirs)
					}
					if err != nil || least != 0 {
						continue
					}
					valid++
					client, err := protocol.NewClient(config, signers[0], nil)
					if err != nil {
						t.Fatal(err)
					}
					if got := [32]byte(client.Announce()[2:34]); got != a.Digest {
						t.Errorf("%+v: the digests differ", *config.Recovery)
					}
				}
			}
		}
	}
	if valid < 20 {
		t.Errorf("only %d configurations were valid", valid)
	}
}
