package simulate

import (
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
)

// jsonRound is the object of one round, and the beginning of the summary's object.
type jsonRound struct {
	Round         int      `json:"round"`
	Clients       int      `json:"clients"`
	Accuracy      *float64 `json:"accuracy"`
	MCC           *float64 `json:"mcc"`
	Lost          bool     `json:"lost"`
	*jsonVirtual           // nil without time
	*jsonWork              // nil in virtual time
	LargestWeight float64  `json:"largest_weight"`
	MeanNorm      float64  `json:"mean_norm"`
	MaxNorm       float64  `json:"max_norm"`
	Cosine        float64  `json:"cosine"`
	Clipped       float64  `json:"clipped"`
	ClipNorm      float64  `json:"clip_norm"`
	Mask          float64  `json:"mask"`
	BytesUp       int64    `json:"bytes_up"`
	BytesDown     int64    `json:"bytes_down"`
	Dropped       int      `json:"dropped"`
}

// jsonVirtual holds the keys that only rounds in virtual time have. In one-message sums it says how
// long the steps took, and which parties the round waited for.
type jsonVirtual struct {
	Why     string      `json:"why,omitempty"` // it is lost
	Seconds float64     `json:"seconds"`
	Server  int         `json:"server_bytes_received"`
	Steps   []stepTaken `json:"steps,omitempty"`
	Waited  []string    `json:"waited_for,omitempty"`
}

// jsonWork holds the keys that only rounds without time have.
type jsonWork struct {
	ClearAccuracy *float64 `json:"clear_accuracy"`
	ClearMCC      *float64 `json:"clear_mcc"`
	MaxAbsDiff    *float64 `json:"max_abs_diff"`
	TrainMS       float64  `json:"train_ms"`
	ClientMS      float64  `json:"client_ms"`
	ServerMS      float64  `json:"server_ms"`
	Refused       int      `json:"refused"`
	// Without noise nothing bounds what is spent: null.
	Spent       *accounting.Claim `json:"spent"`
	SpentPublic *accounting.Claim `json:"spent_public"`
}

type stepTaken struct {
	Step    string  `json:"step"`
	Seconds float64 `json:"seconds"`
}

// jsonSummary is the last object. Its costs and drop-outs are totals over all
// rounds.
type jsonSummary struct {
	Summary bool `json:"summary"`
	jsonRound

	Complete      bool     `json:"complete"`
	Data          string   `json:"data"`
	Model         string   `json:"model"`
	Parameters    int      `json:"parameters"`
	Protocol      string   `json:"protocol"`
	Noise         string   `json:"noise"`
	LostRounds    int      `json:"lost_rounds"`
	TotalMS       float64  `json:"total_ms"`
	AloneAccuracy *float64 `json:"alone_accuracy"`
	// Epsilon is the upper end of Certified, at Delta. Both are null where nothing bounds what is
	// spent.
	Epsilon *float64 `json:"epsilon"`
	Delta   *float64 `json:"delta"`
	// Certified is the largest claim of any party; null: nothing is certified.
	Certified *accounting.Claim `json:"certified"`

	ChosenOn      string  `json:"chosen_on"` // "hold-out" or "test": the rows that judge
	Split         string  `json:"split"`
	Rule          string  `json:"rule"`
	Mask          string  `json:"mask"` // replaces a round's
	RowsPerClient float64 `json:"rows_per_client"`
	RingBits      int     `json:"ring_bits"`
	CountBits     int     `json:"count_bits"`

	*jsonSetup // nil in virtual time

	Members int `json:"members"`

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

// jsonSetup holds the keys that only the last object of a run without time has.
type jsonSetup struct {
	SetupBytesUp    int64    `json:"setup_bytes_up"`
	SetupBytesDown  int64    `json:"setup_bytes_down"`
	SetupClientMS   float64  `json:"setup_client_ms"`
	SetupServerMS   float64  `json:"setup_server_ms"`
	AloneMCC        *float64 `json:"alone_mcc"`
	MemberMS        float64  `json:"member_ms"`
	MemberBytesDown int64    `json:"member_bytes_down"`
}

// objects returns the objects of a round: in virtual time also those of its parties before it, and
// after it those of the members of its committee.
func (s *run) objects(r *simulation.RoundResult) (all []any) {
	if !s.timed {
		return []any{s.newRound(r)}
	}
	for _, l := range partyLines(r, r.Each) {
		all = append(all, l)
	}
	all = append(all, s.newRound(r))
	for _, m := range r.Members {
		all = append(all, memberLine{r.Round, m.Member, m.Place, m.Work.Seconds(), m.Sent, m.Got})
	}
	return all
}

// newRound returns the object of a round.
func (s *run) newRound(r *simulation.RoundResult) jsonRound {
	o := jsonRound{
		Round:         r.Round,
		Clients:       r.Parties,
		Lost:          r.Lost != nil,
		LargestWeight: r.Largest,
		MeanNorm:      r.MeanNorm,
		MaxNorm:       r.MaxNorm,
		Cosine:        r.Cosine,
		Clipped:       r.Clipped,
		ClipNorm:      r.ClipNorm,
		Mask:          r.Masked,
		BytesUp:       r.Cost.BytesUp,
		BytesDown:     r.Cost.BytesDown,
		Dropped:       r.Dropped,
	}
	if r.Test != nil {
		private := s.judge(r.Test)
		o.Accuracy, o.MCC = show.Finite(private.Accuracy()), show.Finite(private.MCC())
	}
	if s.timed {
		o.jsonVirtual = newVirtual(r)
	} else {
		o.jsonWork = s.newWork(r)
	}
	return o
}

func newVirtual(r *simulation.RoundResult) *jsonVirtual {
	o := &jsonVirtual{Seconds: r.Took.Seconds(), Server: r.Received, Waited: r.Waited}
	if r.Lost != nil {
		o.Why = cli.Plain(r.Lost)
	}
	for _, s := range r.Steps {
		o.Steps = append(o.Steps, stepTaken{s.Name, s.Took.Seconds()})
	}
	return o
}

func (s *run) newWork(r *simulation.RoundResult) *jsonWork {
	o := &jsonWork{TrainMS: milliseconds(r.Cost.Train), ClientMS: milliseconds(r.Cost.Client),
		ServerMS: milliseconds(r.Cost.Server), Refused: r.Refused}
	if s.mechanism != nil {
		o.Spent, o.SpentPublic = &r.Server, &r.Public
	}
	if r.Clear == nil { // see world.skip_clear
		return o
	}
	inClear := s.judge(r.Clear)
	o.ClearAccuracy, o.ClearMCC = show.Finite(inClear.Accuracy()), show.Finite(inClear.MCC())
	o.MaxAbsDiff = show.Finite(r.MaxAbsDiff)
	return o
}

// last returns the object about the whole run.
func (s *run) last() any {
	r := s.result
	all := simulation.RoundResult{Parties: s.perRound()}
	dropped, refused, received, took := 0, 0, 0, time.Duration(0)
	for i := range r.Rounds {
		all = r.Rounds[i]
		dropped += all.Dropped
		refused += all.Refused
		received += all.Received
		took += all.Took
	}
	all.Cost, all.Dropped, all.Largest, all.Refused = r.Total(), dropped, largest(r), refused
	all.Server, all.Public = r.Server, r.Public
	all.Received, all.Took, all.Steps, all.Waited = received, took, nil, nil
	o, j := &s.world.Training, s.job
	sum := jsonSummary{
		Summary:       true,
		jsonRound:     s.newRound(&all),
		Complete:      len(r.Rounds) == j.Rounds,
		Data:          j.World.Data.Set,
		Model:         j.Model.Name,
		Parameters:    r.Weights,
		Protocol:      j.Sum.Protocol,
		Noise:         j.Privacy.Noise,
		LostRounds:    r.Lost(),
		AloneAccuracy: show.Finite(aloneMean(&all)),
		TotalMS:       milliseconds(s.took),
		ChosenOn:      s.judged,
		Split:         s.split,
		Rule:          s.rule,
		Mask:          s.mask,
		RingBits:      s.layout[0].Bits,
		Members:       len(all.Members) + r.Committee.Members,
		Recovery:      "off",
		Drop:          j.World.Drop,
		Malicious:     j.World.Malicious,
		Bounded:       j.Sum.Bounded,
		MinSurvivors:  s.perRound(),
		Clip:          o.Clip.Norm,
		Stopped:       r.Stopped != nil,
	}
	if c, err := r.Certified(); err == nil && c != nil {
		if sum.Certified = c; c.Bounded() {
			figures := c.Bare()
			sum.Epsilon, sum.Delta = &figures.Upper, &figures.Delta
		}
	}
	for _, p := range all.Each {
		sum.RowsPerClient += float64(p.Rows) / float64(len(all.Each))
	}
	if !s.timed {
		sum.RowsPerClient = s.meanRows()
		sum.jsonSetup = &jsonSetup{
			SetupBytesUp:    r.Setup.BytesUp,
			SetupBytesDown:  r.Setup.BytesDown,
			SetupClientMS:   milliseconds(r.Setup.Client),
			SetupServerMS:   milliseconds(r.Setup.Server),
			MemberMS:        milliseconds(r.Committee.Work),
			MemberBytesDown: r.Committee.BytesDown,
		}
		if _, mcc := show.Means(s.alone); s.alone != nil {
			sum.AloneMCC = show.Finite(mcc)
		}
	}

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
	return sum
}

// meanRows returns how many rows a party has, in the mean.
func (s *run) meanRows() (mean float64) {
	for _, d := range s.world.Parties {
		mean += float64(d.Len())
	}
	return mean / float64(len(s.world.Parties))
}

// partyLine is a line for one party and round.
type partyLine struct {
	Round    int      `json:"round"`
	Party    string   `json:"party"`
	Place    string   `json:"place"`
	Seconds  *float64 `json:"seconds"` // until it had the new model; null: it has not
	Included bool     `json:"included"`
	Left     bool     `json:"left"`
	Lost     string   `json:"lost,omitempty"`
	Accuracy float64  `json:"accuracy"` // of the model that it holds
	MCC      float64  `json:"mcc"`
	Alone    float64  `json:"alone,omitempty"` // accuracy of a model of its own rows only
	Work     float64  `json:"work_seconds"`
	Sent     int      `json:"bytes_sent"`
	Got      int      `json:"bytes_received"`
}

func partyLines(r *simulation.RoundResult, each []simulation.PartyRound) []partyLine {
	lines := make([]partyLine, len(each))
	for k, p := range each {
		l := partyLine{
			Round:    r.Round,
			Party:    p.Party,
			Place:    p.Place,
			Included: p.Included,
			Left:     p.Left,
			Accuracy: p.Accuracy,
			MCC:      p.MCC,
			Alone:    p.Alone,
			Work:     p.Work.Seconds(),
			Sent:     p.Sent,
			Got:      p.Got,
		}
		if r.Lost != nil {
			l.Lost = cli.Plain(r.Lost)
		}
		if p.Received {
			seconds := p.Took.Seconds()
			l.Seconds = &seconds
		}
		lines[k] = l
	}
	return lines
}

// memberLine is a line for a member of the committee and a round.
type memberLine struct {
	Round  int     `json:"round"`
	Member string  `json:"member"`
	Place  string  `json:"place"`
	Work   float64 `json:"work_seconds"`
	Sent   int     `json:"bytes_sent"`
	Got    int     `json:"bytes_received"`
}

// milliseconds keeps microseconds, which matches the clock's precision.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// adversaries maps the adversaries of recovery to their names in --json.
var adversaries = map[protocol.Adversary]string{
	protocol.CheatingServer: "cheating",
	protocol.CuriousServer:  "curious",
}
