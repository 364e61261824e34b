package job

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// theTheorems is the table, in the order of a derivation.
var theTheorems = slices.Concat(theSums, theLaws)

// theSums has the theorems of sums, and of what a unit adds to them.
var theSums = []theorem{
	{
		id: "all-submit", of: "sum", by: "privacy.noise", where: "SPEC.md §13.1",
		words:  "a sum is of all parties of a session, of whom all but the colluders are honest",
		about:  func(r *run) bool { return !r.oneshot && !r.recovers },
		admits: besidePairwise + draws,
		needs:  []need{{"two honest parties", twoHonest}},
	},
	{
		id: "curious", of: "sum", by: "sum.adversary", where: "SPEC.md §13.1",
		words:  "a server that follows the protocol learns the sum of the survivors alone",
		about:  func(r *run) bool { return r.recovers && !r.sparse && r.adversary == curious },
		admits: besidePairwise + draws,
		needs: []need{{"more shares to rebuild a secret than colluders", eachSize(
			func(s size, c int) (string, bool) {
				return fmt.Sprintf("%d of %d parties, %d colluders", s.threshold, s.parties, c),
					s.threshold > c
			})}},
	},
	{
		id: "cheating", of: "sum", by: "parties.drop_out", where: "SPEC.md §13.1",
		words:  "a server that cheats learns one sum a round, of the fewest survivors or more",
		about:  func(r *run) bool { return r.recovers && !r.sparse && r.adversary != curious },
		admits: besidePairwise + draws,
		needs: []need{
			{"a threshold above half of the neighbours and colluders together", eachSize(
				func(s size, c int) (string, bool) {
					return fmt.Sprintf("%d of %d neighbours, %d colluders", s.threshold, s.degree, c),
						2*s.threshold > s.degree+c
				})},
			{"more than half of a round and the colluders in each sum", eachSize(
				func(s size, c int) (string, bool) {
					return fmt.Sprintf("%d of %d parties, %d colluders", s.survivors, s.parties, c),
						2*s.survivors > s.parties+c && s.survivors > s.threshold
				})},
		},
	},
	{
		id: "curious-sparse", of: "sum", by: "sum.sparse",
		where: "SPEC.md §13.1", assumes: accounting.AssumesGraph,
		words:  "as curious, but for a small probability a round",
		about:  func(r *run) bool { return r.sparse && r.adversary == curious },
		admits: besidePairwise + " graph ",
		needs: []need{{"fewer corrupt neighbours than shares to rebuild a secret", eachSize(
			func(s size, c int) (string, bool) {
				return fmt.Sprintf("%d of %d neighbours, %d shares", c, s.degree, s.threshold),
					c < s.threshold
			})}},
	},
	{
		id: "semi-sparse", of: "sum", by: "sum.sparse", where: "SPEC.md §13.7",
		words:  "a server that cheats once keys are exchanged may take a sum of few honest parties",
		about:  func(r *run) bool { return r.sparse && r.adversary != curious },
		admits: besideNoise + " graph ",
		not: []unproved{{fields: "privacy.noise", at: "sum.sparse",
			why: "on a sparse graph a server that cheats after keys are exchanged may take a sum of few " +
				"neighbours, which have few shares of the noise",
			advice: `leave it out, or write sum.adversary = "curious"`}},
	},
	{
		id: "drawn", of: "sum", by: "parties.per_round", where: "SPEC.md §13.10",
		words:  "a session of any parties that a server gathers has thresholds of its own",
		about:  func(r *run) bool { return r.drawn },
		admits: besideAll + timed + " vector signs votes " + draws + seldom,
	},
	{
		id: "one-message", of: "sum", by: "sum.protocol", where: "SPEC-ONESHOT.md §10",
		words:  "one sum a round is decrypted, of the fewest survivors or more",
		about:  func(r *run) bool { return r.oneshot },
		admits: besideOneMessage,
		needs: []need{
			{"two honest parties", func(f *figures) (string, bool) {
				return fmt.Sprintf("%d parties, %d colluders", f.terms.MinSurvivors, f.colluders),
					f.terms.MinSurvivors-f.colluders >= 2
			}},
			{"more than three members for each that is faulty", func(f *figures) (string, bool) {
				return fmt.Sprintf("%d of %d members", f.terms.Faults, f.members),
					f.terms.Faults >= 1 && f.members > 3*f.terms.Faults
			}},
			{"polynomials that members in league cannot read", func(f *figures) (string, bool) {
				return fmt.Sprintf("%d of %d members", f.terms.InLeague, f.members),
					f.terms.InLeague >= f.terms.Faults && f.members > 2*f.terms.Faults+f.terms.InLeague
			}},
			{"a charge for what keys and proofs show by themselves", func(f *figures) (string, bool) {
				least := oneshot.Distance(f.parties, f.members, f.terms.Length, f.bounded)
				return fmt.Sprintf("%.3g of %.3g", f.charged.Overrun, least), f.charged.Overrun >= least
			}},
		},
		not: []unproved{
			{fields: "privacy.noise", why: "of one-message sums only discrete Gaussian noise hides the keys",
				advice: "use discrete-gaussian"},
			{fields: "privacy.submit_after", why: "one-message sums are not sent at an instant",
				advice: `write sum.protocol = "pairwise"`},
			{fields: "training.mask", why: "signs of one-message sums have no noise",
				advice: "leave it out, or privacy.noise"},
			{fields: "privacy.clip_quantile", why: "votes of one-message sums have no noise",
				advice: "leave it out, or privacy.noise"},
			{fields: "privacy.unit", at: "sum.protocol",
				why: "one-message sums add up parties' vectors", advice: `write "pairwise"`},
			{fields: "sum.groups", why: "noise that hides a party in its group hides a cheat there too, " +
				"whatever is taken of the groups", advice: "leave it out, or privacy.noise"},
			{fields: "privacy.factorise", why: "the noise of one-message sums is in their masks",
				advice: `write sum.protocol = "pairwise"`},
		},
	},
	{
		id: "dealt", of: "sum", by: "privacy.noise_by", where: "SPEC-ONESHOT.md §15.4",
		words: "a sum has the noise of all members but the faulty ones and those in league, whoever " +
			"the parties are",
		about:  func(r *run) bool { return r.dealt },
		admits: besideOneMessage,
		needs: []need{{"shares of as many members", func(f *figures) (string, bool) {
			least := f.members - f.terms.Faults - f.terms.InLeague
			return fmt.Sprintf("%d are counted of %d", f.charged.Shares, least),
				f.terms.CommitteeNoise && f.charged.Shares == least
		}}},
	},
	{
		id: "bounded", of: "sum", by: "sum.bounded", where: "SPEC-ONESHOT.md §14.5",
		words:  "a party that proves no bound is in no sum, which leaves the others as they are",
		about:  func(r *run) bool { return r.bounded },
		admits: besideOneMessage,
		needs: []need{{"room for a vector of the bound", func(f *figures) (string, bool) {
			l2 := f.mechanism.Vector.Sensitivity.L2
			// What is charged is a float64 above the product.
			return fmt.Sprintf("%d times %d for %.6g", f.heaviest, f.terms.Norm, l2),
				float64(f.heaviest)*float64(f.terms.Norm) >= l2*(1-0x1p-50)
		}}},
	},
	{
		id: "open", of: "sum", by: "sum.protocol", where: "SPEC-ONESHOT.md §10.5",
		words: "a server that saw submissions before it chose who is in a sum learns no more, if " +
			"Hint-RLWE is hard for sets that are chosen adaptively",
		about:  func(r *run) bool { return r.oneshot && !r.covered },
		admits: besideOneMessage,
	},
	{
		id: "covered", of: "sum", by: "sum.covered", where: "SPEC-ONESHOT.md §10.1",
		words:  "who is in a sum is settled before the server has a submission",
		about:  func(r *run) bool { return r.covered },
		admits: besideOneMessage,
	},
	{
		id: "release", of: "sum", by: "privacy.noise", where: "docs/privacy-proofs.md, Words",
		words: "the shares that are charged for are honest, and in every sum",
		about: everywhere, admits: anyField,
		needs: []need{{"no more shares than the sessions promise", func(f *figures) (string, bool) {
			return fmt.Sprintf("%d of %d", f.charged.Shares, f.fewest), f.dealt ||
				f.charged.Shares <= f.fewest
		}}},
	},
	{
		id: "rounded-vector", of: "bound", by: "privacy.noise", where: "aggregation/rounding.go",
		words:  "a vector is as short as the integer test of its rounding lets it be",
		about:  func(r *run) bool { return !r.records },
		admits: anyField,
		needs: []need{{"the bound of the encoder", func(f *figures) (string, bool) {
			s, err := f.mechanism.Encoder.Sensitivity()
			charged := f.charged.Update.Sensitivity
			return fmt.Sprintf("%.9g charged of %.9g", charged.L2, s.L2), err == nil &&
				(f.band || charged.L2 >= s.L2 && charged.Dimension >= s.Dimension)
		}}},
		not: []unproved{
			{fields: "training.rule", why: "control variates and gradients would be summed without noise",
				advice: "use fedavg or fedprox"},
			{fields: "training.variates", why: "control variates would be summed without noise",
				advice: "use fedavg or fedprox"},
			{fields: "training.submit", why: "updates are clipped, and weights are not",
				advice: `write "updates"`},
			{fields: "sum.range sum.fraction_bits", advice: "leave it out",
				why: "sums with noise use privacy.bits and a scale that follows from it"},
		},
	},
	{
		id: "weight", of: "bound", by: "sum.max_weight", where: "aggregation/weighted.go",
		words:  "a vector with its weight is within a joint clip",
		about:  func(r *run) bool { return r.weight },
		admits: besideLane + " committee buffer signs votes ",
		needs: []need{{"a coordinate more", func(f *figures) (string, bool) {
			return fmt.Sprintf("%d next to %d", f.lanes[0], f.vector), f.lanes[0] == f.vector+1
		}}},
	},
	{
		id: "declared-weight", of: "bound", by: "parties.weights", where: "SPEC-ONESHOT.md §14.7",
		words:  "a vector counts as often as the roster says, and the heaviest is charged for",
		about:  func(r *run) bool { return r.weighed },
		admits: besideOneMessage,
		needs: []need{{"the norm of the heaviest", func(f *figures) (string, bool) {
			s, err := f.mechanism.Encoder.Sensitivity()
			charged := f.charged.Update.Sensitivity.L2
			return fmt.Sprintf("%.9g charged of %d times %.9g", charged, f.heaviest, s.L2), err == nil &&
				charged >= float64(f.heaviest)*s.L2
		}}},
	},
	{
		id: "metrics", of: "bound", by: "metrics.share", where: "job/metrics.go",
		words:  "metrics are in the vector, and so within its clip",
		about:  func(r *run) bool { return r.metrics },
		admits: besideLane + " committee buffer signs ",
	},
	{
		id: "stale", of: "bound", by: "sum.buffer", where: "job/lanes.go",
		words:  "work of an earlier model is weighted before it is clipped",
		about:  func(r *run) bool { return r.stale },
		admits: besideOneMessage,
	},
	{
		id: "personal", of: "bound", by: "model.personal", where: "job/settle.go",
		words:  "tensors that stay with a party are in no sum",
		about:  func(r *run) bool { return r.personal },
		admits: besideLane + " committee buffer signs ",
	},
	{
		id: "signs", of: "bound", by: "training.mask", where: "aggregation/signs.go",
		words:  "the signs of d coordinates have norm √d, and noise of their own",
		about:  func(r *run) bool { return r.signs },
		admits: besideLane + " signs ",
		needs:  []need{{"their norm", besideNorm}},
		not: []unproved{{fields: "privacy.clip_quantile", why: "votes and signs do not share a lane",
			advice: "leave it out, or training.mask"}},
	},
	{
		id: "votes", of: "bound", by: "privacy.clip_quantile", where: "aggregation/signs.go",
		words:  "a vote has norm 1, and noise of its own",
		about:  func(r *run) bool { return r.votes },
		admits: besideLane + " votes ",
		needs:  []need{{"its norm", besideNorm}},
	},
	{
		id: "moving-clip", of: "bound", by: "privacy.clip_quantile", where: "training/party.go",
		words:  "the clip follows the noisy sums of votes alone",
		about:  func(r *run) bool { return r.votes },
		admits: besideLane + " votes ",
	},
	{
		id: "unit-sum", of: "bound", by: "privacy.unit", where: "aggregation/rounding.go",
		words:  "how far a unit moves a sum over units, once that is rounded, has a bound",
		about:  func(r *run) bool { return r.records },
		admits: besideRecords,
		needs: []need{
			{"the bound of the encoder", func(f *figures) (string, bool) {
				s, err := f.mechanism.Encoder.Sensitivity()
				l2 := f.charged.Update.Sensitivity.L2
				return fmt.Sprintf("%.9g charged of %.9g", l2, s.L2), err == nil && l2 >= s.L2 &&
					f.mechanism.Encoder.Units >= f.mechanism.Records().Most()
			}},
			{"a charge for roundings beyond it", func(f *figures) (string, bool) {
				p, err := f.mechanism.Encoder.Overlong()
				return fmt.Sprintf("%.3g of %.3g", f.charged.Failure, p), err == nil &&
					f.charged.Failure >= p+f.failure
			}},
		},
		not: []unproved{
			{fields: "model.name=lenet-norm", advice: "use lenet",
				why: "batch normalisation mixes records, so that no clip bounds what one of them does"},
			{fields: "sum.max_weight parties.per_round parties.hidden privacy.clip_quantile metrics.share",
				why:    "what parties send is a sum over records, divided by training.batch",
				advice: "leave it out"},
			{fields: "model.personal", advice: "leave it out",
				why: "tensors that stay with a party are made of many records, and then so is each gradient"},
			{fields: "training.mask", why: "signs of sums over records hide no record",
				advice: "leave it out"},
			{fields: "privacy.factorise", advice: "leave it out, or protect parties",
				why: "a record may be part of everything that its party makes"},
			{fields: "training.rule", why: "a round is one step over the records that coins draw",
				advice: "leave it out"},
		},
	},
	{
		id: "rows", of: "bound", by: "query[].kind", where: "query/plan.go",
		words:  "a row adds at most √share to the numbers of a query, and a party's rows at most that",
		about:  func(r *run) bool { return r.asks },
		admits: besideAll + " graph committee unit rows ",
		needs: []need{{"a clip of 1", func(f *figures) (string, bool) {
			return fmt.Sprint(f.mechanism.Encoder.Clip), f.mechanism.Encoder.Clip == 1
		}}},
	},
}

const curious = protocol.CuriousServer

func everywhere(*run) bool { return true }

func twoHonest(f *figures) (string, bool) {
	return fmt.Sprintf("%d parties, %d colluders", f.parties, f.colluders), f.parties-f.colluders >= 2
}

// eachSize is a need of a session's smallest size and its largest; SPEC.md §3.2 says why they are
// enough.
func eachSize(holds func(s size, colluders int) (string, bool)) func(*figures) (string, bool) {
	return func(f *figures) (value string, ok bool) {
		for _, s := range f.ends {
			if value, ok = holds(s, f.colluders); !ok {
				return value, false
			}
		}
		return value, len(f.ends) == 2
	}
}

// besideNorm is the need of a second lane.
func besideNorm(f *figures) (string, bool) {
	s, err := aggregation.Signs{Parties: f.parties, Dimension: f.lanes[1]}.Sensitivity()
	if err != nil || f.charged.Signs == nil {
		return "it has none", false
	}
	charged := f.charged.Signs.Sensitivity.L2
	return fmt.Sprintf("%.9g of %.9g", charged, s.L2), charged >= s.L2
}
