package oneshot

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// along makes noise of five values, of members that deviate by 20, point in one direction.
func along(noisy []int64) {
	for i := range noisy {
		noisy[i] = 50
	}
}

// TestAudit: a member whose noise is not drawn is named, with evidence that holds, and its noise is
// in no sum; one that had committed to false noise in the place of the candidate that the coin has
// drawn adds that. Whoever else is there, the sum comes out.
func TestAudit(t *testing.T) {
	remember(t)
	const liar = 4
	flip := func(at int) func(w *world, m []byte) []byte {
		return func(w *world, m []byte) []byte {
			m = slices.Clone(m)
			m[len(m)-auditTailSize+at] ^= 1
			return w.signedAudit(liar, m)
		}
	}
	for name, c := range map[string]struct {
		commit func(digests []byte) // to other candidates
		deal   func(w *world, m []byte) []byte
		passes bool
	}{
		"noise of its own": {deal: func(w *world, _ []byte) []byte {
			committed := w.server.open.candidates[liar]
			m := w.deal(5+liar, dealer{vector: along})
			w.server.open.candidates[liar] = committed
			return w.signedAudit(liar, m)
		}},
		"another key": {deal: func(w *world, m []byte) []byte { // under the y that was drawn
			r, s := w.server.open, w.server.config
			at := dealtBy(&r.context, r.coin, 5+liar)
			body := must(s.parseSubmission(m[bodyAt:len(m)-auditTailSize], 7))
			masked, other := hash(labels.OneshotMasked, body.masked), hash("another C_s")
			d := candidateDigest(&r.context, 5+liar, &masked, other[:])
			copy(r.candidates[liar][32*at:], d[:])
			return w.signedAudit(liar, m)
		}},
		"a candidate of no seed": {commit: func(digests []byte) {
			for t := range candidates { // the one that is drawn is as it was
				if at := 32 * t; t%2 == 1 {
					digests[at] ^= 1
				}
			}
		}, deal: func(w *world, m []byte) []byte {
			r := w.server.open
			if at := dealtBy(&r.context, r.coin, 5+liar); at%2 == 1 {
				r.candidates[liar][32*at] ^= 1
			}
			return w.signedAudit(liar, m)
		}},
		"another first seed": {deal: flip(0)},
		"another last seed":  {deal: flip(openedSize - 1)},
		"luck": {deal: func(w *world, m []byte) []byte {
			return w.deal(5+liar, dealer{vector: along})
		}, passes: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(5, 7, boundedNoise(7, 2))
			w.candidates = func(k int, digests []byte) []byte {
				if k == liar && c.commit != nil {
					digests = slices.Clone(digests)
					c.commit(digests[bodyAt:])
				}
				return digests
			}
			var named *MemberError
			w.noise = func(k int, m []byte) []byte {
				if k != liar {
					return m
				}
				err := w.server.Receive(c.deal(w, m))
				if c.passes && err == nil {
					return nil
				}
				if !errors.Is(err, ErrAudit) || !errors.As(err, &named) || w.server.Awaits(liar) {
					t.Fatal(err)
				}
				return nil
			}
			if err := w.begin(nil); err != nil {
				t.Fatal(err)
			}
			if err := w.deliver(nil); err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(w.server.NoiseOf(), liar); got != c.passes {
				t.Errorf("noise of %v", w.server.NoiseOf())
			}
			if !c.passes {
				if named == nil || named.Member != liar {
					t.Fatalf("%v is named", named)
				}
				checkNoiseEvidence(t, named.Evidence, liar)
			}
			sum, err := w.all()
			if err != nil {
				t.Fatal(err)
			}
			w.near(t, sum, w.total(0, 1, 2, 3, 4))
		})
	}
}

// TestAuditOdds: of all coins one in 16 draws a given candidate, by a χ² statistic of 15 degrees of
// freedom with a false alarm of 10^-6; so a false one goes in once in 16 times.
func TestAuditOdds(t *testing.T) {
	const coins = 1 << 16
	var counts [candidates]float64
	context := [32]byte{7}
	for i := range coins {
		coin := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(i))
		counts[dealtBy(&context, coin, 9)]++
	}
	chi := 0.0
	for _, n := range counts {
		d := n - coins/candidates
		chi += d * d / (coins / candidates)
	}
	if chi > 56.5 {
		t.Errorf("χ² is %v: %v", chi, counts)
	}
}

// TestCandidateKnown: a seed gives the same everywhere, or evidence would not hold everywhere
// (SPEC-ONESHOT.md §15.6). Wide noise is drawn by other tables than narrow noise.
func TestCandidateKnown(t *testing.T) {
	seed := bytes.Repeat([]byte{5}, seedSize)
	context := [32]byte{1, 2, 3}
	for _, c := range []struct {
		sigma   int64
		length  int
		covered bool
		want    string
	}{
		{20, 5, false, "2f75bcebd1e79bcd9ebb575e772f4ec18ebde5487722032baedaec9ea1031518"},
		{20, 5, true, "2036d10c0f9e7d93d34137a1f4b712cb7c10d0c94ac3868a1e40ddaf8bfbef8e"},
		{3000, 5000, false, "938f042f189811e7e532d4babbb68030b4ae63f8075fc9dd3acce288f59c584a"},
	} {
		terms := boundedNoise(7, 2)
		terms.Noise, terms.Length, terms.Covered = gaussian(c.sigma, 3), c.length, c.covered
		s := must(newWorld(5, 7, terms).config.settle())
		d := s.candidate(&context, 8, seed)
		if got := hex.EncodeToString(d[:]); got != c.want {
			t.Errorf("σ %d, %d values, covered %v: %s", c.sigma, c.length, c.covered, got)
		}
	}
}

// TestAuditOrder: there is a coin once C − Faults members have candidates, none of these are taken
// after it and no noise before it, from nobody without candidates; and a member answers one coin,
// once, and none after the first batch. Members and servers that were loaded do the same.
func TestAuditOrder(t *testing.T) {
	remember(t)
	w := newWorld(5, 7, boundedNoise(7, 2))
	_, keys := people("member", 7)
	key := must(keyexchange.GenerateSealKey(nil))
	load := func() {
		for k, m := range w.members {
			w.members[k] = must(LoadMember(w.config, keys[k], chacha(50+k), key, must(m.Save(key))))
		}
		w.server = must(LoadServer(w.config, 0, key, must(w.server.Save(key))))
	}
	if _, err := w.server.Coin(nil); !errors.Is(err, ErrPhase) {
		t.Errorf("a coin of no round: %v", err)
	}
	invite := w.server.Invite()
	for _, m := range w.members {
		if err := w.server.Receive(must(m.Receive(invite))); err != nil {
			t.Fatal(err)
		}
	}
	w.opening = must(w.server.Open([]byte("model")))
	var digests [][]byte
	for k, m := range w.members {
		digests = append(digests, must(m.Receive(w.opening)))
		if k < 4 {
			if err := w.server.Receive(digests[k]); err != nil {
				t.Fatal(err)
			}
		}
	}
	load()
	if _, err := w.server.Coin(nil); !errors.Is(err, ErrTooFew) || w.server.NoiseTaken() != 4 {
		t.Errorf("candidates of 4 of 7: %v", err)
	}
	if !w.server.Awaits(4) || w.server.Awaits(0) {
		t.Error("candidates are awaited of 0, or not of 4")
	}
	if err := w.server.Receive(digests[0]); !errors.Is(err, ErrDuplicate) {
		t.Errorf("candidates twice: %v", err)
	}
	short := digests[4][:len(digests[4])-1]
	if err := w.server.Receive(short); !errors.Is(err, ErrTruncated) {
		t.Errorf("candidates that are cut: %v", err)
	}
	header := func(kind wire.Type) []byte {
		return w.server.config.header(kind, &w.server.open.context, 1, wire.ServerIndex)
	}
	early := append(header(typeCoin), testCoin[:]...)
	ahead := must(w.members[5].Receive(early))
	if err := w.server.Receive(ahead); !errors.Is(err, ErrPhase) {
		t.Errorf("noise before the coin: %v", err)
	}
	if err := w.server.Receive(digests[4]); err != nil {
		t.Fatal(err)
	}
	coin := must(w.server.Coin(nil))
	load()
	if again := must(w.server.Coin(nil)); !bytes.Equal(again, coin) {
		t.Error("a second coin")
	}
	if err := w.server.Receive(digests[6]); !errors.Is(err, ErrPhase) {
		t.Errorf("candidates after the coin: %v", err)
	}
	if _, err := w.members[0].Receive(coin[:len(coin)-1]); !errors.Is(err, ErrTruncated) {
		t.Errorf("a coin that is cut: %v", err)
	}
	for k := range 5 {
		dealt := must(w.members[k].Receive(coin))
		load()
		if _, err := w.members[k].Receive(early); !errors.Is(err, ErrDuplicate) ||
			!bytes.Equal(w.members[k].Output(), dealt) {
			t.Errorf("another coin: %v", err)
		}
		if w.members[k].open.seeds != nil {
			t.Error("seeds are kept")
		}
		forged := slices.Clone(dealt)
		forged[len(forged)-1] ^= 1
		if err := w.server.Receive(forged); !errors.Is(err, ErrSignature) || !w.server.Awaits(k) {
			t.Errorf("a signature of nobody: %v", err)
		}
		if err := w.server.Receive(dealt[:len(dealt)-1]); !errors.Is(err, ErrTruncated) {
			t.Errorf("noise that is cut: %v", err)
		}
		if err := w.server.Receive(dealt); err != nil {
			t.Fatal(err)
		}
	}
	last := must(w.members[6].Receive(coin))
	if err := w.server.Receive(last); !errors.Is(err, ErrPhase) || w.server.Awaits(6) {
		t.Errorf("noise of no candidates: %v", err)
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	sum, err := w.all()
	if err != nil {
		t.Fatal(err)
	}
	w.near(t, sum, w.total(0, 1, 2, 3, 4))

	// After the first batch there is nothing left to draw.
	w = newWorld(5, 7, boundedNoise(7, 2))
	w.candidates = func(k int, digests []byte) []byte { return digests }
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	m := w.members[0]
	m.open.seeds = make([][32]byte, candidates)
	if _, err := m.Receive(must(w.server.Batch())[0].Message); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Receive(append(w.server.config.header(typeCoin, &w.server.open.context, 1,
		wire.ServerIndex), testCoin[:]...)); !errors.Is(err, ErrDuplicate) {
		t.Errorf("a coin after the batch: %v", err)
	}
}

// TestSilentAfterCoin: a member that has seen which candidate it is to deal, and deals nothing, is
// left out of the next 16 rounds where others are enough, and no longer; one that was convicted is
// left out of all. Where they are not enough its noise is in, so that no round is lost for it.
func TestSilentAfterCoin(t *testing.T) {
	remember(t)
	const gambler = 2
	w := newWorld(5, 7, boundedNoise(7, 2))
	silent := []int{gambler}
	w.noise = func(k int, m []byte) []byte {
		if slices.Contains(silent, k) {
			return nil
		}
		return m
	}
	round := func(want ...int) {
		t.Helper()
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		if err := w.deliver(nil); err != nil {
			t.Fatal(err)
		}
		if got := w.server.NoiseOf(); !slices.Equal(got, want) {
			t.Errorf("round %d has noise of %v, want %v", w.server.Round(), got, want)
		}
	}
	round(0, 1, 3, 4, 5, 6)
	silent = nil
	round(0, 1, 3, 4, 5, 6)
	key := must(keyexchange.GenerateSealKey(nil))
	w.server = must(LoadServer(w.config, 0, key, must(w.server.Save(key))))
	silent = []int{0, 1} // now its noise is needed
	round(2, 3, 4, 5, 6)
	silent = nil
	round(0, 1, 2, 3, 4, 5, 6) // three are doubted, and without them it is of too few
	w.server.Skip(3 + silentRounds)
	round(0, 1, 2, 3, 4, 5, 6)

	w.server.doubtCheat(5 + gambler)
	w.server.Skip(1000)
	round(0, 1, 3, 4, 5, 6)
}
