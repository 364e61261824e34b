package main

import (
	"math"
	"time"

	"github.com/hushsum/hushsum/accounting"
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
	jsonCost
}

// jsonCost is the end of a round's object, whatever the kind of training.
type jsonCost struct {
	BytesUp   int64   `json:"bytes_up"`
	BytesDown int64   `json:"bytes_down"`
	TrainMS   float64 `json:"train_ms"`
	ClientMS  float64 `json:"client_ms"`
	ServerMS  float64 `json:"server_ms"`
	Dropped   int     `json:"dropped"`
	Lost      bool    `json:"lost"`
	jsonSpent
}

func newJSONCost(c simulation.Cost, dropped int, lost error, spent jsonSpent) jsonCost {
	return jsonCost{
		BytesUp: c.BytesUp, BytesDown: c.BytesDown,
		TrainMS: milliseconds(c.Train), ClientMS: milliseconds(c.Client), ServerMS: milliseconds(c.Server),
		Dropped: dropped, Lost: lost != nil, jsonSpent: spent,
	}
}

// jsonSpent is what rounds have spent of a party's privacy.
type jsonSpent struct {
	Epsilon       *float64 `json:"epsilon"`
	EpsilonLower  *float64 `json:"epsilon_lower"`
	EpsilonPublic *float64 `json:"epsilon_public"`
	Accountant    string   `json:"accountant,omitempty"`
}

// newJSONSpent leaves all empty without noise, which has no accountant.
func newJSONSpent(server, public accounting.Spent) jsonSpent {
	if server.Accountant == "" {
		return jsonSpent{}
	}
	return jsonSpent{finite(server.Upper), finite(server.Lower), finite(public.Upper), server.Accountant}
}

// jsonSummary is the last object. Its costs and drop-outs are totals over all
// rounds.
type jsonSummary struct {
	Summary bool `json:"summary"`
	jsonRound
	Complete      bool    `json:"complete"`
	RowsPerClient int     `json:"rows_per_client"`
	Parameters    int     `json:"parameters"`
	RingBits      int     `json:"ring_bits"`
	CountBits     int     `json:"count_bits"`
	TotalMS       float64 `json:"total_ms"`
	jsonSession

	Protocol        string  `json:"protocol"`
	Members         int     `json:"members"`
	MemberMS        float64 `json:"member_ms"`
	MemberBytesDown int64   `json:"member_bytes_down"`

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

// jsonSession is the part of a summary about set-up and drop-outs, whatever the
// kind of training.
type jsonSession struct {
	SetupBytesUp   int64   `json:"setup_bytes_up"`
	SetupBytesDown int64   `json:"setup_bytes_down"`
	SetupClientMS  float64 `json:"setup_client_ms"`
	SetupServerMS  float64 `json:"setup_server_ms"`
	Recovery       string  `json:"recovery"`
	Drop           float64 `json:"drop"`
	Colluders      int     `json:"colluders"`
	Threshold      int     `json:"threshold"`
	MinSurvivors   int     `json:"min_survivors"`
	LostRounds     int     `json:"lost_rounds"`
}

// newJSONSession is of rounds of so many parties; r is nil without recovery.
func newJSONSession(setup simulation.Cost, r *protocol.Recovery, colluders, parties int, drop float64, lost int) jsonSession {
	j := jsonSession{
		SetupBytesUp: setup.BytesUp, SetupBytesDown: setup.BytesDown,
		SetupClientMS: milliseconds(setup.Client), SetupServerMS: milliseconds(setup.Server),
		Recovery: "off", Drop: drop, MinSurvivors: parties, LostRounds: lost,
	}
	if r != nil {
		j.Recovery, j.Colluders, j.Threshold, j.MinSurvivors = adversaries[r.Adversary], colluders, r.Threshold, r.MinSurvivors
	}
	return j
}

// jsonLines is the reporter of --json.
type jsonLines struct {
	std       streams
	options   *simulation.Options
	recovery  *protocol.Recovery    // with defaults filled in; nil without
	mechanism *simulation.Mechanism // nil without noise
}

func (j *jsonLines) begin(string, *simulation.Options) {}

func (j *jsonLines) progress(round, done int) {}

func (j *jsonLines) round(r simulation.Round) { printJSON(j.std, newJSONRound(r)) }

func (j *jsonLines) end(s *simulation.Summary, took time.Duration) {
	last := simulation.Round{Clients: j.options.Clients}
	for _, r := range s.Rounds {
		r.LargestWeight = max(r.LargestWeight, last.LargestWeight)
		r.Dropped += last.Dropped
		last = r
	}
	last.Cost = s.Total()
	summary := jsonSummary{
		Summary:       true,
		jsonRound:     newJSONRound(last),
		Complete:      len(s.Rounds) == j.options.Rounds,
		RowsPerClient: j.options.RowsPerClient,
		Parameters:    len(s.Private),
		RingBits:      s.Layout[0].Bits,
		TotalMS:       milliseconds(took),
		jsonSession:   newJSONSession(s.Setup, j.recovery, j.options.Colluders, j.options.Clients, j.options.Drop, s.Lost()),
		Noise:         laws[noNoise],

		Protocol:        protocols[j.options.Oneshot != nil],
		Members:         s.Committee.Members,
		MemberMS:        milliseconds(s.Committee.Work),
		MemberBytesDown: s.Committee.BytesDown,
	}
	summary.jsonSpent = newJSONSpent(s.Server, s.Public)
	if m, n := j.mechanism, j.options.Noise; m != nil {
		summary.Noise, summary.NoiseMultiplier, summary.Clip = laws[n.Law], n.Multiplier, n.Clip
		summary.NoiseStdDev, summary.NoiseShares = m.StdDev(), m.Shares.MinHonest
		summary.Delta, summary.EpsilonBudget = n.Delta, n.Epsilon
		summary.Stopped = s.Stopped != nil
		summary.Sensitivity = m.Sensitivity.L2 / m.Encoder.Scale
	} else {
		summary.CountBits = s.Layout[1].Bits
	}
	printJSON(j.std, summary)
}

func newJSONRound(r simulation.Round) jsonRound {
	return jsonRound{
		Round:         r.Round,
		Clients:       r.Clients,
		Accuracy:      r.Private.Accuracy(),
		MCC:           r.Private.MCC(),
		ClearAccuracy: r.Clear.Accuracy(),
		ClearMCC:      r.Clear.MCC(),
		MaxAbsDiff:    r.MaxAbsDiff,
		LargestWeight: r.LargestWeight,
		jsonCost:      newJSONCost(r.Cost, r.Dropped, r.Lost, newJSONSpent(r.Server, r.Public)),
	}
}

// finite returns nil, which is null in JSON, for what JSON has no number for.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// milliseconds keeps microseconds, which is as good as the clock.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
