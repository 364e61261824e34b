package job

// SessionNumbers are those of a job with pairwise sums that take a search or an accountant to find,
// for parties that have neither: SPEC-TRANSPORT.md §4. They follow from the job and the number of
// its parties, whoever these are.
type SessionNumbers struct {
	MinMembers int              `json:"min_members"`
	Recovery   *recoveryNumbers `json:"recovery"` // nil: sums do not recover
	Layout     []segmentNumbers `json:"layout"`
	Noise      *noiseNumbers    `json:"noise"` // nil: there is none
}

// recoveryNumbers are those of SPEC.md §3.3.
type recoveryNumbers struct {
	Adversary         int `json:"adversary"`
	Threshold         int `json:"threshold"`
	MinSurvivors      int `json:"min_survivors"`
	Degree            int `json:"degree"`
	CorruptNeighbours int `json:"corrupt_neighbours"`
}

// segmentNumbers are those of a segment of the layout.
type segmentNumbers struct {
	Length int `json:"length"`
	Bits   int `json:"bits"`
}

// noiseNumbers are those of the noise, and of the encoding with it.
type noiseNumbers struct {
	Multiplier float64 `json:"multiplier"`
	Scale      float64 `json:"scale"` // integers per 1.0
	// Share is the parameter of the law that each party draws its share from, in integer units, as a
	// fraction: σ² of discrete Gaussian noise, the variance of Skellam noise, t of discrete Laplace
	// noise, whose shares are differences of Pólya variables of shape 1/Shares.
	Share  string `json:"share"`
	Shares int    `json:"shares"` // that make up the promised noise
}

// Numbers returns the numbers of a job with pairwise sums in which parties send a vector alone, nil
// for other jobs.
func (s *Settled) Numbers() *SessionNumbers {
	m := s.mechanism
	if s.oneshot != nil || !s.Alone() || s.Trains() || s.job.Metrics.Share > 0 || s.Hidden() > 0 {
		return nil
	}
	out := &SessionNumbers{MinMembers: s.session.MinMembers}
	if r := s.session.Recovery; r != nil {
		out.Recovery = &recoveryNumbers{int(r.Adversary), r.Threshold, r.MinSurvivors, r.Degree,
			r.CorruptNeighbours}
	}
	for _, segment := range s.layout {
		out.Layout = append(out.Layout, segmentNumbers{segment.Length, segment.Bits})
	}
	if m == nil {
		return out
	}
	own, err := m.Vector.Shares.Party()
	if err != nil || m.Records() != nil || m.Band() != nil || m.Signs != nil || s.weights != nil {
		return nil
	}
	out.Noise = &noiseNumbers{Multiplier: s.multiplier, Scale: m.Encoder.Scale,
		Share: own.Scale().RatString(), Shares: m.Vector.Shares.MinHonest}
	return out
}
