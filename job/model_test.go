package job_test

import (
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/training"
)

// The sizes of models are those of package learning, which package job does without.
func TestNumbers(t *testing.T) {
	n := 0
	for _, name := range []string{"logistic", "softmax", "mlp:200", "mlp:7,30,2", "scattering",
		"lenet", "lenet-norm"} {
		for _, features := range []int{1, 105, 256, 784, 3 * 32 * 32, 400, 300, 65536, 1 << 20} {
			for _, classes := range []int{2, 10, 100} {
				m := job.Model{Name: name, Features: features, Classes: classes}
				want := 0
				if o, err := training.OptionsOf(&job.Job{Model: m}); err == nil {
					want = o.Model.NumParams()
				} else if name == "logistic" {
					continue
				}
				if got := m.Numbers(); got != want && want <= job.MaxLength {
					t.Errorf("%s of %d and %d: %d, want %d", name, features, classes, got, want)
				}
				n++
			}
		}
	}
	tensors := job.Model{Tensor: []job.Tensor{{Shape: []int{3, 4}}, {Shape: []int{5}}}}
	if got := tensors.Numbers(); got != 17 {
		t.Errorf("tensors have %d", got)
	}
}
