package party

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/training"
)

// Gradients is a Trainer of a federation whose unit is a record and that declares no training. A
// command of the owner makes the gradient of each record, and Gradients does all else: it tosses
// the coins, clips and adds up. Make one with [NewGradients].
//
// The command is started ahead, twice, so that another is ready if one ends: it finds the folder
// that HUSHSUM_WORK names, and prints the line "ready" whenever it waits for work. That comes as a
// line of JSON on its standard input, {"round": 3, "units": [4, 17]}: the command then reads the
// model, model.safetensors or model.npz, and leaves gradients.safetensors or gradients.npz, with
// the names of the model's tensors and one more dimension before their own, for the units in their
// order. Units are records, or persons, numbered from 0. At the end of its input it ends.
//
// What a unit adds, or that it adds nothing, is to depend on the unit and the model alone. Where
// the command fails on several units, each is asked for alone; one on which it fails alone adds
// nothing. It fails if it ends, is killed, says it is ready without gradients, leaves some that are
// not finite or of another form, or takes longer than a fifth of the time until the round's
// instant, for one unit and for several alike: then a unit that is in time among others would be in
// time alone. If several had more time, a quick unit would make up for a slow one, and take that
// along if it were missing. So three units of a round may take for ever, and some may end the
// command, as long as it starts quickly. With more the round is over before there is a sum; zeros
// are submitted, and for the round nothing is proved.
type Gradients struct {
	line, folder string
	units        int
	limit        time.Duration
	out          io.Writer

	life   context.Context // of the children
	end    context.CancelFunc
	ready  []*child // the first is the one to call, the second stands by
	random io.Reader
	// expires, for tests, replaces the clock of a call.
	expires func(units []int, limit time.Duration) <-chan time.Time
}

// gradientFiles names the files that a command may leave; the first that exists counts.
var gradientFiles = []string{"gradients.safetensors", "gradients.npz"}

// atOnce is how many numbers of gradients are asked for at once, unless one unit has more.
const atOnce = 4_000_000

// lives is how many commands that end before they are ready a call waits for.
const lives = 3

// NewGradients starts a command, for the shell, that makes the gradients of this many units, and
// waits until it is ready. The command prints to out what is for its owner; nil: nowhere. It fails
// with job.ErrConfig where the federation's unit is a party, it declares training or asks queries,
// or all parties together have fewer records, and with [ErrTraining] where the command ends first.
// The command ends with ctx, or by Close.
func NewGradients(
	ctx context.Context, f *federation.Federation, line, folder string, units int, out io.Writer,
) (*Gradients, error) {
	if !f.Settled.OwnGradients() {
		return nil, &job.ConfigError{Path: "privacy.unit",
			Reason: "the federation does not leave the gradients of records to its parties",
			Advice: "give --rows, or --train and a command, as the federation says"}
	}
	if err := f.Settled.Coins().Fits(units); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	limit := f.Settled.SubmitAfter() / 5
	g := &Gradients{line: line, folder: folder, units: units, limit: limit, out: out}
	g.life, g.end = context.WithCancel(ctx)
	if _, err := g.standing(ctx); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// Close ends the command.
func (g *Gradients) Close() error {
	g.end()
	for _, c := range g.ready {
		<-c.ended
	}
	g.ready = nil
	return nil
}

// Train returns minus the sum of the gradients of the units that coins draw, each clipped; zeros if
// more come up than the federation has time for.
func (g *Gradients) Train(ctx context.Context, w *Work) (*Update, error) {
	drawn, err := training.Draw(g.units, w.Coins.Rate, g.random)
	if err != nil {
		return nil, err
	}
	defer clear(drawn)
	u := &Update{Vector: make([]float64, len(w.Model))}
	if len(drawn) > w.Coins.Most {
		return u, nil
	}
	if err := w.write(g.folder); err != nil {
		return nil, err
	}
	defer g.remove()
	failed, left := 0, g.limit
	var first error
	for several := range slices.Chunk(drawn, max(1, atOnce/len(w.Model))) {
		if len(several) > 1 && left > 0 {
			began := time.Now()
			err := g.add(ctx, u, w, several, left)
			left -= time.Since(began)
			if err == nil {
				continue
			}
			if !errors.Is(err, errUnits) {
				return nil, err
			}
		}
		for k := range several {
			switch err := g.add(ctx, u, w, several[k:k+1], g.limit); {
			case errors.Is(err, errUnits):
				failed++
				first = cmp.Or(first, err)
			case err != nil:
				return nil, err
			}
		}
	}
	if failed > 0 {
		some := "some records, which add"
		if failed == len(drawn) {
			some = "all records, each of which adds"
		}
		u.Without = fmt.Errorf("%w on %s nothing: %w", ErrTraining, some, first)
	}
	return u, nil
}

// errUnits: a command failed, perhaps because of the units that it was asked for.
var errUnits = errors.New("asked for one alone")

// add adds to an update what units add, or nothing if it fails.
func (g *Gradients) add(
	ctx context.Context, u *Update, w *Work, units []int, limit time.Duration,
) error {
	if err := g.call(ctx, w.Round, units, limit); err != nil {
		return err
	}
	rows, err := g.read(w, len(units))
	if err != nil {
		return fmt.Errorf("%w: %w", errUnits, err)
	}
	for _, row := range rows {
		clipped, _, err := aggregation.Clip(row, w.Coins.Clip)
		if err != nil {
			return err // of the clip: numbers are finite
		}
		for i, x := range clipped {
			u.Vector[i] -= x
		}
	}
	return nil
}

// call has the command make the gradients of some units. It fails with errUnits, and with what has
// nothing to do with them: the end of the round, or a command that does not come up.
func (g *Gradients) call(
	ctx context.Context, round int, units []int, limit time.Duration,
) error {
	c, err := g.standing(ctx)
	if err != nil {
		return err
	}
	if err := g.remove(); err != nil {
		return err
	}
	line, err := json.Marshal(struct {
		Round int   `json:"round"`
		Units []int `json:"units"`
	}{round, units})
	if err != nil {
		return err
	}
	var expired <-chan time.Time
	if g.expires != nil {
		expired = g.expires(units, limit)
	} else {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		expired = timer.C
	}
	c.ask(append(line, '\n'))
	select {
	case <-c.waits:
		c.idle = true
		return nil
	case <-c.ended:
		err = fmt.Errorf("%w: %w", errUnits, c.err)
	case <-expired:
		err = fmt.Errorf("%w: it took longer than a fifth of privacy.submit_after", errUnits)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	g.drop()
	return err
}

// standing returns a command that waits for work.
func (g *Gradients) standing(ctx context.Context) (c *child, err error) {
	for range lives {
		for len(g.ready) < 2 {
			g.ready = append(g.ready, g.start())
		}
		c = g.ready[0]
		if c.idle {
			select {
			case <-c.ended: // while nothing was asked of it
			default:
				return c, nil
			}
		}
		select {
		case <-c.waits:
			c.idle = true
			return c, nil
		case <-c.ended:
			err = fmt.Errorf("%w: it ended before it was ready: %w", ErrTraining, c.err)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		g.drop()
	}
	return nil, err
}

// drop ends the command that was called, and has another stand by.
func (g *Gradients) drop() {
	g.ready[0].stop()
	<-g.ready[0].ended // so that it writes nothing more
	g.ready = append(g.ready[1:], g.start())
}

// remove removes what a call has left.
func (g *Gradients) remove() error {
	for _, name := range gradientFiles {
		if err := os.RemoveAll(filepath.Join(g.folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// read reads the gradients of n units.
func (g *Gradients) read(w *Work, n int) (rows [][]float64, err error) {
	var b []byte
	err = fs.ErrNotExist
	for _, name := range gradientFiles {
		name = filepath.Join(g.folder, name)
		var about fs.FileInfo
		if about, err = os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && about.Size() > int64(2*n*8*len(w.Model)+2<<20) {
			return nil, errors.New("it left a file of more than twice the gradients' length")
		}
		if err == nil {
			b, err = os.ReadFile(name)
		}
		break
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("it left no gradients.safetensors or gradients.npz")
	case err != nil:
		return nil, err
	}
	have, values, _, err := tensor.ParseAny(b)
	if err != nil {
		return nil, err
	}
	rows = make([][]float64, n)
	for _, want := range w.Spec.Tensors {
		at, found := 0, false
		for _, t := range have.Tensors {
			if found = t.Name == want.Name && slices.Equal(t.Shape, append([]int{n}, want.Shape...)); found {
				break
			}
			at += t.Len()
		}
		if !found {
			return nil, fmt.Errorf("it left no %q with a gradient of shape %v for each record", want.Name,
				want.Shape)
		}
		for k := range rows {
			rows[k] = append(rows[k], values[at+k*want.Len():at+(k+1)*want.Len()]...)
		}
	}
	return rows, nil
}
