package collusion

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/realdata"
	"gonum.org/v1/gonum/stat"
)

// Weights are scaled to the variance of the table, with the data and without.
func TestAdultInputs(t *testing.T) {
	for name, folder := range map[string]func(t *testing.T) string{
		"made up": func(*testing.T) string { return "" },
		"Adult":   func(t *testing.T) string { return filepath.Dir(realdata.Dir(t, "adult")) },
	} {
		t.Run(name, func(t *testing.T) {
			options := attacks.Options{Data: folder(t)}
			inputs, scale, err := adultInputs(context.Background(), options, 3, 100, 2)
			if err != nil {
				t.Fatal(err)
			}
			variance := stat.PopVariance(inputs, nil)
			if math.Abs(variance-weightVariance) > 1e-9 || !(scale > 0) {
				t.Errorf("variance %v, λ = %v", variance, scale)
			}
		})
	}
}
