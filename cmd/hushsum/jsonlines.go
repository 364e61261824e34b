package main

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
)

// jsonRound is the object of one round, and the beginning of the summary's.
type jsonRound struct {
	Round         int     `json:"round"`
	Clients       int     `json:"clients"`
	Accuracy      float64 `json:"accuracy"`
	MCC           float64 `json:"mcc"`
	ClearAccuracy float64 `json:"clear_accuracy"`
	ClearMCC      float64 `json:"clear_mcc"`
	MaxAbsDiff    float64 `json:"max_abs_diff"`
	LargestWeight float64 `json:"largest_weight"`
	BytesUp       int64   `json:"bytes_up"`
	BytesDown     int64   `json:"bytes_down"`
	TrainMS       float64 `json:"train_ms"`
	ClientMS      float64 `json:"client_ms"`
	ServerMS      float64 `json:"server_ms"`
	Dropped       int     `json:"dropped"`
	Lost          bool    `json:"lost"`

	Epsilon       *float64 `json:"epsilon"`
	EpsilonLower  *float64 `json:"epsilon_lower"`
	EpsilonPublic *float64 `json:"epsilon_public"`
	Accountant    string   `json:"accountant,omitempty"`
}

// jsonSummary is the last object. Its costs and drop-outs are totals over all
// rounds.
type jsonSummary struct {
	Summary bool `json:"summary"`
	jsonRound
	Complete       bool    `json:"complete"`
	RowsPerClient  int     `json:"rows_per_client"`
	Parameters     int     `json:"parameters"`
	RingBits       int     `json:"ring_bits"`
	CountBits      int     `json:"count_bits"`
	SetupBytesUp   int64   `json:"setup_bytes_up"`
	SetupBytesDown int64   `json:"setup_bytes_down"`
	SetupClientMS  float64 `json:"setup_client_ms"`
	SetupServerMS  float64 `json:"setup_server_ms"`
	TotalMS        float64 `json:"total_ms"`
	Recovery       string  `json:"recovery"`
	Drop           float64 `json:"drop"`
	Colluders      int     `json:"colluders"`
	Threshold      int     `json:"threshold"`
	MinSurvivors   int     `json:"min_survivors"`
	LostRounds     int     `json:"lost_rounds"`

	Noise           string  `json:"noise"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	Clip            float64 `json:"clip"`
	NoiseStdDev     float64 `json:"noise_stddev"`
	NoiseShares     int     `json:"noise_shares"`
	Sensitivity     float64 `json:"sensitivity"`
	Delta           float64 `json:"delta"`
	EpsilonBudget   float64 `json:"epsilon_budget"`
	Stopped         bool    `json:"stopped"`
}

// jsonLines is the reporter of --json.
type jsonLines struct {
	w         io.Writer
	options   *simulation.Options
	recovery  *protocol.Recovery    // with defaults filled in; nil without
	mechanism *simulation.Mechanism // nil without noise
}

func (j *jsonLines) begin(string, *simulation.Options) {}

func (j *jsonLines) progress(round, done int) {}

func (j *jsonLines) round(r simulation.Round) { j.line(newJSONRound(r)) }

func (j *jsonLines) end(s *simulation.Summary, took time.Duration) {
	last := simulation.Round{Clients: j.options.Clients}
	for _, r := range s.Rounds {
		r.LargestWeight = max(r.LargestWeight, last.LargestWeight)
		r.Dropped += last.Dropped
		last = r
	}
	last.Cost = s.Total()
	summary := jsonSummary{
		Summary:        true,
		jsonRound:      newJSONRound(last),
		Complete:       len(s.Rounds) == j.options.Rounds,
		RowsPerClient:  j.options.RowsPerClient,
		Parameters:     len(s.Private),
		RingBits:       s.Layout[0].Bits,
		SetupBytesUp:   s.Setup.BytesUp,
		SetupBytesDown: s.Setup.BytesDown,
		SetupClientMS:  milliseconds(s.Setup.Client),
		SetupServerMS:  milliseconds(s.Setup.Server),
		TotalMS:        milliseconds(took),
		Recovery:       "off",
		Drop:           j.options.Drop,
		MinSurvivors:   j.options.Clients,
		LostRounds:     s.Lost(),
		Noise:          laws[noNoise],
	}
	if r := j.recovery; r != nil {
		summary.Recovery = adversaryName(r.Adversary)
		summary.Colluders, summary.Threshold, summary.MinSurvivors = r.Colluders, r.Threshold, r.MinSurvivors
	}
	if m, n := j.mechanism, j.options.Noise; m != nil {
		summary.Noise, summary.NoiseMultiplier, summary.Clip = laws[n.Law], n.Multiplier, n.Clip
		summary.NoiseStdDev, summary.NoiseShares = m.StdDev(), m.Shares.MinHonest
		summary.Delta, summary.EpsilonBudget = n.Delta, n.Epsilon
		summary.Stopped = s.Stopped != nil
		summary.Sensitivity = m.Sensitivity.L2 / m.Encoder.Scale
	} else {
		summary.CountBits = s.Layout[1].Bits
	}
	j.line(summary)
}

func newJSONRound(r simulation.Round) jsonRound {
	j := jsonRound{
		Round:         r.Round,
		Clients:       r.Clients,
		Accuracy:      r.Private.Accuracy(),
		MCC:           r.Private.MCC(),
		ClearAccuracy: r.Clear.Accuracy(),
		ClearMCC:      r.Clear.MCC(),
		MaxAbsDiff:    r.MaxAbsDiff,
		LargestWeight: r.LargestWeight,
		BytesUp:       r.Cost.BytesUp,
		BytesDown:     r.Cost.BytesDown,
		TrainMS:       milliseconds(r.Cost.Train),
		ClientMS:      milliseconds(r.Cost.Client),
		ServerMS:      milliseconds(r.Cost.Server),
		Dropped:       r.Dropped,
		Lost:          r.Lost != nil,
	}
	if r.Server.Accountant != "" {
		j.Epsilon, j.EpsilonLower, j.EpsilonPublic = finite(r.Server.Upper), finite(r.Server.Lower), finite(r.Public.Upper)
		j.Accountant = r.Server.Accountant
	}
	return j
}

// finite returns nil, which is null in JSON, for what JSON has no number for.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// line writes one object. All numbers in it are finite, so that marshalling does
// not fail; a failed write is noticed by run.
func (j *jsonLines) line(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		j.w.Write(append(b, '\n'))
	}
}

// milliseconds keeps microseconds, which is as good as the clock.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
