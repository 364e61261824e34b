package federation

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"path"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/service/tensor"
)

// Uniform returns a first model. A tensor of two or more dimensions is drawn uniformly from ±1/√k,
// with k the product of its dimensions but for the first, as layers of (outputs, inputs, …) have
// inputs; a tensor of fewer dimensions is zero. Number j of a tensor is (2u−1)/√k, where u is the
// j-th number of ChaCha8 of math/rand/v2, its top 53 bits over 2^53, seeded with SHA-256 of
// "hushsum/1 first model", a line feed, the seed in decimal digits, a line feed, and the tensor's
// name. The first model need not be secret.
func Uniform(spec *tensor.Spec, seed uint64) []float64 {
	var out []float64
	for _, t := range spec.Tensors {
		if len(t.Shape) < 2 {
			out = append(out, make([]float64, t.Len())...)
			continue
		}
		own := fmt.Appendf(nil, labels.FirstModel+"\n%d\n%s", seed, t.Name)
		source := rand.NewChaCha8(sha256.Sum256(own))
		bound := 1 / math.Sqrt(float64(t.Len()/t.Shape[0]))
		for range t.Len() {
			u := float64(source.Uint64()>>11) / (1 << 53)
			out = append(out, (2*u-1)*bound)
		}
	}
	return out
}

// settleModel finds the tensors, and which of them are shared.
func (f *Federation) settleModel(model []byte) error {
	m := f.Job.Model
	f.Spec.DType = tensor.Float32
	if m.DType == "float64" {
		f.Spec.DType = tensor.Float64
	}
	var all tensor.Spec
	var values []float64
	switch {
	case m.File != "":
		var err error
		if all, values, _, err = tensor.ParseAny(model); err != nil {
			return f.Job.Mistake("model.file",
				"use a safetensors file of F32 or F64, or an .npz file of f4 or f8", "%v", err)
		}
	case m.Length > 0:
		all.Tensors = []tensor.Tensor{{Name: "vector", Shape: []int{m.Length}}}
	default:
		for _, t := range m.Tensor {
			all.Tensors = append(all.Tensors, tensor.Tensor{Name: t.Name, Shape: t.Shape})
		}
		if err := all.Validate(); err != nil {
			return f.Job.Mistake("model.tensor", "", "%v", err)
		}
		if m.Init == "uniform" {
			values = Uniform(&all, f.Job.Seed)
		}
	}
	at := 0
	for _, t := range all.Tensors {
		size := t.Len()
		personal, err := matches(m.Personal, t.Name)
		if err != nil {
			return f.Job.Mistake("model.personal", "", "%v", err)
		}
		if personal {
			f.Kept = append(f.Kept, t.Name)
		} else {
			f.Spec.Tensors = append(f.Spec.Tensors, t)
			if values != nil {
				f.Initial = append(f.Initial, values[at:at+size]...)
			}
		}
		at += size
	}
	var err error
	if f.Initial, err = f.stored(f.Initial); err != nil {
		return f.Job.Mistake("model.file", `write model.dtype = "float64"`,
			"it has numbers that float32 cannot hold")
	}
	if len(f.Spec.Tensors) == 0 {
		return f.Job.Mistake("model.personal", "share at least one",
			"every tensor stays with the parties")
	}
	return nil
}

func matches(patterns []string, name string) (bool, error) {
	for _, p := range patterns {
		ok, err := path.Match(p, name)
		if err != nil {
			return false, fmt.Errorf("%q is not a pattern", p)
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}
