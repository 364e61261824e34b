package protocol

import (
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/masking"
)

// A Carrier comes to the same sums whether parties work one by one or at once, in
// any order.
func TestCarrierEach(t *testing.T) {
	backwards := func(n int, work func(i int) error) error {
		for i := range n {
			if err := work(n - 1 - i); err != nil {
				return err
			}
		}
		return nil
	}
	for name, each := range map[string]func(int, func(int) error) error{"one by one": nil,
		"backwards": backwards, "at once": parallel} {
		signers, roster := parties(t, 5)
		config := &Config{Roster: roster, Layout: masking.Layout{{Length: 2, Bits: 16}},
			Recovery: &Recovery{Threshold: 3}}
		l, err := NewLocal(config, signers, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.Each = each
		for round, absent := range []int{-1, 2, -1} {
			in, _ := inputs(uint64(round), config.Layout, 5)
			if absent >= 0 {
				in[absent] = nil
			}
			sum, err := l.Round(nil, in)
			if err != nil || !equal(sum, sumOf(config.Layout, in, l.Server.Included())) {
				t.Fatalf("%s, round %d: %v", name, round, err)
			}
			if slices.Contains(l.Server.Included(), absent) || len(l.Server.Included()) < 4 {
				t.Errorf("%s, round %d: included %v", name, round, l.Server.Included())
			}
		}
		own := errors.New("own")
		if err := l.Begin(nil); err != nil {
			t.Fatal(err)
		}
		err = l.Submit(nil, func(party int) ([][]uint64, error) {
			if party == 3 {
				return nil, own
			}
			return [][]uint64{{1, 2}}, nil
		})
		if !errors.Is(err, own) {
			t.Errorf("%s: an input that fails: got %v", name, err)
		}
	}
}

// What becomes of a message that its receiver refuses.
func TestCarrierRefusals(t *testing.T) {
	signers, roster := parties(t, 4)
	config := &Config{Roster: roster, Layout: masking.Layout{{Length: 2, Bits: 16}},
		Recovery: &Recovery{Threshold: 2}}
	in, _ := inputs(1, config.Layout, 4)
	garble := func(from, to int) func(int, int, []byte) []byte {
		return func(f, t int, message []byte) []byte {
			if f == from && t == to {
				return append(slices.Clone(message), 0)
			}
			return message
		}
	}
	for _, c := range []struct{ from, to int }{{-1, 1}, {1, -1}} {
		l, err := NewLocal(config, signers, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.Carry = garble(c.from, c.to)
		if _, err := l.Round(nil, in); err != nil {
			t.Errorf("%v: as a loss: %v", c, err)
		}
		var told [][2]int
		l.Refused = func(from, to int, err error) error {
			told = append(told, [2]int{from, to})
			return err
		}
		if _, err := l.Round(nil, in); err == nil || errors.Is(err, ErrTooFew) {
			t.Errorf("%v: got %v, want the refusal", c, err)
		}
		if !slices.Equal(told, [][2]int{{c.from, c.to}}) {
			t.Errorf("%v: told of %v", c, told)
		}
		l.Refused = func(int, int, error) error { return nil }
		if _, err := l.Round(nil, in); err != nil {
			t.Errorf("%v: refusals are let pass, and the round fails: %v", c, err)
		}
	}
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.ToServer(2, []byte{1, 2, 3}); !errors.Is(err, ErrTruncated) {
		t.Errorf("without hooks: got %v, want ErrTruncated", err)
	}
}
