// Package committee attacks the sum from one message a party: the committee that takes
// the key off it, what members, parties and servers send, and the lattice behind the
// masks. The target without a defence is a member, party or decoder written anew from
// SPEC-ONESHOT.md, less that defence; the target with it is package oneshot of the module.
package committee

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/attacks"
)

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	cheating := "cheating server, one member"
	return []attacks.Attack{
		attack("OneshotSets", cheating,
			"has members add up one party alone, in name or in fact, or two sets that differ only by it",
			"MinSurvivors; signed statements; one answer a round, with a quorum on one list", runSets),
		attack("OneshotTwice", cheating,
			"has an input counted twice: the party again, or a colluder's copy of its box",
			"a party is taken once; leaf and box name their party", runTwice),
		attack("OneshotMasks", cheating,
			"recovers inputs from masks: a chosen a, one key for two messages, no errors",
			"a is expanded from the context; one answer a round number; errors on every coordinate",
			runMasks),
		attack("OneshotBroadcast", cheating,
			"shows parties different models and adds their submissions up",
			"the broadcast's digest is in the context", runBroadcast),
		attack("OneshotParts", "colluding members",
			"send wrong parts, so that the committee gives another sum or blames an honest member",
			"a ≥ r + f + e parts, or no sum", runParts),
		attack("OneshotDealers", "colluding parties",
			"deal shares of no key, or send a submission that does not match it",
			"decoding and spare coordinates show that the sum is spoilt, but not by whom", runDealers),
		attack("OneshotDisputes", "colluding members", "dispute the boxes of honest parties",
			"charges: a member that disputes too much is ignored", runDisputes),
		attack("OneshotComplaints", "server, one party",
			"copies encapsulated keys of honest boxes into bad ones, so that members reveal their secrets",
			"a dispute is one bit: no member reveals a secret of a box", runComplaints),
		attack("OneshotStolenKeys", "later thief",
			"opens a recorded round with the states of all members",
			"round keys and parts are erased with the answer", runStolen),
		attack("OneshotRamp", "colluding members", "pool the parts of a party",
			"t parts reveal nothing; from t + 1 on, a documented limit", runRamp),
		attack("OneshotNoise", "cheating server",
			"withholds noise of members, so that the sum has too little",
			"a member counts the noise of C − f members before it signs", runNoise),
		attack("OneshotGroups", "colluding parties, cheating server",
			"move the median of groups by a backdoor, or leave a victim alone with a colluder in its group",
			"the median, groups that nobody chooses; MinSurvivors of each group", runGroups),
		attack("NormLong", "malicious party",
			"sends more than it may, or what matches no key",
			"a proof of a bounded norm under the key that is dealt; the server names the party",
			runNormLong),
		attack("NormKeyNoise", "malicious party, or outsider",
			"hides a long vector under noise, or takes the difference of two sums",
			"key noise: no more than hides keys; it protects no input, a documented limit", runKeyNoise),
		attack("NormRubbish", "malicious party",
			"makes the server check any number of proofs that do not hold",
			"a party whose signature holds and whose proof does not is out of the round", runNormRubbish),
		attack("NormCopies", "malicious party",
			"shows an honest party's proof for its own, or what can be made of it",
			"every hash of a proof covers all that comes before it, and the whole statement", runNormCopies),
		attack("NormParts", "malicious party",
			"proves what is false, with one part of the proof taken away",
			"rows with zeros, a modulus of 24 times the bound, the order of the hashes, sums under noise, "+
				"wide lanes, the cofactor", runNormParts),
		attack("NormFrame", "cheating server",
			"frames an honest party, before others and before members",
			"everything by which a dealer is judged is under its signature", runNormFrame),
		attack("NormDrawn", "malicious member",
			"deals noise in a direction that it chooses, as long as its proof allows",
			"the server draws which of 16 candidates is dealt, and sees the seeds of the others",
			runNormDrawn),
		attack("OneshotLattice", "curious server",
			"looks for the key by lattice reduction, in a toy ring, with and without the sum of two keys",
			"degree, modulus and deviation: the margin of Parameters", runLattice),
	}
}

// runner collects the rows of an attack.
type runner struct {
	o    attacks.Options
	ctx  context.Context
	rows []attacks.Row
}

// counts adds a row of exact counts of one trial: how often the attack succeeds without
// and with the defence, which must be once and never.
func (r *runner) counts(name, metric string, undefended, defended bool) {
	r.rows = append(r.rows, attacks.Row{Case: name, Metric: metric,
		Undefended: attacks.Exactly(one(undefended), 1, 1), Defended: attacks.Exactly(one(defended), 1,
			0)})
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func attack(name, adversary, about, defence string, run func(*runner) error) attacks.Attack {
	return attacks.Attack{Name: name, Adversary: adversary, About: about, Defence: defence,
		Run: func(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
			r := &runner{o: o, ctx: ctx}
			err := ctx.Err()
			if err == nil {
				err = run(r)
			}
			if err != nil {
				return nil, fmt.Errorf("attacks: %s: %w", name, err)
			}
			return &attacks.Report{Rows: r.rows}, nil
		}}
}
