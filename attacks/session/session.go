package session

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// This file and the others that begin with protocol attack the messages of the
// private sum. The target without a defence is package textbook, a second
// implementation of the specification, less that defence. The target with it is
// package protocol and, to show that the one defence makes the difference,
// textbook with nothing left out: a row has the worse of the two. Colluders are
// played by textbook, which keeps nothing from the server.

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	cheating, curious, anyone := "cheating server", "curious server", "anyone"
	return []attacks.Attack{
		protocolAttack("SplitView", cheating, "tells some parties that one survived and others that it dropped out, and collects both of its secrets",
			"thresholds; signatures of more than half on one list of survivors", splitView),
		protocolAttack("SplitParticipants", cheating, "shows a party a round of few honest parties, and the others the truth",
			"participants are checked, and agreed on through the context", splitParticipants),
		protocolAttack("ModelInconsistency", cheating, "gives a dead model to all but one party, so that the sum is that one's update",
			"the broadcast's digest is in the context", modelInconsistency),
		protocolAttack("LateInput", cheating, "declares a party dropped out, and uses the input that it held back",
			"the self mask", lateInput),
		protocolAttack("MaskReuse", curious, "compares what a party sends in two rounds or sessions",
			"single-use rounds, the ratchet, the round in the context, a key of its own for each session", maskReuse),
		protocolAttack("StolenState", "later thief", "opens a recorded round with the states of any number of parties",
			"ratcheted chains; keys and shares are erased", stolenStates),
		protocolAttack("KeySubstitution", cheating, "puts keys of its own in the places of others",
			"keys are signed by the identities of the roster", keySubstitution),
		protocolAttack("ThresholdDowngrade", cheating, "hands out a configuration with a low threshold, or another one to each",
			"configurations are validated, and part of what is signed", thresholdDowngrade),
		protocolAttack("Sybil", "server with n − 1 clients", "subtracts its own clients' inputs from the sum",
			"a roster that does not come from the server; noise for the rest", sybil),
		protocolAttack("WrongShares", "colluding clients", "reveals wrong shares, so that a wrong mask comes off the sum",
			"the owner's commitment; correction of up to ⌊(shares − t)/2⌋ wrong shares", wrongShares),
		protocolAttack("Malformed", anyone, "cuts, lengthens and changes messages of every type",
			"one encoding per message; nothing changes when one is refused", malformed),
		protocolAttack("Replay", anyone, "delivers messages of other rounds and sessions to everybody at every step",
			"session and round in every message and signature", replay),
		protocolAttack("Reorder", anyone, "delivers messages before they are due, or again",
			"each message is taken in one state only", reorder),
		protocolAttack("Flood", anyone, "sends many copies, and rounds far ahead",
			"one message a party and step; MaxSkip", flood),
	}
}

// protocolAttack wraps an attack that adds rows to a runner.
func protocolAttack(name, adversary, about, defence string, run func(*runner)) attacks.Attack {
	return attacks.Attack{Name: name, Adversary: adversary, About: about, Defence: defence,
		Run: func(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
			r := &runner{ctx: ctx, o: o}
			run(r)
			if r.err != nil {
				return nil, fmt.Errorf("attacks: %s: %w", name, r.err)
			}
			return &r.report, nil
		}}
}

// target is what an attack is run against.
type target struct {
	without textbook.Defence // what textbook lacks
	real    bool             // package protocol
}

// lacks reports whether the target lacks any of the given defences.
func (t target) lacks(d textbook.Defence) bool { return t.without&d != 0 }

// client makes one honest party of the target.
func (t target) client(config *protocol.Config, signer crypto.Signer) (textbook.Party, error) {
	if t.real {
		return protocol.NewClient(config, signer, nil)
	}
	return textbook.NewClient(config, signer, nil, t.without)
}

// parties makes all parties of a session; colluders run textbook.
func (t target) parties(config *protocol.Config, signers []crypto.Signer, colluders ...int) ([]textbook.Party, error) {
	out := make([]textbook.Party, len(signers))
	for i, signer := range signers {
		of := t
		if slices.Contains(colluders, i) {
			of.real = false
		}
		var err error
		if out[i], err = of.client(config, signer); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// server makes a server of the target.
func (t target) server(config *protocol.Config) (textbook.Summer, error) {
	if t.real {
		return protocol.NewServer(config)
	}
	return textbook.NewServer(config, t.without)
}

// session makes a session of the target, before set-up.
func (t target) session(config *protocol.Config, signers []crypto.Signer) (*textbook.Session, error) {
	server, err := t.server(config)
	if err != nil {
		return nil, err
	}
	parties, err := t.parties(config, signers)
	if err != nil {
		return nil, err
	}
	return textbook.NewSession(config, server, parties), nil
}

// ready makes a session of the target that is set up, with whom carry lets it.
func (t target) ready(config *protocol.Config, signers []crypto.Signer, carry func(from, to int, message []byte) []byte) (*textbook.Session, error) {
	s, err := t.session(config, signers)
	if err != nil {
		return nil, err
	}
	s.Carry = carry
	return s, s.SetUp()
}

// span is the range that a figure must be in.
type span struct{ min, max float64 }

func is(x float64) span      { return span{x, x} }
func atLeast(x float64) span { return span{x, math.Inf(1)} }

// none is for figures that one of the targets does not have.
var none = span{1, 0}

// metric is what a case measures, and where it must be.
type metric struct {
	name                 string
	undefended, defended span
}

// figures are what a run against one target gives: one value for each metric of
// the case, and of how many.
type figures struct {
	values  []float64
	samples int
}

// counts makes figures of whole numbers.
func counts(of int, values ...int) figures {
	f := figures{samples: of}
	for _, v := range values {
		f.values = append(f.values, float64(v))
	}
	return f
}

// runner collects the rows of an attack. After an error it does nothing more.
type runner struct {
	ctx    context.Context
	o      attacks.Options
	report attacks.Report
	err    error
}

// compare runs an attack against textbook without some defences, and against the
// targets that have them, and adds a row for each metric.
func (r *runner) compare(name string, without textbook.Defence, run func(target) (figures, error), metrics ...metric) {
	r.compareTargets(name, target{without: without}, []target{{real: true}, {}}, run, metrics...)
}

func (r *runner) compareTargets(name string, weak target, defended []target, run func(target) (figures, error), metrics ...metric) {
	if r.err != nil {
		return
	}
	if r.err = r.ctx.Err(); r.err != nil {
		return
	}
	of := func(t target) figures {
		f, err := run(t)
		if err == nil && len(f.values) != len(metrics) {
			err = fmt.Errorf("%d figures, want %d", len(f.values), len(metrics))
		}
		if err != nil {
			r.err = errors.Join(r.err, fmt.Errorf("%s, against %+v: %w", name, t, err))
			f.values = make([]float64, len(metrics))
		}
		return f
	}
	undefended := of(weak)
	var hardened []figures
	for _, t := range defended {
		hardened = append(hardened, of(t))
	}
	if r.err != nil {
		return
	}
	for i, m := range metrics {
		row := attacks.Row{Case: name, Metric: m.name, Undefended: measure(undefended, i, m.undefended)}
		for _, f := range hardened {
			// The first, unless a later one is out of range.
			one := measure(f, i, m.defended)
			if row.Defended.Missing() || row.Defended.OK() && !one.OK() {
				row.Defended = one
			}
		}
		r.report.Rows = append(r.report.Rows, row)
	}
}

// limit marks the last rows as documented limits.
func (r *runner) limit(rows int, note string) {
	if r.err != nil {
		return
	}
	for i := len(r.report.Rows) - rows; i < len(r.report.Rows); i++ {
		r.report.Rows[i].Limit, r.report.Rows[i].Note = true, note
	}
}

func measure(f figures, i int, want span) attacks.Measure {
	if want == none {
		return attacks.Measure{}
	}
	m := attacks.Exactly(f.values[i], f.samples, 0)
	m.Min, m.Max = want.min, want.max
	return m
}

// attackLayout has 256·32 + 32·64 = 10,240 bits: unrelated vectors are equal with
// probability 2^-10240, and one 64-bit value of them with 2^-64.
var attackLayout = masking.Layout{{Length: 256, Bits: 32}, {Length: 32, Bits: 64}}

// attackConfig is a session of n parties with fixed identities; recovery may be
// nil. Keys are classical: textbook knows no others.
func attackConfig(n int, recovery *protocol.Recovery, colluders int) ([]crypto.Signer, *protocol.Config) {
	signers := textbook.Signers(n)
	return signers, &protocol.Config{Label: "attack", Roster: textbook.RosterOf("party", signers), Layout: attackLayout,
		Recovery: recovery, Colluders: colluders, Classical: true}
}

// randomInputs draws an input for each of n parties.
func randomInputs(seed uint64, layout masking.Layout, n int) [][][]uint64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	in := make([][][]uint64, n)
	for i := range in {
		for _, s := range layout {
			x := make([]uint64, s.Length)
			for k := range x {
				x[k] = rng.Uint64() >> (64 - s.Bits)
			}
			in[i] = append(in[i], x)
		}
	}
	return in
}

// sumOf is the sum of some parties' inputs in the ring.
func sumOf(layout masking.Layout, in [][][]uint64, parties []int) [][]uint64 {
	out := make([][]uint64, len(layout))
	for j, s := range layout {
		out[j] = make([]uint64, s.Length)
		for _, i := range parties {
			for k, x := range in[i][j] {
				out[j][k] = (out[j][k] + x) & (^uint64(0) >> (64 - s.Bits))
			}
		}
	}
	return out
}

// minus is a − b in the ring of attackLayout.
func minus(a, b [][]uint64) [][]uint64 {
	out := make([][]uint64, len(a))
	for j, s := range attackLayout {
		for k := range a[j] {
			out[j] = append(out[j], (a[j][k]-b[j][k])&(^uint64(0)>>(64-s.Bits)))
		}
	}
	return out
}

func equal(a, b [][]uint64) bool { return a != nil && reflect.DeepEqual(a, b) }

// agreements counts equal 64-bit values, of 32. Of unrelated vectors, any agree
// with probability 32·2^-64.
func agreements(a, b [][]uint64) int {
	n := 0
	for i := range a[1] {
		if a[1][i] == b[1][i] {
			n++
		}
	}
	return n
}

// nibbles is the number of half bytes in the 32-bit segment of attackLayout.
const nibbles = 256 * 8

// chiSquare is χ² over the 16 values of the half bytes of 32-bit values, with 15
// degrees of freedom: of uniform values it is above 80 with probability below
// 1e-10.
func chiSquare(values []uint64) float64 {
	var count [16]float64
	for _, x := range values {
		for shift := 0; shift < 32; shift += 4 {
			count[x>>shift&15]++
		}
	}
	mean, chi := float64(8*len(values))/16, 0.0
	for _, c := range count {
		chi += (c - mean) * (c - mean) / mean
	}
	return chi
}

// uniform is where chiSquare is of values without structure.
var uniform = span{0, 80}

// upTo is the parties 0 to n − 1.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// except is a list without some parties.
func except(list []int, out ...int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(i int) bool { return slices.Contains(out, i) })
}

// one is 1 if it is true, for counting.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
