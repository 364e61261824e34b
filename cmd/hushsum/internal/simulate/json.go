package simulate

import (
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/simulation/scenario"
)

// jsonHeld holds the keys of every round, in virtual time or not.
type jsonHeld struct {
	Round    int      `json:"round"`
	Clients  int      `json:"clients"`
	Accuracy *float64 `json:"accuracy"`
	MCC      *float64 `json:"mcc"`
	Lost     bool     `json:"lost"`
}

// jsonWhole holds the keys that the last object of every run has.
type jsonWhole struct {
	Complete      bool     `json:"complete"`
	Data          string   `json:"data"`
	Model         string   `json:"model"`
	Parameters    int      `json:"parameters"`
	Protocol      string   `json:"protocol"`
	Noise         string   `json:"noise"`
	LostRounds    int      `json:"lost_rounds"`
	TotalMS       float64  `json:"total_ms"`
	AloneAccuracy *float64 `json:"alone_accuracy"`
	// Epsilon is the upper end of the largest claim of any party, against the server, at Delta. Both
	// are null where nothing bounds what is spent.
	Epsilon *float64 `json:"epsilon"`
	Delta   *float64 `json:"delta"`
}

// newWhole returns it for what came of a run.
func newWhole(r *scenario.Result) jsonWhole {
	last := r.Final()
	w := jsonWhole{
		Complete:      len(r.Rounds) == r.Job.Rounds,
		Data:          r.Job.World.Data.Set,
		Model:         r.Job.Model.Name,
		Parameters:    r.Weights,
		Protocol:      r.Job.Sum.Protocol,
		Noise:         r.Job.Privacy.Noise,
		LostRounds:    r.Lost(),
		AloneAccuracy: show.Finite(aloneMean(&last)),
		TotalMS:       milliseconds(r.Took),
	}
	if c, err := worst(r); err == nil && c != nil && c.Bounded() {
		figures := c.Bare()
		w.Epsilon, w.Delta = &figures.Upper, &figures.Delta
	}
	return w
}

// jsonRound is the object of one round, and the beginning of the summary's object.
type jsonRound struct {
	jsonHeld
	ClearAccuracy *float64 `json:"clear_accuracy"`
	ClearMCC      *float64 `json:"clear_mcc"`
	MaxAbsDiff    *float64 `json:"max_abs_diff"`
	LargestWeight float64  `json:"largest_weight"`
	MeanNorm      float64  `json:"mean_norm"`
	MaxNorm       float64  `json:"max_norm"`
	Cosine        float64  `json:"cosine"`
	Clipped       float64  `json:"clipped"`
	ClipNorm      float64  `json:"clip_norm"`
	Mask          float64  `json:"mask"`
	BytesUp       int64    `json:"bytes_up"`
	BytesDown     int64    `json:"bytes_down"`
	TrainMS       float64  `json:"train_ms"`
	ClientMS      float64  `json:"client_ms"`
	ServerMS      float64  `json:"server_ms"`
	Dropped       int      `json:"dropped"`
	Refused       int      `json:"refused"`
	// Without noise nothing bounds what is spent: null.
	Spent       *accounting.Claim `json:"spent"`
	SpentPublic *accounting.Claim `json:"spent_public"`
}

// jsonSummary is the last object. Its costs and drop-outs are totals over all
// rounds.
type jsonSummary struct {
	Summary bool `json:"summary"`
	jsonRound
	jsonWhole

	ChosenOn      string  `json:"chosen_on"` // "hold-out" or "test": the rows that judge
	Split         string  `json:"split"`
	Rule          string  `json:"rule"`
	Mask          string  `json:"mask"` // replaces a round's
	RowsPerClient float64 `json:"rows_per_client"`
	RingBits      int     `json:"ring_bits"`
	CountBits     int     `json:"count_bits"`

	SetupBytesUp   int64   `json:"setup_bytes_up"`
	SetupBytesDown int64   `json:"setup_bytes_down"`
	SetupClientMS  float64 `json:"setup_client_ms"`
	SetupServerMS  float64 `json:"setup_server_ms"`

	AloneMCC *float64 `json:"alone_mcc"`

	Members         int     `json:"members"`
	MemberMS        float64 `json:"member_ms"`
	MemberBytesDown int64   `json:"member_bytes_down"`

	Recovery     string  `json:"recovery"`
	Drop         float64 `json:"drop"`
	Bounded      bool    `json:"bounded"`
	Malicious    float64 `json:"malicious"`
	Colluders    int     `json:"colluders"`
	Threshold    int     `json:"threshold"`
	MinSurvivors int     `json:"min_survivors"`

	NoiseMultiplier float64 `json:"noise_multiplier"`
	Clip            float64 `json:"clip"`
	NoiseStdDev     float64 `json:"noise_stddev"`
	NoiseShares     int     `json:"noise_shares"`
	Sensitivity     float64 `json:"sensitivity"`
	Stopped         bool    `json:"stopped"`
	Caution         string  `json:"caution,omitempty"`

	Budget *accounting.Budget `json:"budget"` // null without one
}

// newRound returns the object of a round.
func (s *summed) newRound(r *simulation.RoundResult) jsonRound {
	o := jsonRound{
		jsonHeld:      jsonHeld{Round: r.Round, Clients: r.Parties, Lost: r.Lost != nil},
		LargestWeight: r.Largest,
		MeanNorm:      r.MeanNorm,
		MaxNorm:       r.MaxNorm,
		Cosine:        r.Cosine,
		Clipped:       r.Clipped,
		ClipNorm:      r.ClipNorm,
		Mask:          r.Masked,
		BytesUp:       r.Cost.BytesUp,
		BytesDown:     r.Cost.BytesDown,
		TrainMS:       milliseconds(r.Cost.Train),
		ClientMS:      milliseconds(r.Cost.Client),
		ServerMS:      milliseconds(r.Cost.Server),
		Dropped:       r.Dropped,
		Refused:       r.Refused,
	}
	if s.mechanism != nil {
		o.Spent, o.SpentPublic = &r.Server, &r.Public
	}
	if r.Test == nil {
		return o
	}
	private := s.judge(r.Test)
	o.Accuracy, o.MCC = show.Finite(private.Accuracy()), show.Finite(private.MCC())
	if r.Clear == nil { // see world.skip_clear
		return o
	}
	inClear := s.judge(r.Clear)
	o.ClearAccuracy, o.ClearMCC = show.Finite(inClear.Accuracy()), show.Finite(inClear.MCC())
	o.MaxAbsDiff = show.Finite(r.MaxAbsDiff)
	return o
}

// last returns the object about the whole run.
func (s *summed) last() []any {
	r := s.result
	last := simulation.RoundResult{Parties: s.perRound()}
	dropped, refused := 0, 0
	for i := range r.Rounds {
		last = r.Rounds[i]
		dropped += last.Dropped
		refused += last.Refused
	}
	last.Cost, last.Dropped, last.Largest = r.Total(), dropped, largest(r)
	last.Refused = refused
	last.Server, last.Public = r.Server, r.Public
	o, j := &s.world.Training, s.job
	sum := jsonSummary{
		Summary:        true,
		jsonRound:      s.newRound(&last),
		jsonWhole:      newWhole(s.outcome(s.took)),
		ChosenOn:       s.judged,
		Split:          s.split,
		Rule:           s.rule,
		Mask:           s.mask,
		RingBits:       s.layout[0].Bits,
		SetupBytesUp:   r.Setup.BytesUp,
		SetupBytesDown: r.Setup.BytesDown,
		SetupClientMS:  milliseconds(r.Setup.Client),
		SetupServerMS:  milliseconds(r.Setup.Server),
		Members:        r.Committee.Members,
		MemberMS:       milliseconds(r.Committee.Work),
		Recovery:       "off",
		Drop:           j.World.Drop,
		Malicious:      j.World.Malicious,
		Bounded:        j.Sum.Bounded,
		MinSurvivors:   s.perRound(),
		Clip:           o.Clip.Norm,
		Stopped:        r.Stopped != nil,

		MemberBytesDown: r.Committee.BytesDown,
	}
	if _, mcc := show.Means(s.alone); s.alone != nil {
		sum.AloneMCC = show.Finite(mcc)
	}
	for _, d := range s.world.Parties {
		sum.RowsPerClient += float64(d.Len())
	}
	sum.RowsPerClient /= float64(len(s.world.Parties))
	if o.MaxSamples > 0 && s.mechanism == nil {
		sum.CountBits = s.layout[1].Bits
	}
	if c := s.recovery; c != nil {
		sum.MinSurvivors = c.MinSurvivors
		if s.byMessage() {
			sum.Recovery, sum.Threshold = adversaries[c.Adversary], c.Threshold
			sum.Colluders = j.Parties.Colluders
		}
	}
	if m := s.mechanism; m != nil {
		honest := m.Vector.Shares.MinHonest
		sum.NoiseMultiplier, sum.Clip = s.settled.Multiplier(), j.Privacy.Clip
		sum.NoiseStdDev, sum.NoiseShares, sum.Sensitivity = m.StdDev(honest), honest, m.MaxNorm()
		sum.Budget, sum.Caution = s.settled.Budget(), s.caution
	}
	return []any{sum}
}

// milliseconds keeps microseconds, which matches the clock's precision.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// adversaries maps the adversaries of recovery to their names in --json.
var adversaries = map[protocol.Adversary]string{
	protocol.CheatingServer: "cheating",
	protocol.CuriousServer:  "curious",
}
