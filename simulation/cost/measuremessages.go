package cost

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/shamir"
)

// This file measures what is done with messages and lists, mostly by the server, with the
// functions that read and write messages.

// tree measures hash trees over ciphertexts as package protocol makes them.
func (m *meter) tree(u *Units) {
	text := make([]byte, kemText)
	var leaf [32]byte
	u.Leaf = m.per(1, func() error {
		h := sha256.New()
		h.Write([]byte{0})
		h.Write(make([]byte, 4))
		h.Write(text)
		leaf = [32]byte(h.Sum(nil))
		return nil
	})
	u.Node = m.per(1, func() error {
		var pair [1 + 2*treeNode]byte
		copy(pair[1:], leaf[:])
		leaf = sha256.Sum256(pair[:])
		return nil
	})
	const levels = 6
	paths := make([][][32]byte, 1<<levels)
	u.Climb = m.per(levels*len(paths), func() error {
		for k := range paths {
			paths[k] = nil
			for range levels {
				paths[k] = append(paths[k], leaf)
			}
		}
		return nil
	})
}

// The session that lists and shares are measured in.
const (
	meterParties = 4096
	meterNear    = 32
)

// lists measures what is done for each party of a session, and for each of a party's
// neighbours.
func (m *meter) lists(u *Units) error {
	set := wire.FullSet(meterParties)
	keys := &wire.Keys{
		Hybrid:    true,
		Announced: set,
		Entries:   make([]wire.KeyEntry, meterParties),
	}
	body := keys.AppendShared(nil)
	u.Entry = m.per(meterParties, func() error {
		parsed, err := wire.ParseKeys(body, meterParties, true, func(k *wire.Keys) (int, error) {
			if len(k.AppendShared(nil)) != len(body) {
				return 0, errMeasure
			}
			return 0, nil
		})
		if err != nil {
			return err
		}
		entries := make(map[int]*wire.KeyEntry)
		for i := range parsed.Announced.All() {
			entries[i] = &parsed.Entries[len(entries)]
		}
		return nil
	})
	all := slices.Collect(set.All())
	u.Listed = m.per(meterParties, func() error {
		if len(set.Of(all)) != meterParties {
			return errMeasure
		}
		return nil
	})
	var g *graph.Graph
	u.Place = m.per(meterParties, func() (err error) {
		g, err = graph.NewGraph(all, meterNear, graph.Seed{})
		return err
	})
	if m.err != nil {
		return m.err
	}
	u.Near = m.per(meterParties*meterNear, func() error {
		for i := range meterParties {
			if len(g.Neighbours(i)) != meterNear {
				return errMeasure
			}
		}
		return nil
	})
	signatures := make(wire.Certificate, meterParties)
	for i := range signatures {
		signatures[i].Party = i
	}
	made := make([][]byte, meterParties)
	near := make([][]int, meterParties)
	for i := range near {
		near[i] = g.Neighbours(i)
	}
	u.Attach = m.per(meterParties*meterNear, func() error {
		for i := range made {
			var own wire.Certificate
			for _, peer := range near[i] {
				at, _ := slices.BinarySearchFunc(signatures, peer,
					func(e wire.PartySignature, party int) int { return cmp.Compare(e.Party, party) })
				own = append(own, signatures[at])
			}
			made[i] = own.Append(nil)
		}
		return nil
	})
	return nil
}

// shares measures how the server passes shares on: those of a session, more than fit
// into a cache.
func (m *meter) shares(u *Units) error {
	all := make([]int, meterParties)
	for i := range all {
		all[i] = i
	}
	g, err := graph.NewGraph(all, meterNear, graph.Seed{})
	if err != nil {
		return err
	}
	near := make([][]int, meterParties)
	for i := range near {
		near[i] = g.Neighbours(i)
	}
	boxes := make([]wire.SealedShare, meterNear)
	sent := (&wire.Masked{
		Shares: boxes,
		Next: &wire.Upload{
			Blob:   make([]byte, wire.UploadSize(meterNear)-40-48*meterNear),
			Shares: boxes,
		},
	}).Append(nil)
	held := make([]*wire.Masked, meterParties)
	u.Take = m.per(2*meterParties*meterNear, func() (err error) {
		for i := range held {
			if held[i], err = wire.ParseMasked(sent, 0, meterNear, meterNear); err != nil {
				return err
			}
		}
		return nil
	})
	if m.err != nil {
		return m.err
	}
	made := make([][]byte, meterParties)
	head := (&wire.Header{}).Append(nil)
	u.Give = m.per(2*meterParties*meterNear, func() error {
		for i := range made { // as when a round begins, and as when it is told who is in it
			begin := wire.Begin{Shares: make([]wire.SealedShare, meterNear)}
			var survivors wire.Survivors
			for k, owner := range near[i] {
				at, _ := slices.BinarySearch(near[owner], i)
				begin.Shares[k] = held[owner].Shares[at]
				survivors.Shares = append(survivors.Shares, held[owner].Next.Shares[at])
			}
			made[i] = begin.Append(slices.Clone(head))
			made[i] = survivors.Append(slices.Clone(head))
		}
		return nil
	})
	bodies := make([][]byte, meterParties)
	for holder := range bodies {
		var revealed wire.Reveal
		for _, owner := range near[holder] {
			revealed = append(revealed, wire.OwnedShare{Owner: owner})
		}
		bodies[holder] = revealed.Append(nil)
	}
	u.Reveal = m.per(meterParties*meterNear, func() error {
		owned := make([][]shamir.Share, meterParties)
		for holder, body := range bodies {
			revealed, err := wire.ParseReveal(body, meterParties)
			if err != nil {
				return err
			}
			for k := range revealed {
				if _, found := slices.BinarySearch(near[holder], revealed[k].Owner); !found {
					return errMeasure
				}
				if _, err := shamir.ParseSecret(revealed[k].Share[:]); err != nil {
					return err
				}
			}
			for _, r := range revealed {
				owned[r.Owner] = append(owned[r.Owner], shamir.Share{Index: uint32(holder + 1)})
			}
		}
		for owner := range owned {
			// Those of holders that are trusted.
			owned[owner] = slices.DeleteFunc(slices.Clone(owned[owner]), func(s shamir.Share) bool {
				_, trusted := slices.BinarySearch(all, int(s.Index)-1)
				return !trusted
			})
		}
		return nil
	})
	return nil
}
