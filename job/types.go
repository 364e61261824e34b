package job

import "time"

// Job is a declared job. A zero value of a field means its default. Its JSON and TOML names are
// those of [Fields].
type Job struct {
	Name    string
	About   string
	Rounds  int
	Seed    uint64
	Parties Parties
	Sum     Sum
	Privacy Privacy
	Model   Model

	Training Training
	Server   Server
	Metrics  Metrics
	Time     Time
	World    World

	read *source // nil: it was not read from a file
}

// Parties says who takes part.
type Parties struct {
	Count     int
	Group     []Group
	Roster    string
	DropOut   float64
	Colluders int
	PerRound  int
	Hidden    float64
}

// Group names parties that are alike.
type Group struct {
	Name    string
	Count   int
	Epsilon float64
}

// Sum says how sums are taken.
type Sum struct {
	Protocol     string
	Adversary    string
	Recovery     bool
	Classical    bool
	Sparse       bool
	Degree       int
	Committee    string
	Members      int
	Faults       int
	Covered      bool
	MaxWeight    int
	Range        float64
	FractionBits int
}

// Privacy says which noise is in sums, and what it may spend of a party's privacy.
type Privacy struct {
	Noise        string
	Epsilon      float64
	Multiplier   float64
	Delta        float64
	Clip         float64
	ClipQuantile float64
	ClipRate     float64
	SignShare    float64
	Bits         int
}

// Model says what is summed: the weights of a model, or a bare vector.
type Model struct {
	Name     string
	Features int
	Classes  int
	Length   int
	Tensor   []Tensor
	File     string
	Init     string
	DType    string
	Personal []string
}

// Tensor is a part of a model.
type Tensor struct {
	Name  string
	Shape []int
}

// Training says what a party does in a round.
type Training struct {
	Epochs        int
	Steps         int
	Batch         int
	Rate          float64
	Momentum      float64
	WeightDecay   float64
	Lambda        float64
	Rule          string
	Mu            float64
	Beta          float64
	Variates      string
	Mask          string
	MaskThreshold float64
	Submit        string
	Restart       bool
}

// Server says how a mean makes the next model.
type Server struct {
	Rule      string
	Rate      float64
	Beta1     float64
	Beta2     float64
	Tau       float64
	TauInside bool
}

// Metrics has loss and accuracy summed with the updates.
type Metrics struct {
	Share float64
}

// Time says when rounds are held. It may change while a job runs.
type Time struct {
	Start    time.Time
	Pace     time.Duration
	StepTime time.Duration
}

// World is what a simulation needs and a deployment has: data, places, links, mishaps. It is sent
// to nobody, and in no digest.
type World struct {
	Seed          uint64
	EvaluateEvery int
	SkipClear     bool
	Data          Data
	Fidelity      string
	Topology      string
	Servers       []string
	Drop          float64
	Tolerance     float64
	Reference     Reference
	SubtractOwn   bool
	Link          []Link
	Party         []WorldParty
}

// Data says which rows there are, and who has them when.
type Data struct {
	Set           string
	Rows          int
	Split         string
	Concentration float64
	Draw          string
	Test          float64
	Most          int
}

// Reference is noise as a paper has it, to compare with and never for release.
type Reference struct {
	Law     string
	Epsilon float64
	Alpha   float64
}

// Link is what lies between two places.
type Link struct {
	Between   []string
	Latency   time.Duration
	Jitter    time.Duration
	Loss      float64
	Bandwidth float64
}

// WorldParty says where a party of a simulation is, or a group, and what happens to it.
type WorldParty struct {
	Name             string
	Place            string
	Server           string
	Rows             int
	Compute          []time.Duration
	Slow             float64
	Straggle         float64
	Joins            int
	Leaves           int
	ReferenceEpsilon float64
	Crash            []Crash
}

// Crash is a drop-out of a simulation.
type Crash struct {
	Round int
	At    string
	Back  int
}
