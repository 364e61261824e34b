package fuzz

import (
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// FuzzSession runs a session whose first two bytes choose the configuration and
// whose third says, by its lowest bit, whether it begins before the exchange of
// keys or after it. The rest is a schedule. See invariants_test.go for what must
// hold.
func FuzzSession(f *testing.F) {
	for i := range worlds() {
		for k, s := range schedules {
			// Every schedule in some configurations, and every configuration with
			// some schedules: all pairs would take a while.
			if (i+k)%suite.Size(10, 10, 5, 5) == 0 {
				f.Add(append([]byte{byte(i >> 8), byte(i), byte(k % 2)}, s...))
			}
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) < 3 {
			return
		}
		w := worlds()[(int(input[0])<<8|int(input[1]))%len(worlds())]
		w.prepare(t)
		var n *network
		if input[2]&1 == 0 {
			n = loadNetwork(t, w)
		} else {
			n = newNetwork(t, w, "begun")
		}
		n.logf("%s", w.name)
		n.run(input[3:])
		n.recover()
	})
}

// wholeRound is the stages of a whole round, for opRound.
const wholeRound = lastStage << 4

// schedules seed FuzzSession.
var schedules = []schedule{
	{},
	// The steps of a round, one by one.
	{
		opFlush, opKeys, opFlush, opBegin, 1, opFlush, opSubmitAll, opFlush, opSurvivors, opFlush,
		opCertificate, opFlush, opSum,
	},
	// Three rounds: nobody, the first, the second drops out, after each step.
	{
		opFlush, opKeys, opFlush, opRound, 0, wholeRound, opRound, 1, wholeRound | stageBegin,
		opRound, 2, wholeRound | stageMasked,
	},
	{
		opFlush, opKeys, opFlush, opRound, 4, wholeRound | stageSurvivors,
		opRound, 8, wholeRound | stageCertificate, opRound, 0, wholeRound,
	},
	{
		opFlush, opKeys, opFlush, opRound, 1, wholeRound | stageMasked, opRound, 1, wholeRound,
		opRound, 0, wholeRound,
	},
	// Duplicated, out of order, replayed.
	{
		opDuplicate, 0, opDelay, 1, opFlush, opKeys, opDelay, 0, opDuplicate, 2, opFlush, opBegin, 0,
		opDelay, 0, opDuplicate, 1, opFlush, opSubmit, 3, opSubmit, 0, opSubmitAll, opDeliver, 2,
		opReplay, 9, opReplay, 12, opFlush, opSurvivors, opDuplicate, 0, opFlush, opReplay, 20,
		opCertificate, opDelay, 0, opFlush, opReplay, 22, opSum, opReplay, 24, opReplay, 25,
	},
	// Crashes at every step.
	{
		opCrash, 0, opCrash, 5, opFlush, opKeys, opCrash, 1, opCrash, 4, opFlush, opBegin, 0, opFlush,
		opCrash, 0, opSubmitAll, opCrash, 0, opFlush, opCrash, 4, opSurvivors, opDeliver, 0, opCrash, 0,
		opFlush, opCrash, 5, opCertificate, opFlush, opCrash, 1, opCrash, 5, opFlush, opSum, opCrash, 5,
	},
	// Lost messages, a round given up, skipped rounds.
	{
		opFlush, opKeys, opDrop, 0, opFlush, opInvite, opFlush, opBegin, 0, opDrop, 1, opFlush,
		opSubmitAll, opBegin, 1, opFlush, opSubmitAll, opFlush, opSkip, opSurvivors, opSkip,
		opCertificate, opSum, opSkip, opSkip, opInvite, opFlush, opBegin, 2, opFlush,
	},
	// Corrupted: keys, the packed vector, an upload, a share, a signature.
	{
		opCorrupt, 0, 0, 0, 50, 1, opFlush, opKeys, opCorrupt, 0, 0, 0, 90, 2, opFlush,
		opRound, 0, stageBegin << 4, opSubmitAll, opCorrupt, 0, 0, 0, 46, 3, opFlush, opSurvivors,
		opFlush, opCertificate, opFlush, opSum,
	},
	{
		opFlush, opKeys, opFlush, opBegin, 0, opFlush, opSubmitAll, opCorrupt, 1, 0, 1, 200, 0,
		opFlush, opSurvivors, opFlush, opCertificate, opFlush, opSum,
		opRound, 1, wholeRound | stageMasked,
	},
	{
		opFlush, opKeys, opFlush, opRound, 1, stageSurvivors<<4 | stageMasked, opCertificate,
		opDeliver, 0, opCorrupt, 1, 0, 0, 60, 1, opCorrupt, 2, 2, 0, 60, 0, opFlush, opSum,
	},
	{
		opFlush, opKeys, opFlush, opRound, 0, stageMasked << 4, opSurvivors, opDeliver, 0,
		opCorrupt, 0, 3, 0, 1, 0, opFlush, opCertificate, opFlush, opSum,
	},
	// Another session's messages, as they are and with this session's name.
	{
		opCross, 1, 0, opCross, 5, 0, opFlush, opKeys, opCross, 6, 0, opFlush, opCross, 20, 1,
		opBegin, 0, opCross, 15, 1, opCross, 25, 1, opFlush, opSubmitAll, opCross, 30, 1, opFlush,
		opSurvivors, opCross, 40, 1, opFlush,
	},
	// Split views: of the participants, of the survivors, with the signatures
	// that there are.
	{
		opFlush, opKeys, opFlush, opBegin, 0, opForge, 0, 3, 2, opForge, 1, 3, 2, opFlush,
		opSubmitAll, opFlush, opSurvivors, opFlush, opCertify, 0, opCertify, 1, opCertify, 2,
		opFlush, opCertificate, opFlush, opSum,
	},
	{
		opFlush, opKeys, opFlush, opRound, 0, stageMasked << 4, opSurvivors, opForge, 0, 3, 2,
		opForge, 1, 3, 2, opFlush, opCertify, 0, opCertify, 1, opCertify, 2, opFlush,
		opCertificate, opFlush, opSum,
	},
	// A list of survivors without its receiver, one too short, one with a stranger.
	{
		opFlush, opKeys, opFlush, opRound, 0, stageMasked << 4, opSurvivors, opForge, 0, 0, 0x80,
		opForge, 1, 0, 0, opFlush, opCertificate, opFlush, opSum,
	},
	{
		opFlush, opKeys, opFlush, opRound, 0, stageMasked << 4, opSurvivors, opForge, 0, 1, 0,
		opForge, 0, 2, 0, opForge, 0, 3, 0, opFlush, opCertificate, opFlush, opSum,
	},
	{
		opFlush, opKeys, opDrop, 3, opFlush, opBegin, 0, opFlush, opSubmitAll, opFlush,
		opSurvivors, opForge, 0, 3, 0x80, opFlush, opCertificate, opFlush, opSum,
	},
	{
		opFlush, opKeys, opFlush, opBegin, 0, opForge, 0, 0, 0x80, opForge, 1, 0, 0,
		opForge, 1, 2, 0, opForge, 1, 3, 0, opFlush, opSubmitAll, opFlush,
	},
	// Shares of a survivor and of a drop-out that are wrong when they arrive.
	{
		opFlush, opKeys, opFlush, opRound, 1, stageSurvivors<<4 | stageMasked, opCertificate, opDeliver,
		0, opDeliver, 0, opDeliver, 0, opDeliver, 0, opCorrupt, 1, 0, 0, 51, 0, opCorrupt, 0, 0, 0, 90,
		0, opFlush, opSum, opReadmit, 0, opReadmit, 1, opRound, 0, wholeRound,
	},
	{
		opFlush, opKeys, opFlush, opRound, 0, stageSurvivors << 4, opCertificate, opDeliver, 0,
		opDeliver, 0, opDeliver, 0, opDeliver, 0, opCorrupt, 0, 0, 0, 51, 0, opFlush, opSum,
		opRound, 0, wholeRound,
	},
	// Any three of five: a session among four, rounds among three of them, one of whom
	// drops out, then among all.
	{
		opDrop, 4, opFlush, opKeys, opFlush, opKeys, opFlush, opRound, 0, wholeRound, opGather, 7,
		opFlush, opRound, 0, wholeRound, opRound, 1, wholeRound | stageMasked, opGather, 11, opFlush,
		opRound, 0, wholeRound, opGather, 31, opGather, 15, opFlush, opRound, 0, wholeRound,
	},
	// Gathered with too few, in a round, twice, with what was asked lost or late, and crashes.
	{
		opFlush, opKeys, opFlush, opGather, 3, opGather, 31, opDelay, 0, opDrop, 0, opCrash, 1, opFlush,
		opRound, 0, wholeRound, opGather, 13, opCrash, 5, opFlush, opBegin, 1, opGather, 31, opFlush,
		opSubmitAll, opFlush, opSurvivors, opGather, 28, opFlush, opCertificate, opFlush, opSum,
		opGather, 28, opReplay, 9, opReplay, 22, opFlush, opRound, 0, wholeRound,
	},
	// Another session's signatures and a party's message to another.
	{
		opFlush, opKeys, opFlush, opRound, 1, stageSurvivors<<4 | stageMasked, opCertify, 1,
		opCertificate, opMisdirect, 0, 3, opReadmit, 1, opFlush, opSum, opRound, 0, wholeRound,
	},
}
