package catalogue

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/hushsum/hushsum/attacks"
)

// Attacks have names of their own and say what they are.
func TestAll(t *testing.T) {
	names := make(map[string]bool)
	for _, a := range All() {
		if names[a.Name] {
			t.Errorf("two attacks are named %s", a.Name)
		}
		names[a.Name] = true
		if a.Name == "" || a.Adversary == "" || a.About == "" || a.Defence == "" || a.Run == nil {
			t.Errorf("%+v is not complete", a)
		}
	}
}

// Attacks that read data sets are those that say so; the others end with the context.
func TestDataSets(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, a := range All() {
		_, err := a.Run(ctx, attacks.Options{Data: t.TempDir()})
		if reads := errors.Is(err, fs.ErrNotExist); reads != (a.DataSets != nil) {
			t.Errorf("%s reads data: %v, %v, and says %v", a.Name, reads, err, a.DataSets)
		}
	}
}
