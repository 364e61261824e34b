package job

import "slices"

// Names of the tensors of a model that a job trains itself. Those after the first hold what rules
// keep between rounds, which all parties are told.
const (
	TensorWeights  = "weights"
	TensorVariate  = "rule.variate"  // SCAFFOLD's c
	TensorCounted  = "rule.counted"  // by party, the last round of the training that counted it
	TensorGradient = "rule.gradient" // mean of the parties'
	TensorNext     = "rule.next"     // round of the training, and which of its sums
	// The decoded sums of the rounds before, with correlated noise, and which rounds these are.
	TensorEarlier = "server.earlier"
	TensorSummed  = "server.summed"
	TensorMean    = "server.mean" // of the models that server.average counts, until now
	// How many of the first rounds have summed moments of features, and the mean of what they found.
	TensorStandard = "training.standard"
	TensorFirst    = "server.first"  // first moment of the server's rule
	TensorSecond   = "server.second" // and second
)

// Standing returns the tensors of the model with which a round of a training begins: none if the
// job trains no model, or does not say how large the model is.
func (j *Job) Standing() []Tensor {
	d := j.Model.Numbers()
	if j.Model.Name == "" || d == 0 {
		return nil
	}
	all := []Tensor{{TensorWeights, []int{d}}}
	if j.Training.stored() {
		all = append(all, Tensor{TensorVariate, []int{d}}, Tensor{TensorCounted, []int{j.Size()}})
	}
	if j.Training.sums() > 1 {
		all = append(all, Tensor{TensorGradient, []int{d}})
	}
	all = append(all, Tensor{TensorNext, []int{2}})
	if b := j.Privacy.Factorise; b > 0 {
		all = append(all, Tensor{TensorSummed, []int{b - 1}}, Tensor{TensorEarlier, []int{(b - 1) * d}})
	}
	if j.Training.Standardise > 0 {
		all = append(all, Tensor{TensorStandard, []int{1 + 2*(d/j.Model.Classes-1)}})
	}
	if j.Server.Average > 0 {
		all = append(all, Tensor{TensorMean, []int{d}})
	}
	return all
}

// Trains reports whether the job trains its model itself, on rows that parties bring.
func (s *Settled) Trains() bool { return s.job.Model.Name != "" }

// Tensors returns the tensors of the model: of a job that trains the tensors of Standing and the
// moments of the server's rule, so that anyone who has the model can continue the training, and of
// any other those that parties share, a bare vector as one of that name.
func (s *Settled) Tensors() []Tensor {
	switch m := &s.job.Model; {
	case s.Trains():
	case m.File != "":
		return s.tensors
	case m.Length > 0:
		return []Tensor{{"vector", []int{m.Length}}}
	default:
		return slices.DeleteFunc(slices.Clone(m.Tensor), func(t Tensor) bool { return m.keeps(t.Name) })
	}
	all := s.job.Standing()
	if rule := s.job.Server.Rule; rule != "fedavg" {
		d := all[0].Shape
		all = append(all, Tensor{TensorFirst, d}, Tensor{TensorSecond, d})
	}
	return all
}

// Averages reports whether the next model is the present one and the mean of the parties' vectors,
// added: the job declares no rule of its own.
func (s *Settled) Averages() bool {
	j := s.job
	return !s.Trains() && j.Server.Rule == "fedavg" && j.Server.Rate == 1 && j.Training.Mask == "none"
}

// ModelLength returns how many numbers the model of a round has: the total of Tensors if the job
// trains, otherwise Length.
func (s *Settled) ModelLength() int {
	if !s.Trains() {
		return s.Length()
	}
	n := 0
	for _, t := range s.Tensors() {
		n += t.Shape[0]
	}
	return n
}
