package job

// MaxRows returns the most rows that a party counts with by a weight of its own, which is part of
// what it submits: sum.max_weight, unless the job declares the weights; 0: there are no such.
func (j *Job) MaxRows() int {
	if len(j.Parties.Weights) > 0 {
		return 0
	}
	return j.Sum.MaxWeight
}

// declaredWeights returns how often each party's vector counts in a sum, by the job's declaration:
// the parties in the order of the roster, none above sum.max_weight. It is nil if all count alike.
func (j *Job) declaredWeights() []int {
	var out []int
	for _, w := range j.Parties.Weights {
		if most := j.Sum.MaxWeight; most > 0 {
			w = min(w, most)
		}
		out = append(out, w)
	}
	return out
}

// weigh checks declared weights against the roster.
func (x *settling) weigh() error {
	roster := x.files.Roster
	if roster.Weight(0) > 0 {
		return x.Mistake("parties.roster", "leave them out, and write parties.weights",
			"its lines have weights, and what parties consent to is the job")
	}
	x.weights = x.declaredWeights()
	if n := len(x.weights); n > 0 && n != roster.Len() {
		return x.Mistake("parties.weights", "write one for each line of the roster, in its order",
			"there are %d weights for %d parties", n, roster.Len())
	}
	return nil
}

func sum(of []int) (all int) {
	for _, x := range of {
		all += x
	}
	return all
}

// Counts returns by how many vectors the sum of the given parties' is divided for their mean: as
// many as there are or, if the job declares weights, the sum of theirs.
func (s *Settled) Counts(parties []int) int {
	if s.weights == nil {
		return len(parties)
	}
	all := 0
	for _, i := range parties {
		all += s.weights[i]
	}
	return all
}

// sayWeights says whose vector counts how often.
func (s *Settled) sayWeights() []string {
	if s.weights == nil {
		return nil
	}
	const most = 32
	text := "Parties count by weights that all know, and a party that counts itself for more is " +
		"refused by name: "
	for i, w := range s.weights[:min(most, len(s.weights))] {
		if i > 0 {
			text += ", "
		}
		text += s.Roster().Name(i) + " " + count(w, "time", "times")
	}
	if len(s.weights) > most {
		text += " and so on"
	}
	return []string{text + "."}
}
