package sidecar

import (
	"encoding/binary"
	"math/big"

	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/noise"
)

var noiseCalls = map[string]handler{"noise.sample": sampleNoise}

// maxSamples is the most samples that a call may ask for.
const maxSamples = 1 << 27

// sampleNoise returns samples as little-endian int64.
func sampleNoise(_ *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Family    noise.Family `json:"family"`
		Scale     float64      `json:"scale"`      // sigma² or variance, or t
		Count     int          `json:"count"`      //
		Parties   int          `json:"parties"`    // 0: all of it
		MinHonest int          `json:"min_honest"` // of the parties; 0: all
		Exact     bool         `json:"exact"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	if with.Count < 0 || with.Count > maxSamples {
		return nil, nil, fieldError("count", "", "%d is outside 0 to %d", with.Count, maxSamples)
	}
	makeLaw, known := map[noise.Family]func(*big.Rat) (noise.Law, error){
		noise.FamilyDiscreteGaussian: noise.DiscreteGaussian,
		noise.FamilyDiscreteLaplace:  noise.DiscreteLaplace,
		noise.FamilySkellam:          noise.Skellam,
	}[with.Family]
	if !known {
		return nil, nil, fieldError("family", "use discrete-gaussian, discrete-laplace or skellam",
			"noise is not sampled from %q", with.Family.String())
	}
	scale, err := noise.Rational(with.Scale)
	if err != nil {
		return nil, nil, err
	}
	law, err := makeLaw(scale)
	if err != nil {
		return nil, nil, err
	}
	if with.Parties != 0 {
		if with.MinHonest == 0 {
			with.MinHonest = with.Parties
		}
		shares := noise.Shares{Parties: with.Parties, MinHonest: with.MinHonest, Law: law}
		if law, err = shares.Party(); err != nil {
			return nil, nil, err
		}
	}
	samples := make([]int64, with.Count)
	if err := fillSamples(law, with.Exact, samples); err != nil {
		return nil, nil, err
	}
	out := make([]byte, 0, 8*with.Count)
	for _, x := range samples {
		out = binary.LittleEndian.AppendUint64(out, uint64(x))
	}
	return nil, [][]byte{out}, nil
}

// fillSamples samples a law from tables, or exactly.
func fillSamples(law noise.Law, exact bool, samples []int64) error {
	if exact {
		e, err := noise.NewExact(law, nil)
		if err != nil {
			return err
		}
		return e.Fill(samples)
	}
	t, err := noise.NewTable(law)
	if err != nil {
		return err
	}
	return t.NewSampler(nil).Fill(samples)
}

var auditCalls = map[string]handler{"audit.scores": auditScores, "audit.one_run": auditOneRun}

// auditScores takes scores of runs without and with the canary.
func auditScores(_ *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Delta float64  `json:"delta"`
		Alpha *float64 `json:"alpha"`
	}
	if err := r.take(&with, 2); err != nil {
		return nil, nil, err
	}
	var scores [2][]float64
	for i, b := range r.blobs {
		var err error
		if scores[i], err = floats[float64](b.private()); err != nil {
			return nil, nil, requestError("", "the scores: %v", err)
		}
	}
	result, err := audit.Scores(scores[0], scores[1], with.Delta, or(with.Alpha, audit.Alpha))
	return struct {
		Lower          float64 `json:"lower"`
		TruePositives  int     `json:"true_positives"`
		Positives      int     `json:"positives"`
		FalsePositives int     `json:"false_positives"`
		Negatives      int     `json:"negatives"`
	}{result.Lower, result.TruePositives, result.Positives, result.FalsePositives,
		result.Negatives}, nil, err
}

func auditOneRun(_ *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Canaries   int      `json:"canaries"`
		Guesses    int      `json:"guesses"`
		Right      int      `json:"right"`
		Delta      float64  `json:"delta"`
		Confidence *float64 `json:"confidence"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	run := audit.OneRun{Canaries: with.Canaries, Guesses: with.Guesses, Right: with.Right}
	lower, err := run.Epsilon(with.Delta, or(with.Confidence, 0.95))
	return struct {
		Lower float64 `json:"lower"`
	}{lower}, nil, err
}
