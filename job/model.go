package job

import (
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var modelPattern = regexp.MustCompile(
	`^(logistic|softmax|scattering|lenet|lenet-norm|mlp:[1-9][0-9]{0,4}(,[1-9][0-9]{0,4}){0,7})$`)

// knownModel reports whether a text names a model that a job trains itself.
func knownModel(name string) bool { return modelPattern.MatchString(name) }

// Numbers returns how many numbers a party's vector has for the model, without metrics; 0 if that
// depends on rows or on a file, or is more than [MaxLength].
func (m *Model) Numbers() int {
	n := 0.0
	switch {
	case m.Name != "" && (m.Features == 0 || m.Classes == 0):
		return 0
	case m.Name == "logistic":
		n = float64(m.Features)
	case m.Name == "lenet" || m.Name == "lenet-norm":
		n = lenetNumbers(m.Features, m.Classes, m.Name == "lenet-norm")
	case m.Name == "scattering":
		n = scatteringNumbers(m.Features, m.Classes)
	case m.Name != "":
		n = denseNumbers(m.widths())
	case m.Length > 0:
		n = float64(m.Length)
	default:
		for _, t := range m.Tensor {
			if m.keeps(t.Name) {
				continue
			}
			size := 1.0
			for _, k := range t.Shape {
				size *= float64(k)
			}
			n += size
		}
	}
	if n > MaxLength {
		return 0
	}
	return int(n)
}

// keeps reports whether a tensor stays with each party.
func (m *Model) keeps(name string) bool {
	return slices.ContainsFunc(m.Personal, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// widths are those of a perceptron's layers, or of softmax, which has no hidden one.
func (m *Model) widths() []int {
	out := []int{m.Features}
	if hidden, ok := strings.CutPrefix(m.Name, "mlp:"); ok {
		for _, text := range strings.Split(hidden, ",") {
			n, _ := strconv.Atoi(text) // as the pattern has it
			out = append(out, n)
		}
	}
	return append(out, m.Classes)
}

// denseNumbers counts the weights and biases of dense layers.
func denseNumbers(widths []int) (n float64) {
	for i := 1; i < len(widths); i++ {
		n += float64(widths[i-1]+1) * float64(widths[i])
	}
	return n
}

// lenetSide returns the side of the square images that a LeNet takes, of one plane or three; 0 if
// rows with that many features are none.
func lenetSide(features int) (side, planes int) {
	for _, planes := range []int{1, 3} {
		side := int(math.Round(math.Sqrt(float64(features / planes))))
		if planes*side*side == features && side >= 16 && side <= 256 && side%4 == 0 {
			return side, planes
		}
	}
	return 0, 0
}

// scatteringNumbers counts the parameters of a softmax of scattering features, 0 if rows with so
// many numbers are no images that it takes: see learning.Scattering.
func scatteringNumbers(features, classes int) float64 {
	side := int(math.Round(math.Sqrt(float64(features))))
	if side*side != features || side < 8 || side > 256 {
		return 0
	}
	local := (side+11)/4 - 2
	return denseNumbers([]int{81 * local * local, classes})
}

// lenetNumbers counts the parameters of a LeNet: see learning.LeNet.
func lenetNumbers(features, classes int, norm bool) (n float64) {
	side, planes := lenetSide(features)
	if side == 0 {
		return 0
	}
	for _, maps := range []int{6, 16} {
		n += float64(maps*planes*25 + maps)
		if norm {
			n += float64(4 * maps)
		}
		side, planes = (side-4)/2, maps
	}
	return n + denseNumbers([]int{16 * side * side, 120, 84, classes})
}
