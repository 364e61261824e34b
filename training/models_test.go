package training

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// A name gives the model that it says, with the sizes of the rows.
func TestModel(t *testing.T) {
	lenet, _ := learning.LeNetFor(256, 3)
	lenet.Lambda = 0.5
	norm := lenet
	norm.BatchNorm = true
	for _, c := range []struct {
		name              string
		features, classes int
		want              learning.Model
	}{
		{"softmax", 7, 3, learning.Softmax{Features: 7, Outputs: 3, Lambda: 0.5}},
		{"logistic", 7, 2, learning.Logistic{Features: 7, Lambda: 0.5}},
		{"mlp:1", 7, 3, learning.MLP{Features: 7, Hidden: []int{1}, Outputs: 3, Lambda: 0.5}},
		{"mlp:16384", 7, 3, learning.MLP{Features: 7, Hidden: []int{1 << 14}, Outputs: 3, Lambda: 0.5}},
		{"mlp:5,4", 7, 3, learning.MLP{Features: 7, Hidden: []int{5, 4}, Outputs: 3, Lambda: 0.5}},
		{"lenet", 256, 3, lenet},
		{"lenet-norm", 256, 3, norm},
	} {
		got, err := newModel(c.name, c.features, c.classes, 0.5)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
	for _, name := range models {
		if m, err := newModel(name, 256, 2, 0); err != nil || m.NumParams() < 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What gives no model says why, and which field that is.
func TestModelErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		classes int
		lambda  float64
		says    string
	}{
		{"softmax", 3, -1, "-1 is not a regularisation"},
		{"softmax", 3, math.NaN(), "NaN is not a regularisation"},
		{"softmax", 3, math.Inf(1), "+Inf is not a regularisation"},
		{"none", 3, math.Inf(1), "+Inf is not a regularisation"},
		{"", 3, 0, `there is no ""`},
		{"mlp", 3, 0, `there is no "mlp"`},
		{"Softmax", 3, 0, `there is no "Softmax"`},
		{"logistic", 3, 0, "the data has 3 classes"},
		{"lenet", 3, 0, "rows here have 255 features"},
		{"mlp:", 3, 0, `"" is not a number of hidden units`},
		{"mlp:0", 3, 0, `"0" is not a number`},
		{"mlp:16385", 3, 0, `"16385" is not a number`},
		{"mlp:5,-4", 3, 0, `"-4" is not a number`},
		{"mlp:16384,16384", 3, 0, "mlp:16384,16384 is too large: sums take up to 268,435,456"},
	} {
		m, err := newModel(c.name, 255, c.classes, c.lambda)
		path := "model.name"
		if c.lambda != 0 {
			path = "training.lambda"
		}
		var wrong *job.ConfigError
		if m != nil || !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, c.says) ||
			wrong.Path != path || wrong.Advice == "" {
			t.Errorf("%s: %v, %+v", c.name, m, err)
		}
	}
}

func TestClasses(t *testing.T) {
	of := func(labels ...int) *learning.Dataset { return &learning.Dataset{Labels: labels} }
	for _, c := range []struct {
		sets []*learning.Dataset
		want int
	}{
		{nil, 2},
		{[]*learning.Dataset{of(), of(0)}, 2},
		{[]*learning.Dataset{of(0, 1)}, 2},
		{[]*learning.Dataset{of(0, 2, 1), of(1)}, 3},
		{[]*learning.Dataset{of(0), of(0, 9)}, 10},
	} {
		if got := classesOf(c.sets...); got != c.want {
			t.Errorf("%d, want %d", got, c.want)
		}
	}
}
