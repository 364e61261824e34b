package party

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/tensor"
)

// ErrTraining: the training command failed or left no usable result.
var ErrTraining = errors.New("party: the training command failed")

// Command is a Trainer that runs a program in any language. The program finds round.json and the
// model, as model.safetensors and model.npz, in the folder that HUSHSUM_WORK names. There it writes
// either update.safetensors or update.npz, the change of the model, or trained.safetensors or
// trained.npz, the trained weights; and metrics.json if it has metrics. Where the unit is a record,
// round.json has the [job.Coins] of the update, and weights are refused. Files that an earlier
// round left are deleted before.
type Command struct {
	Line   string        // for the shell
	Folder string        // for the files, of this command alone
	Limit  time.Duration // of a round, 0: none
	Out    io.Writer     // receives what the command prints; nil: discarded
}

const mostMetrics = 64 << 10

// updateFiles names the files that a command may leave; the first that exists counts.
var updateFiles = []string{"update.safetensors", "update.npz", "trained.safetensors", "trained.npz"}

// Train runs the command.
func (c *Command) Train(ctx context.Context, w *Work) (*Update, error) {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, name := range append(slices.Clone(updateFiles), "metrics.json") {
		if err := os.Remove(at(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	about, err := json.Marshal(struct {
		Round int        `json:"round"`
		Coins *job.Coins `json:"coins,omitempty"`
	}{w.Round, w.Coins})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.write(folder), os.WriteFile(at("round.json"), about, 0o600)); err != nil {
		return nil, err
	}
	outer := ctx
	if c.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Limit)
		defer cancel()
	}
	run := shellOf(ctx, c.Line, folder)
	run.Stdout, run.Stderr = c.Out, c.Out
	if err := run.Run(); err != nil {
		switch {
		case outer.Err() != nil:
			return nil, outer.Err()
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: it took longer than %v", ErrTraining, c.Limit)
		}
		return nil, fmt.Errorf("%w: %w", ErrTraining, err)
	}
	return readUpdate(at, w)
}

// write writes the model's files.
func (w *Work) write(folder string) error {
	arrays, err := w.Spec.AppendNPZ(nil, w.Model)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(folder, "model.safetensors"), w.File, 0o600),
		os.WriteFile(filepath.Join(folder, "model.npz"), arrays, 0o600))
}

// readUpdate reads the files that a command has left.
func readUpdate(at func(string) string, w *Work) (*Update, error) {
	u := new(Update)
	var b []byte
	err, left := fs.ErrNotExist, ""
	for _, name := range updateFiles {
		if b, err = os.ReadFile(at(name)); !errors.Is(err, fs.ErrNotExist) {
			left = name
			break
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: it left none of %s in the folder that HUSHSUM_WORK names",
			ErrTraining, strings.Join(updateFiles, ", "))
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrTraining, err)
	}
	trained := strings.HasPrefix(left, "trained")
	if trained && w.Coins != nil {
		return nil, fmt.Errorf("%w: it left %s, and trained weights are not a sum of the gradients of "+
			"records that coins drew", ErrTraining, left)
	}
	spec, values, _, err := tensor.ParseAny(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTraining, err)
	}
	if w.Coins != nil && spec.DType != tensor.Float64 {
		return nil, fmt.Errorf("%w: it left a sum over records in float32, whose rounding no noise "+
			"covers; add up and save in float64", ErrTraining)
	}
	if u.Vector, err = arrange(w.Spec, &spec, values); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTraining, err)
	}
	if trained {
		for i := range u.Vector {
			u.Vector[i] -= w.Model[i]
		}
	}
	if !w.Metrics {
		return u, nil
	}
	if b, err = os.ReadFile(at("metrics.json")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the federation sums loss and accuracy, and it left no metrics.json, "+
			`such as {"loss": 0.4, "accuracy": 0.9}`, ErrTraining)
	}
	if err == nil {
		u.Loss, u.Accuracy, err = metricsOf(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: metrics.json: %w", ErrTraining, err)
	}
	return u, nil
}

// metricsOf reads a metrics.json.
func metricsOf(text []byte) (loss, accuracy float64, err error) {
	var m struct {
		Loss     *float64 `json:"loss"`
		Accuracy *float64 `json:"accuracy"`
	}
	if len(text) > mostMetrics {
		return 0, 0, fmt.Errorf("%d bytes, at most %d are read", len(text), mostMetrics)
	}
	if err := strict.JSON(text, &m); err != nil {
		return 0, 0, err
	}
	if m.Loss == nil || m.Accuracy == nil {
		return 0, 0, errors.New(`it takes both "loss" and "accuracy"`)
	}
	return *m.Loss, *m.Accuracy, nil
}

// arrange puts a file's tensors into the order of the model. The file may have more, which stay
// with the party: its own.
func arrange(want, have *tensor.Spec, values []float64) ([]float64, error) {
	at := make(map[string]int)
	n := 0
	for _, t := range have.Tensors {
		at[t.Name] = n
		n += t.Len()
	}
	out := make([]float64, 0, want.Len())
	for _, t := range want.Tensors {
		from, found := at[t.Name]
		if !found {
			return nil, fmt.Errorf("%w: there is no %q", tensor.ErrFormat, t.Name)
		}
		for _, h := range have.Tensors {
			if h.Name == t.Name && h.Len() != t.Len() {
				return nil, fmt.Errorf("%w: %q has %d numbers, want %d", tensor.ErrFormat, t.Name, h.Len(),
					t.Len())
			}
		}
		out = append(out, values[from:from+t.Len()]...)
	}
	return out, nil
}
