package job

import (
	"fmt"

	"github.com/hushsum/hushsum/accounting"
)

// theLaws has the theorems of the law of noise, of coins, of rounds, and of what can fail.
var theLaws = []theorem{
	{
		id: "lemma-1", of: "law", by: "privacy.noise", where: "docs/privacy-proofs.md, Lemma 1",
		words:  "discrete Laplace noise hides a vector as it hides one coordinate of its L1 norm",
		about:  func(r *run) bool { return r.law == accounting.FamilyDiscreteLaplace },
		admits: besideLane + " signs votes unit rows ",
		needs: []need{{"a bound on the L1 norm", func(f *figures) (string, bool) {
			s := f.charged.Update.Sensitivity
			return fmt.Sprintf("%.6g for an L2 norm of %.6g", s.L1, s.L2), s.L1 > s.L2-1
		}}},
		not: []unproved{{fields: "privacy.factorise", advice: "use discrete-gaussian noise",
			why: "a band's budget is an L2 norm, and that of discrete Laplace noise is not"}},
	},
	{
		id: "lemma-2", of: "law", by: "privacy.noise", where: "docs/privacy-proofs.md, Lemma 2",
		words:  "several rounds of it spend no more than Δ₁²/Δ₂² coordinates of Δ₂²/Δ₁ each do",
		about:  func(r *run) bool { return r.law == accounting.FamilyDiscreteLaplace },
		admits: besideLane + " signs votes unit rows ",
	},
	{
		id: "lemma-3", of: "law", by: "privacy.noise", where: "docs/privacy-proofs.md, Lemma 3",
		words: "symmetric log-concave noise of m shares hides a vector as Gaussian noise does, μ = μ₁Δ₂",
		about: everywhere, admits: anyField,
		needs: []need{{"shares of one such law", func(f *figures) (string, bool) {
			return f.law.String(), f.law == accounting.FamilyDiscreteGaussian ||
				f.law == accounting.FamilySkellam || f.law == accounting.FamilyDiscreteLaplace
		}}},
	},
	{
		id: "one-coordinate", of: "law", by: "privacy.noise", where: "docs/privacy-proofs.md, Lemma 4",
		words: "in one coordinate the law of the sum of shares is accounted for itself",
		about: func(r *run) bool { return r.law != accounting.FamilyDiscreteLaplace }, admits: anyField,
	},
	{
		id: "lemma-4", of: "law", by: "privacy.noise", where: "docs/privacy-proofs.md, Lemma 4",
		words:  "of wide discrete Gaussian shares μ₁ has a closed form",
		about:  func(r *run) bool { return r.law == accounting.FamilyDiscreteGaussian },
		admits: anyField,
	},
	{
		id: "lemma-5", of: "law", by: "privacy.noise", where: "docs/privacy-proofs.md, Lemma 5",
		words:  "of wide Skellam shares μ₁ has a closed form",
		about:  func(r *run) bool { return r.law == accounting.FamilySkellam },
		admits: anyField,
	},
	{
		id: "theorem-6", of: "coin", by: "privacy.unit",
		where: "docs/privacy-proofs.md, Theorem 6", assumes: accounting.AssumesCoins,
		words:  "a secret coin for each unit and submission samples the Gaussian pair",
		about:  func(r *run) bool { return r.records },
		admits: besideRecords,
		needs: []need{
			{"the rate of the coins", func(f *figures) (string, bool) {
				r := f.mechanism.Records()
				return fmt.Sprintf("%v is charged for coins of %v", f.charged.SecretRate, r.Rate),
					f.charged.SecretRate >= r.Rate && f.charged.Statement.Unit() != accounting.PartyUnit
			}},
			{"one instant for all, where coins decide how much work there is",
				func(f *figures) (string, bool) { return "there is none", f.timed || f.asks }},
		},
	},
	{
		id: "program", of: "coin", by: "privacy.unit",
		where:   "docs/privacy-proofs.md, Theorem 6",
		words:   "of a unit a party's own program makes what depends on that unit alone",
		about:   func(r *run) bool { return r.records && r.program },
		admits:  besideRecords,
		assumes: accounting.AssumesProgram | accounting.AssumesTime | accounting.AssumesLastBit,
	},
	{
		id: "hidden", of: "coin", by: "parties.hidden",
		where: "docs/privacy-proofs.md, Theorem 6", assumes: accounting.AssumesCoins,
		words:  "a secret coin of a party, which sends zeros otherwise, samples the Gaussian pair",
		about:  func(r *run) bool { return r.coin },
		admits: besideAll + " graph " + timed + " vector signs votes " + coin,
		needs: []need{
			{"the rate of the coin", func(f *figures) (string, bool) {
				return fmt.Sprintf("%v is charged for a coin of %v", f.charged.SecretRate, f.rate),
					f.charged.SecretRate >= f.rate
			}},
			{"one instant for all", func(f *figures) (string, bool) {
				return "there is none", f.timed
			}},
		},
		not: []unproved{{fields: "parties.per_round parties.participations", at: "parties.hidden",
			why:    "parties are drawn by a public rule or by a secret coin",
			advice: "leave it out, or parties.per_round and parties.participations"}},
	},
	{
		id: "equal", of: "rounds", by: "privacy.noise", where: "docs/privacy-proofs.md, Words",
		words: "all submissions compose, each dominated by the same pair, whoever chooses when",
		about: func(r *run) bool { return !r.band }, admits: anyField,
		needs: []need{{"a charge for each time that the guard lets a party submit",
			func(f *figures) (string, bool) {
				return fmt.Sprintf("%d for %d", f.charges, f.submissions), f.charges == f.submissions
			}}},
	},
	{
		id: "seldom", of: "rounds", by: "parties.participations",
		where:  "docs/privacy-proofs.md, Theorem 7",
		words:  "a party whose guard stops it after k submissions spends those of k",
		about:  func(r *run) bool { return r.seldom },
		admits: besideAll + " graph committee buffer " + timed + " vector signs votes " + draws + seldom,
	},
	{
		id: "theorem-7", of: "rounds", by: "privacy.factorise",
		where: "docs/privacy-proofs.md, Theorem 7",
		words: "submissions whose squared norms add up to S² are one of norm S",
		about: func(r *run) bool { return r.band },
		admits: " people budget work graph " + timed + band +
			" training.rule=fedavg,fedprox privacy.noise=discrete-gaussian,skellam ",
		needs: []need{
			{"coefficients whose squares add up to 1", func(f *figures) (string, bool) {
				squares := 0.0
				for _, c := range f.mechanism.Band() {
					squares += c * c
				}
				return fmt.Sprint(squares), squares <= 1+1e-9
			}},
			{"a charge for each band that a party begins", func(f *figures) (string, bool) {
				b := len(f.mechanism.Band())
				return fmt.Sprintf("%d for %d rounds in bands of %d", f.charges, f.rounds, b),
					f.charges*b >= f.rounds
			}},
		},
		not: []unproved{
			{fields: "parties.per_round parties.participations parties.hidden",
				why:    "parties take turns, and submit in each round",
				advice: "leave it out, or privacy.factorise"},
			{fields: "sum.max_weight privacy.clip_quantile",
				why:    "parts of an update have neither weights nor votes",
				advice: "leave it out, or privacy.factorise"},
			{fields: "training.mask", why: "signs of parts would be sent in each round",
				advice: "leave it out, or privacy.factorise"},
		},
	},
	{
		id: "chain", of: "rounds", by: "privacy.before",
		where: "job/before.go",
		words: "what was spent before is composed with what this job may spend",
		about: func(r *run) bool { return r.before }, admits: anyField,
	},
	{
		id: "zeros", of: "rounds", by: "privacy.noise", where: "docs/privacy-proofs.md, Words",
		words: "a party that has nothing in time sends zeros, which no bound excludes",
		about: everywhere, admits: anyField,
	},
	{
		id: "ready", of: "rounds", by: "privacy.submit_after",
		where: "docs/privacy-proofs.md, Words", assumes: accounting.AssumesInstant,
		words: "a submission may leave once it is ready if nobody learns how long that took; answers " +
			"of records are made before the round, and take as long whatever they are",
		about: func(r *run) bool { return !r.timed && !(r.asks && r.records) }, admits: anyField,
	},
	{
		id: "tables", of: "failure", by: "privacy.noise", where: "accounting/charge.go",
		words: "tables of samplers are within 2^-100 of their law, which δ is charged for",
		about: everywhere, admits: anyField,
		needs: []need{{"a charge for all that is drawn", func(f *figures) (string, bool) {
			least := float64(f.charged.Shares) * float64(f.lanes[0])
			return fmt.Sprintf("%.6g numbers, at least %.6g are drawn", f.charged.Samples, least),
				f.charged.TableDistance > 0 && f.charged.Samples >= least
		}}},
	},
	{
		id: "graph", of: "failure", by: "sum.sparse", where: "SPEC.md §13.1",
		words:  "a graph that falls apart costs δ its probability, once for each sum",
		about:  func(r *run) bool { return r.sparse },
		admits: besidePairwise + " graph ",
		needs: []need{{"a charge for it", func(f *figures) (string, bool) {
			return fmt.Sprintf("%.3g of %.3g", f.charged.Failure, f.failure), f.charged.Failure >= f.failure
		}}},
	},
	{
		id: "overrun", of: "failure", by: "privacy.unit", where: "docs/privacy-proofs.md, Theorem 6",
		words:  "zeros of a party that draws too many records cost δ their probability",
		about:  func(r *run) bool { return r.records },
		admits: besideRecords,
		needs: []need{{"a charge for it", func(f *figures) (string, bool) {
			p := f.mechanism.Records().Overrun()
			return fmt.Sprintf("%.3g of %.3g", f.charged.Overrun, p), f.charged.Overrun >= p
		}}},
	},
}
