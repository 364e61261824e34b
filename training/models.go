package training

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
)

// models are examples of the names that newModel knows.
var models = []string{"softmax", "scattering", "mlp:200", "lenet", "lenet-norm", "logistic"}

// newModel returns the model of a name for rows with the given numbers of features and of
// classes, at least 2. It fails with a [job.ConfigError].
func newModel(name string, features, classes int, lambda float64) (learning.Model, error) {
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return nil, &job.ConfigError{Path: "training.lambda",
			Reason: fmt.Sprintf("%v is not a regularisation", lambda),
			Advice: "use 0 or a small number above it, such as 1e-4"}
	}
	if widths, ok := strings.CutPrefix(name, "mlp:"); ok {
		return perceptron(widths, features, classes, lambda)
	}
	switch name {
	case "lenet", "lenet-norm":
		m, ok := learning.LeNetFor(features, classes)
		if !ok {
			return noModel("use images, or another model", "%s takes square images "+
				"of 16 pixels a side or more, and rows here have %d features", name, features)
		}
		m.BatchNorm, m.Lambda = name == "lenet-norm", lambda
		return m, nil
	case "scattering":
		m, ok := learning.ScatteringFor(features, classes)
		if !ok {
			return noModel("use images, or another model", "scattering takes square images of one plane, "+
				"of 8 to 256 pixels a side, and rows here have %d features", features)
		}
		m.Lambda = lambda
		return m, nil
	case "softmax":
		return learning.Softmax{Features: features, Outputs: classes, Lambda: lambda}, nil
	case "logistic":
		if classes > 2 {
			return noModel("use softmax", "the data has %d classes, and logistic regression two", classes)
		}
		return learning.Logistic{Features: features, Lambda: lambda}, nil
	}
	return noModel("use one of "+strings.Join(models, ", "), "there is no %q", name)
}

func noModel(advice, format string, a ...any) (learning.Model, error) {
	return nil, &job.ConfigError{Path: "model.name", Reason: fmt.Sprintf(format, a...), Advice: advice}
}

// mostWeights is masking.MaxLength, for people.
const mostWeights = "268,435,456"

// perceptron is the model mlp:widths.
func perceptron(widths string, features, classes int, lambda float64) (learning.Model, error) {
	var hidden []int
	for _, text := range strings.Split(widths, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1<<14 {
			return noModel("use 1 to 16384, as in mlp:200 or mlp:100,50",
				"%q is not a number of hidden units", text)
		}
		hidden = append(hidden, n)
	}
	m := learning.MLP{Features: features, Hidden: hidden, Outputs: classes, Lambda: lambda}
	if n := m.NumParams(); n < 1 || n > masking.MaxLength { // 0 stands for too many to count
		return noModel("use fewer or smaller layers", "mlp:%s is too large: sums take up to %s weights",
			widths, mostWeights)
	}
	return m, nil
}

// classesOf returns how many classes rows have, at least 2.
func classesOf(sets ...*learning.Dataset) int {
	classes := 2
	for _, d := range sets {
		for _, y := range d.Labels {
			classes = max(classes, y+1)
		}
	}
	return classes
}
