package federation

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/service/tensor"
)

// Values of Model.Init.
const (
	initZeros   = "zeros"
	initUniform = "uniform"
)

// labelFirst begins what the first model is drawn from.
const labelFirst = "hushsum/2 first model"

// Uniform returns a first model. A tensor of two or more dimensions is drawn uniformly
// from ±1/√k, with k the product of its dimensions but for the first, as layers of
// (outputs, inputs, …) have inputs; one of fewer is zero. Number j of a tensor is
// (2u−1)/√k, where u is the j-th number of ChaCha8 of math/rand/v2, its top 53 bits over
// 2^53, seeded with SHA-256 of "hushsum/2 first model", a line feed, the seed in decimal
// digits, a line feed, and the tensor's name. Nothing rests on its being unknown.
func Uniform(spec *tensor.Spec, seed uint64) []float64 {
	var out []float64
	for _, t := range spec.Tensors {
		if len(t.Shape) < 2 {
			out = append(out, make([]float64, t.Len())...)
			continue
		}
		source := rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", labelFirst, seed, t.Name)))
		bound := 1 / math.Sqrt(float64(t.Len()/t.Shape[0]))
		for range t.Len() {
			u := float64(source.Uint64()>>11) / (1 << 53)
			out = append(out, (2*u-1)*bound)
		}
	}
	return out
}

// checkInit refuses what says nothing.
func (f *Federation) checkInit() error {
	m := f.File.Model
	switch {
	case m.Init != "" && m.Init != initZeros && m.Init != initUniform:
		return wrong(f.Text, "model.init", fmt.Sprintf("there is no beginning %q", m.Init),
			"use zeros or uniform")
	case m.Init != "" && m.File != "":
		return wrong(f.Text, "model.init", "the file has the first model", "leave one of the two out")
	case f.File.Seed != 0 && m.Init != initUniform:
		return wrong(f.Text, "seed", "nothing is drawn from it", `set init = "uniform" under [model]`)
	}
	return nil
}
