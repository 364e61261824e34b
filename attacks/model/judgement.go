package model

import (
	"cmp"
	"math"
	"slices"
)

// Scored is a guess about one row of one model: the higher the score, the likelier the
// row was in its training.
type Scored struct {
	Score  float64
	Member bool // whether it was
	Model  int  // which model, counted from 0
}

// Judgement says how well scores tell members from other rows.
type Judgement struct {
	// AUC is the probability that a member has a higher score than another row, ties
	// counting half, and AUCError its standard error (Hanley, McNeil 1982), which does not
	// account for the dependence between scores of one model or one row.
	AUC, AUCError float64
	// TPR is the share of members found at a false-positive rate of at most FPR.
	TPR, FPR        float64
	Members, Others int
	// TruePositives and FalsePositives are the counts at that threshold.
	TruePositives, FalsePositives int
}

// Judge evaluates scores of members and of others, in any order, at a false-positive rate
// of at most fpr. It fails with [ErrMembership].
func Judge(scores []Scored, fpr float64) (Judgement, error) {
	sorted := slices.Clone(scores)
	slices.SortFunc(sorted, func(a, b Scored) int { return cmp.Compare(b.Score, a.Score) })
	var j Judgement
	for _, s := range sorted {
		if s.Member {
			j.Members++
		} else {
			j.Others++
		}
	}
	if j.Members == 0 || j.Others == 0 || !(fpr >= 0 && fpr <= 1) {
		return Judgement{}, ErrMembership
	}
	membersAbove, othersAbove := 0, 0
	wins := 0.0 // pairs of a member and another row in which the member's score is higher
	for next := 0; next < len(sorted); {
		members, others := 0, 0 // with the same score
		for tied := sorted[next].Score; next < len(sorted) && sorted[next].Score == tied; next++ {
			if sorted[next].Member {
				members++
			} else {
				others++
			}
		}
		wins += float64(others) * (float64(membersAbove) + float64(members)/2)
		membersAbove += members
		othersAbove += others
		if float64(othersAbove) <= fpr*float64(j.Others) {
			j.TruePositives, j.FalsePositives = membersAbove, othersAbove
		}
	}
	n1, n0 := float64(j.Members), float64(j.Others)
	j.AUC = wins / (n1 * n0)
	j.AUCError = aucError(j.AUC, n1, n0)
	j.TPR, j.FPR = float64(j.TruePositives)/n1, float64(j.FalsePositives)/n0
	return j, nil
}

// aucError returns the standard error of an AUC a of n1 members and n0 others (Hanley,
// McNeil 1982, for exponential scores).
func aucError(a, n1, n0 float64) float64 {
	q1, q2 := a/(2-a), 2*a*a/(1+a)
	variance := (a*(1-a) + (n1-1)*(q1-a*a) + (n0-1)*(q2-a*a)) / (n1 * n0)
	return math.Sqrt(max(0, variance))
}

// PrivateAUC returns the largest AUC of any attack on an (ε, δ)-differentially private
// training: the area under TPR ≤ e^ε·FPR + δ and its mirror image, which meet at
// FPR = (1−δ)/(1+e^ε).
func PrivateAUC(epsilon, delta float64) float64 {
	x := (1 - delta) / (1 + math.Exp(epsilon))
	y := 1 - x
	// From (0, δ) to (x, y), on to (1−δ, 1), then flat.
	return x*(delta+y)/2 + (1-delta-x)*(y+1)/2 + delta
}

// rowBound returns the (ε, δ) that a client-level (ε, δ) under zero-out adjacency allows
// for a row in or out of a client that takes part either way. Both are neighbours of the
// client that submits zero: TPR ≤ e^ε·(e^ε·FPR + δ) + δ.
func rowBound(epsilon, delta float64) (rowEpsilon, rowDelta float64) {
	return 2 * epsilon, (1 + math.Exp(epsilon)) * delta
}
