package drive_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/oneshot"
)

// complaint is the type of messages with leaves that convict (SPEC-ONESHOT.md §14.2).
const complaint = 76

// boundedCouncil is a job with a bound, five members of whom one may lie, and four parties.
func boundedCouncil(t *testing.T, seed uint64) *jobtest.Council {
	return jobtest.NewCouncil(t, seed, jobtest.CouncilOptions{Parties: 4, Members: 5, Rounds: 2,
		Terms:  boundedTerms(t),
		Vector: func(party int, round uint64) []int64 { return []int64{int64(party), 100, -5} }})
}

// near checks that a round's sum is that of the vectors of parties 0 to 3, less one of them.
func near(w *jobtest.Council, round uint64, without int) {
	want := []int64{6, 400, -20}
	if without >= 0 {
		want[0], want[1], want[2] = want[0]-int64(without), want[1]-100, want[2]+5
	}
	for i, v := range w.Values[round] {
		if v-want[i] > 105 || v-want[i] < -105 { // 7.4 deviations of 7.1 of each of four parties
			w.Fatal("round %d: the sum is %v, and %v without noise", round, w.Values[round], want)
		}
	}
	if len(w.Values[round]) != len(want) {
		w.Fatal("round %d has no sum", round)
	}
}

// A party that deals one member a share that does not fit is convicted by that member's complaint:
// it is out, with evidence that convinces others, nobody is charged, the round's sum is that of the
// others, and the party is in no further round. The server may die at
// any time in between; -long tries more of them.
func TestCommitteeComplaint(t *testing.T) {
	const cheat, member = 2, 3
	for killed := range 12 {
		if !suite.Long() && killed%6 != 0 {
			continue
		}
		t.Run(fmt.Sprint(killed), func(t *testing.T) {
			w := boundedCouncil(t, 1)
			w.Parties[cheat].Misdeal(member)
			complaints := 0
			w.Members[member].Rewrite = func(b []byte) []byte {
				if h, _, _ := wire.ParseHeader(b); h.Type == complaint {
					complaints++
				}
				return b
			}
			startAll(w)
			w.Run(func() bool { return drive.Batches(w.Hub.Drive()) == 1 })
			if killed > 0 { // once that many messages have come, or things were saved
				for range killed - 1 {
					w.Step()
				}
				w.Hub.Kill()
				w.Hub.Start()
			}
			w.Run(func() bool { return len(w.Sums) == 1 })
			if got := w.Sums[1]; !slices.Equal(got, []int{0, 1, 3}) {
				w.Fatal("round 1 has %v", got)
			}
			near(w, 1, cheat)
			w.Run(w.Ended)
			named := 0
			for _, n := range w.Notices {
				var blamed *oneshot.PartyError
				switch n.Kind {
				case drive.Spoiler:
					if n.Party != cheat || !errors.As(n.Err, &blamed) || n.Round != 1 ||
						blamed.Evidence.Verify() != nil || blamed.Evidence.Party() != cheat {
						w.Fatal("%+v", n)
					}
					if k, leaf := blamed.Evidence.Member(); !leaf || k != member {
						w.Fatal("evidence of the leaf of %d, %v", k, leaf)
					}
					named++
				case drive.Liar, drive.Stall:
					w.Fatal("%+v", n)
				}
			}
			// A server that dies before it has saved who is out names it again.
			out := w.Hub.Drive().At(aParty(cheat)).Excluded
			if named == 0 || killed == 0 && named != 1 || complaints == 0 || !out {
				w.Fatal("named %d times, %d complaints, excluded: %v", named, complaints, out)
			}
			if len(w.Sums) != 2 || w.Lost() != 0 {
				w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
			}
			for round, in := range w.Sums {
				if slices.Contains(in, cheat) {
					w.Fatal("round %d has %v", round, in)
				}
				near(w, round, cheat)
			}
		})
	}
}

// A complaint that does not convict is its member's alone: the party is in, and the member has no
// further part in the round, as one that is charged in full, whether it makes the leaf up in place
// of its answer or before it. The sum comes out without it, and nobody waits.
func TestCommitteeFalseComplaint(t *testing.T) {
	const liar, victim = 3, 1
	for _, after := range []bool{false, true} {
		w := boundedCouncil(t, 1)
		parts, lies := 0, 0
		w.Members[liar].Rewrite = func(b []byte) []byte {
			h, body, _ := wire.ParseHeader(b)
			switch h.Type {
			case 69: // its disputes, of a batch of all parties
				lies++
				h.Type = complaint
				plain := bytes.Repeat([]byte{7}, plainSize(t, w))
				lie := slices.Concat(h.Append(nil), body, binary.BigEndian.AppendUint32(nil, victim), plain)
				if !after {
					return lie
				}
				err := receive(w.Hub.Drive(), w, aMember(liar), lie)
				if !errors.Is(err, oneshot.ErrComplaint) {
					w.Fatal("a complaint about nothing: %v", err)
				}
			case 74:
				parts++
			}
			return b
		}
		startAll(w)
		w.Run(w.Ended)
		if len(w.Sums) != 2 || w.Lost() != 0 || lies < 2 || parts == 0 {
			w.Fatal("%d sums, %d lost, %d lies", len(w.Sums), w.Lost(), lies)
		}
		for round, in := range w.Sums {
			if !slices.Equal(in, []int{0, 1, 2, 3}) {
				w.Fatal("round %d has %v", round, in)
			}
			near(w, round, -1)
		}
		for _, n := range w.Notices {
			if n.Kind == drive.Spoiler {
				w.Fatal("%+v", n)
			}
		}
		for _, said := range []error{oneshot.ErrComplaint, oneshot.ErrExcluded} {
			if !w.Logged(fmt.Sprintf("server refuses member %d: %v (member %d, member-%d)", liar, said,
				liar, liar)) && (said == oneshot.ErrExcluded || !after) {
				w.Fatal("it is not told: %v", said)
			}
		}
		if w.Now() > 3*drive.Second {
			w.Fatal("rounds wait for a member that is out")
		}
	}
}

// plainSize returns how many bytes are in a member's box.
func plainSize(t *testing.T, w *jobtest.Council) int {
	figures, err := w.Hub.Config().Sums.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	return 32*figures.Polynomials + 32 + 32
}
