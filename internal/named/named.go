// Package named has the names by which command lines and files call models.
package named

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
)

// Models are examples of the names that [Model] knows.
var Models = []string{"softmax", "mlp:200", "lenet", "lenet-norm", "logistic"}

// A ModelError says why a name gives no model.
type ModelError struct {
	Reason, Advice string
	Unknown        bool // there is no such name
	Lambda         bool // it is the regularisation
}

func (e *ModelError) Error() string { return "named: " + e.Reason + "; " + e.Advice }

// Model returns the model of a name for rows of so many features and classes, at least
// 2. It fails with a [ModelError].
func Model(name string, features, classes int, lambda float64) (learning.Model, error) {
	fail := func(advice, format string, a ...any) (learning.Model, error) {
		return nil, &ModelError{Reason: fmt.Sprintf(format, a...), Advice: advice}
	}
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return nil, &ModelError{
			Reason: fmt.Sprintf("%v is no regularisation", lambda),
			Advice: "Use 0 or a small number above it, such as 1e-4.",
			Lambda: true,
		}
	}
	if widths, ok := strings.CutPrefix(name, "mlp:"); ok {
		return perceptron(widths, features, classes, lambda)
	}
	switch name {
	case "lenet", "lenet-norm":
		m, ok := learning.LeNetFor(features, classes)
		if !ok {
			return fail("Use --data mnist or fashion-mnist, or another model.", "%s takes square images "+
				"of 16 pixels a side or more, and rows here have %d features", name, features)
		}
		m.BatchNorm, m.Lambda = name == "lenet-norm", lambda
		return m, nil
	case "softmax":
		return learning.Softmax{Features: features, Outputs: classes, Lambda: lambda}, nil
	case "logistic":
		if classes > 2 {
			return fail("Use softmax.", "the data has %d classes, and logistic regression two", classes)
		}
		return learning.Logistic{Features: features, Lambda: lambda}, nil
	}
	return nil, &ModelError{
		Reason:  fmt.Sprintf("there is no %q", name),
		Advice:  "Use one of " + strings.Join(Models, ", ") + ".",
		Unknown: true,
	}
}

// mostWeights is masking.MaxLength, for people.
const mostWeights = "268,435,456"

// perceptron is the model mlp:widths.
func perceptron(widths string, features, classes int, lambda float64) (learning.Model, error) {
	var hidden []int
	for _, text := range strings.Split(widths, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1<<14 {
			return nil, &ModelError{
				Reason: fmt.Sprintf("%q is no number of hidden units", text),
				Advice: "Use 1 to 16384, as in mlp:200 or mlp:100,50.",
			}
		}
		hidden = append(hidden, n)
	}
	m := learning.MLP{Features: features, Hidden: hidden, Outputs: classes, Lambda: lambda}
	if n := m.NumParams(); n < 1 || n > masking.MaxLength { // 0 stands for too many to count
		return nil, &ModelError{
			Reason: fmt.Sprintf("mlp:%s is too large: sums take up to %s weights", widths,
				mostWeights),
			Advice: "Use fewer or smaller layers.",
		}
	}
	return m, nil
}

// Classes is how many classes rows have, at least 2.
func Classes(sets ...*learning.Dataset) int {
	classes := 2
	for _, d := range sets {
		for _, y := range d.Labels {
			classes = max(classes, y+1)
		}
	}
	return classes
}
