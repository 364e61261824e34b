package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
)

// stateFormat is the format of state.
const stateFormat = 1

// state holds the data that a decision records. protocol seals sessions on their own, and package
// record seals the whole.
type state struct {
	Format  int
	History []Past
	Why     string
	Model   *record.Ref
	Objects []object // of drive: a long sum, or what a committee needs
	After   int      // rounds that the model has gone through
	Outages int      // rounds that were lost while the record was away in them
	Orders  uint64   // of operators, that were carried out
	Drive   []byte   // of drive.Lead.Save
	Figures figures
	// Receipts has what the receipts of the last round and of the open one are made from.
	Receipts *receiptsState
}

// modelState is a model with the state of the server's rule. It is stored with each number in eight
// bytes, little-endian.
type modelState struct {
	Model   []float64
	Moments [][]float64
}

// vectors lists the stored vectors, one after another.
func (m *modelState) vectors() [][]float64 { return append([][]float64{m.Model}, m.Moments...) }

func (m *modelState) size() (bytes int) {
	for _, v := range m.vectors() {
		bytes += 8 * len(v)
	}
	return bytes
}

// WriteTo writes in pieces, so that a long model is not in memory twice.
func (m *modelState) WriteTo(w io.Writer) (written int64, err error) {
	var piece [1 << 15]byte
	for _, v := range m.vectors() {
		for part := range slices.Chunk(v, len(piece)/8) {
			for i, x := range part {
				binary.LittleEndian.PutUint64(piece[8*i:], math.Float64bits(x))
			}
			n, err := w.Write(piece[:8*len(part)])
			written += int64(n)
			if err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// parseModel reads a model of a given number of numbers from an object.
func parseModel(b []byte, length int) (m modelState, err error) {
	if len(b) != 8*length && len(b) != 3*8*length {
		return m, fmt.Errorf("%w: a model of %d bytes", record.ErrRecord, len(b))
	}
	take := func() []float64 {
		v := make([]float64, length)
		for i := range v {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		b = b[8*length:]
		return v
	}
	m.Model = take()
	for len(b) > 0 {
		m.Moments = append(m.Moments, take())
	}
	return m, nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func decode(b []byte, into any) error {
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(into); err != nil {
		return fmt.Errorf("%w: %w", record.ErrRecord, err)
	}
	return nil
}

// recorder is a runner as the record of its leader.
type recorder struct{ r *Runner }

// Save is the method of host.Record.
func (k recorder) Save(ctx context.Context, _ drive.Lead) error { return k.r.record(ctx) }

// record stores the state as a decision.
func (r *Runner) record(ctx context.Context) error {
	if r.modelRef == nil {
		ref, err := r.putModel(ctx)
		if err != nil {
			return err
		}
		r.modelRef = ref
	}
	r.Hold.Round = max(r.Hold.Round, r.drive.Status().Round)
	r.Hold.Entry, r.Hold.Lines = r.entry(), r.lines
	out := state{
		Format:  stateFormat,
		History: r.history,
		Why:     r.why,
		Model:   r.modelRef,
		After:   r.after(),
		Outages: r.outages,
		Orders:  r.orders,
		Figures: *r.figures(),

		Receipts: r.receipts.state(),
	}
	key := r.Keys.Newest()
	if err := r.recordDrive(ctx, &out, key); err != nil {
		return err
	}
	b, err := encode(out)
	if err != nil {
		return err
	}
	written := r.clock.writing()
	err = r.Hold.Decide(ctx, b, r.spent...)
	written()
	if err != nil {
		return err
	}
	r.spent, r.notices, r.lines, r.recorded = nil, nil, nil, r.drive.Status().Stage
	if *r.Keys.Newest() != *key { // there has been a newer one since
		return r.record(ctx)
	}
	return nil
}

// Reseal records the present state twice more, with the state and the boxes in it sealed under the
// newest key, so that no older state is kept.
func (r *Runner) Reseal(ctx context.Context) error {
	nothing := func(drive.Lead, drive.Time) error { return nil }
	return r.host.Decide(ctx, nothing, func(ctx context.Context) error {
		if err := r.record(ctx); err != nil {
			return err
		}
		return r.record(ctx)
	})
}

func (r *Runner) putModel(ctx context.Context) (*record.Ref, error) {
	m := &modelState{Model: r.model, Moments: r.optimizer.Moments()}
	return r.Hold.PutFrom(ctx, fmt.Sprintf("model-%d", r.drive.Status().Round), m.size(), m)
}

// recordDrive stores what drive has to keep: objects first, since the state names them.
func (r *Runner) recordDrive(ctx context.Context, out *state, key *keyexchange.SealKey) error {
	saved, err := r.drive.Save(key)
	if err != nil {
		return err
	}
	err = r.keep(ctx, saved.Objects, saved.Needed)
	out.Drive, out.Objects = saved.State, r.objects
	return err
}

// load reads the newest state that exists with all that it names, or begins.
func (r *Runner) load(ctx context.Context) error {
	// An object may not be on every node yet.
	for began := time.Now(); ; {
		err := r.loadState(ctx)
		if !errors.Is(err, record.ErrMissing) {
			return err
		}
		if errors.Is(err, record.ErrDamaged) || time.Since(began) > appears {
			return r.goBack(ctx, err)
		}
	}
}

// goBack loads the newest state that can be loaded, from one of which something is missing.
func (r *Runner) goBack(ctx context.Context, missing error) error {
	for {
		begun, err := r.Hold.Back(ctx)
		if err != nil {
			return err
		}
		if err = r.loadState(ctx); errors.Is(err, record.ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		r.drive.Behind(begun)
		// Each order was a decision, so that no missing state has counted more orders: what operators
		// have seen of those states identifies none that follows.
		r.orders = max(r.orders, r.Hold.Number()) + 1
		r.missing = missing
		r.Log.Error("the newest state is missing: this federation falls back to an older one",
			"error", missing.Error(), "round", r.drive.Status().Round, "begun", begun)
		return nil
	}
}

// loadState reads the state that the hold points to, or begins.
func (r *Runner) loadState(ctx context.Context) error {
	settings, err := r.settings()
	if err != nil {
		return err
	}
	r.model = first(r.Federation)
	b, err := r.Hold.State(ctx)
	switch {
	case err != nil:
		return err
	case b == nil:
		r.drive, err = drive.NewLead(settings, r.now())
		return err
	}
	in, err := parseState(b)
	if err != nil {
		return err
	}
	r.history, r.why, r.modelRef, r.objects = in.History, in.Why, in.Model, in.Objects
	r.outages, r.orders = in.Outages, in.Orders
	copy(r.seen, in.Figures.Seen)
	copy(r.seenMembers, in.Figures.Members)
	r.receipts.load(in.Receipts)
	if err := r.loadModel(ctx); err != nil {
		return err
	}
	if err := r.loadDrive(&in, settings); err != nil {
		return err
	}
	return nil
}

// tidy deletes, in the background, what no state names any more.
func (r *Runner) tidy(ctx context.Context) {
	keep := []*record.Ref{r.modelRef}
	for _, o := range r.objects {
		keep = append(keep, o.Ref)
	}
	go func() {
		if err := r.Hold.Tidy(ctx, keep...); err != nil && ctx.Err() == nil {
			r.Log.Warn("old objects were not deleted", "error", err.Error())
		}
	}()
}

// loadDrive restores the server from a state, with whichever key opens it.
func (r *Runner) loadDrive(in *state, settings drive.Settings) (err error) {
	for _, key := range r.Keys.All() {
		var tried error
		r.drive, tried = drive.LoadLead(settings, &key, r.now(), in.Drive)
		if err == nil || tried == nil {
			err = tried
		}
		if tried == nil || errors.Is(tried, record.ErrUnavailable) ||
			errors.Is(tried, record.ErrMissing) {
			break
		}
	}
	if err != nil && !errors.Is(err, record.ErrUnavailable) {
		return fmt.Errorf("%w: %w", record.ErrRecord, err)
	}
	return err
}

// parseState reads the bytes that record stored.
func parseState(b []byte) (in state, err error) {
	if err := decode(b, &in); err != nil {
		return in, err
	}
	if in.Format != stateFormat {
		return in, fmt.Errorf("%w: it is of format %d, want %d", record.ErrRecord, in.Format,
			stateFormat)
	}
	return in, nil
}

// Named returns the references in a state, for [record.Records.Backup].
func Named(b []byte) ([]*record.Ref, error) {
	in, err := parseState(b)
	if err != nil {
		return nil, err
	}
	refs := []*record.Ref{in.Model}
	for _, o := range in.Objects {
		refs = append(refs, o.Ref)
	}
	return refs, nil
}

// loadModel reads the model that the state names.
func (r *Runner) loadModel(ctx context.Context) error {
	b, err := r.Hold.Get(ctx, r.modelRef)
	if err != nil {
		return err
	}
	m, err := parseModel(b, r.Federation.Spec.Len())
	if err != nil {
		return err
	}
	r.model = m.Model
	if err := r.optimizer.Resume(m.Moments); err != nil {
		return fmt.Errorf("%w: %w", record.ErrRecord, err)
	}
	return nil
}

// RecordedModel returns the last recorded model of a federation, as the file that
// [Runner.Broadcast] returns, whichever node leads it. It fails with the errors of package record.
func RecordedModel(ctx context.Context, f *federation.Federation, records *record.Records,
) (file []byte, err error) {
	// What a state names may be spent before all of it is read: then there is a newer one.
	for range 3 {
		if file, err = recordedModel(ctx, f, records); err == nil {
			return file, nil
		}
	}
	return nil, err
}

func recordedModel(ctx context.Context, f *federation.Federation, records *record.Records,
) ([]byte, error) {
	b, err := records.State(ctx, f.ID)
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return modelFile(f, first(f), 0)
	}
	in, err := parseState(b)
	if err != nil {
		return nil, err
	}
	if b, err = records.Get(ctx, f.ID, in.Model); err != nil {
		return nil, err
	}
	m, err := parseModel(b, f.Spec.Len())
	if err != nil {
		return nil, err
	}
	return modelFile(f, m.Model, in.After)
}

// first returns the model that a federation begins with.
func first(f *federation.Federation) []float64 {
	if f.Initial != nil {
		return f.Initial
	}
	return make([]float64, f.Spec.Len())
}

// modelFile writes a model as it is after a given number of rounds.
func modelFile(f *federation.Federation, model []float64, after int) ([]byte, error) {
	return f.Spec.Append(nil, model, map[string]string{
		"federation": f.ID,
		"after":      strconv.Itoa(after),
	})
}
