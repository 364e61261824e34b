package crook_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/oneshot/crook"
)

// What is shifted has a signature that holds: without a bound it is in the sum, and with one the
// proof shows it, in committees of all shapes of trees, with both kinds of keys, and in rounds that
// take what is late.
func TestShift(t *testing.T) {
	law, err := noise.DiscreteGaussian(big.NewRat(50*3, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, members := range []int{4, 5, 7, 8, 9, 13} {
		for _, terms := range []oneshot.Terms{{KEM: oneshot.KEMX25519}, {Stale: 2},
			{KEM: oneshot.KEMX25519, Norm: 290}, {Norm: 290}, {Stale: 2, Norm: 290}} {
			terms.Length, terms.Bits, terms.MinSurvivors, terms.Colluders = 5, 8, 4, 1
			terms.Faults, terms.Noise = 1, law
			c := &oneshot.Config{Label: "crook", Terms: terms}
			var parties, signers []ed25519.PrivateKey
			c.Roster, parties = roster(t, "party", 5)
			c.Committee, signers = roster(t, "member", members)
			shift(t, c, parties, signers)
		}
	}
}

func must[T any](x T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func shift(t *testing.T, c *oneshot.Config, parties, signers []ed25519.PrivateKey) {
	t.Helper()
	server := must(oneshot.NewServer(c, 0))(t)
	var members []*oneshot.Member
	for _, signer := range signers {
		members = append(members, must(oneshot.NewMember(c, signer, nil))(t))
	}
	tell := func(message func(k int) []byte) {
		for k, m := range members {
			if answer := must(m.Receive(message(k)))(t); answer != nil {
				if err := server.Receive(answer); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	all := func(b []byte) func(int) []byte { return func(int) []byte { return b } }
	tell(all(server.Invite()))
	opening := must(server.Open([]byte("model")))(t)
	tell(all(opening))
	refused := 0
	for i, key := range parties {
		p := must(oneshot.NewParty(c, key, nil))(t)
		message := must(p.Submit(opening, []byte("model"), make([]int64, 5)))(t)
		if i == 2 {
			if _, err := crook.Shift(c, key, message[1:], nil); err == nil {
				t.Error("half a message")
			}
			message = must(crook.Shift(c, key, message, []int64{0, -300}))(t)
		}
		err := server.Receive(message)
		var named *oneshot.PartyError
		switch {
		case err == nil:
		case errors.Is(err, oneshot.ErrProof) && errors.As(err, &named) && named.Party == 2 &&
			named.Evidence.Verify() == nil:
			refused++
		default:
			t.Fatal(err)
		}
	}
	if c.Norm > 0 {
		if refused != 1 {
			t.Errorf("%d members, %+v: nobody is refused", len(signers), c.Terms)
		}
		return
	}
	batches := make(map[int][]byte)
	for _, e := range must(server.Batch())(t) {
		batches[e.To] = e.Message
	}
	tell(func(k int) []byte { return batches[k] })
	tell(all(must(server.Settle())(t)))
	tell(all(must(server.Close())(t)))
	tell(all(must(server.Certificate())(t)))
	sum := must(server.Sum())(t)
	if sum[1] < -500 || sum[1] > -100 || sum[0] > 200 || sum[0] < -200 { // deviations of 16 at most
		t.Errorf("%d members, %+v: the sum is %v", len(signers), c.Terms, sum)
	}
}

func roster(t *testing.T, kind string, n int) (*keyexchange.Roster, []ed25519.PrivateKey) {
	t.Helper()
	keys, list := make([]ed25519.PrivateKey, n), make([]keyexchange.Entry, n)
	for i := range keys {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
		list[i] = keyexchange.Entry{Name: fmt.Sprintf("%s-%d", kind, i),
			Key: key.Public().(ed25519.PublicKey)}
	}
	r, err := keyexchange.NewRoster(list)
	if err != nil {
		t.Fatal(err)
	}
	return r, keys
}

// What a dealer submits that cheats in nothing is in the sum, and what it deals badly is named by
// the member to whom it is dealt, in committees and crowds with wide lanes too.
func TestDealer(t *testing.T) {
	law, err := noise.DiscreteGaussian(big.NewRat(50*2, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ members, parties, colluders int }{{4, 4, 1}, {7, 320, 300}} {
		c := &oneshot.Config{Label: "crook", Terms: oneshot.Terms{Length: 5, Bits: 8,
			MinSurvivors: x.colluders + 2, Colluders: x.colluders, Faults: 1, Noise: law, Norm: 290,
			KEM: oneshot.KEMX25519}}
		var parties, signers []ed25519.PrivateKey
		c.Roster, parties = roster(t, "party", x.parties)
		c.Committee, signers = roster(t, "member", x.members)
		server := must(oneshot.NewServer(c, 0))(t)
		var members []*oneshot.Member
		invite := server.Invite()
		for _, key := range signers {
			m := must(oneshot.NewMember(c, key, nil))(t)
			members = append(members, m)
			if err := server.Receive(must(m.Receive(invite))(t)); err != nil {
				t.Fatal(err)
			}
		}
		opening := must(server.Open([]byte("model")))(t)
		for i := range 2 {
			d := crook.Dealer{Config: c, Key: parties[i], Party: i, Vector: []int64{100, -100, 3}}
			if i == 1 {
				d.Spoil = func(k int, values [][32]byte) {
					if k == 2 {
						values[len(values)-1][0] ^= 1
					}
				}
			}
			if err := server.Receive(must(d.Submit(opening))(t)); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range members {
			must(m.Receive(opening))(t)
		}
		for _, e := range must(server.Batch())(t) {
			if err := server.Receive(must(members[e.To].Receive(e.Message))(t)); err != nil {
				t.Fatal(err)
			}
		}
		must(server.Settle())(t)
		var named *oneshot.PartyError
		if got := server.Convicted(); len(got) != 1 || !errors.As(got[0], &named) || named.Party != 1 {
			t.Errorf("%v are convicted", got)
		} else if k, leaf := named.Evidence.Member(); k != 2 || !leaf || named.Evidence.Verify() != nil {
			t.Error("the evidence does not hold")
		}
		if server.Settled() != 1 {
			t.Errorf("%d parties are in", server.Settled())
		}
	}
}
