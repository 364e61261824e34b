package job

import (
	"math"

	"github.com/hushsum/hushsum/aggregation"
)

// This file has the metrics that stand next to a vector.

// metrics is how many numbers they are: a loss and an accuracy.
const metrics = 2

// maxLoss is the largest loss that counts.
const maxLoss = 10

// Metric holds the means of the loss and accuracy that parties measured, each with the standard
// deviation of the noise in it.
type Metric struct {
	Loss        float64 `json:"loss"`
	LossDev     float64 `json:"loss_dev"`
	Accuracy    float64 `json:"accuracy"`
	AccuracyDev float64 `json:"accuracy_dev"`
}

// unit returns how large an accuracy of 1, or the largest loss, is in a vector.
func (s *Settled) unit() float64 { return s.job.Privacy.Clip * s.job.Metrics.Share / math.Sqrt2 }

// withMetrics returns a party's vector with its metrics behind it. With the vector clipped to its
// part of the clip, and each metric scaled to its part, the norm is at most the clip, and the noise
// covers both.
func withMetrics[F aggregation.Float](s *Settled, u Update[F]) ([]F, error) {
	share := s.job.Metrics.Share
	if share == 0 {
		return u.Vector, nil
	}
	clipped, err := aggregation.Clipper(u.Vector, s.job.Privacy.Clip*math.Sqrt(1-share*share))
	if err != nil {
		return nil, err
	}
	out := make([]F, len(u.Vector), len(u.Vector)+metrics)
	for i, x := range u.Vector {
		out[i] = F(clipped(x))
	}
	bound := func(x float64) float64 {
		if !(x >= 0) {
			return 0
		}
		return min(x, 1)
	}
	unit := s.unit()
	return append(out, F(unit*bound(u.Loss/maxLoss)), F(unit*bound(u.Accuracy))), nil
}

// metricOf reads the means of metrics, which stand behind the mean of a number of parties' vectors.
func (s *Settled) metricOf(loss, accuracy float64, parties int) *Metric {
	unit := s.unit()
	dev := s.StdDev(parties) / unit
	return &Metric{
		Loss:        loss / unit * maxLoss,
		LossDev:     dev * maxLoss,
		Accuracy:    accuracy / unit,
		AccuracyDev: dev,
	}
}
