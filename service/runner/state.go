package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
)

// stateFormat is the version of state: 1, which is still read, had every sum in Series.
const stateFormat = 2

// state is what a decision records. Sessions are sealed on their own by protocol, and
// the whole by package record.
type state struct {
	Format    int
	Round     int
	Fresh     [32]byte
	Lost      int
	Paused    bool
	Why       string
	Resumed   int
	Ended     string
	RoundTime time.Time
	History   []Past
	Ledger    []byte
	Model     *record.Ref
	Sum       *record.Ref // of the open round, where it is not in Series
	Series    []byte
	Least     uint64
	Sessions  [2]sessionState // present, forming; Number 0: none
}

type sessionState struct {
	Number uint64
	Stage  Stage
}

// modelState is a model with what the server's rule remembers: as it is stored, each number
// in eight bytes, little-endian; in version 1 as a gob.
type modelState struct {
	Model   []float64
	Moments [][]float64
}

// vectors lists what is stored, one after another.
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

// parseModel reads a model of so many numbers from an object: records of format 1 had gobs,
// and are led on with the model that they have.
func parseModel(b []byte, ref *record.Ref, length int) (m modelState, err error) {
	if ref.Sealing == 0 {
		if err := decode(b, &m); err != nil {
			return m, err
		}
		if len(m.Model) != length {
			return m, fmt.Errorf("%w: a model of %d numbers", record.ErrRecord, len(m.Model))
		}
		return m, nil
	}
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

// record stores the state as a decision.
func (r *Runner) record(ctx context.Context) error {
	if r.modelRef == nil {
		ref, err := r.putModel(ctx)
		if err != nil {
			return err
		}
		r.modelRef = ref
	}
	out := state{
		Format:    stateFormat,
		Round:     r.round,
		Fresh:     r.fresh,
		Lost:      r.lost,
		Paused:    r.paused,
		Why:       r.why,
		Resumed:   r.resumed,
		Ended:     r.ended,
		RoundTime: r.roundTime,
		History:   r.history,
		Model:     r.modelRef,
		Least:     r.series.Least(),
	}
	var err error
	if r.ledger != nil {
		if out.Ledger, err = r.ledger.MarshalJSON(); err != nil {
			return err
		}
	}
	if out.Series, err = r.saveSeries(ctx); err != nil {
		return err
	}
	out.Sum = r.sumRef
	for k, s := range []*session{r.present, r.forming} {
		if s != nil {
			out.Sessions[k] = sessionState{s.number, s.stage}
		}
	}
	b, err := encode(out)
	if err != nil {
		return err
	}
	if err := r.Hold.Decide(ctx, b, r.spent...); err != nil {
		return err
	}
	r.spent, r.dirty, r.recorded = nil, false, time.Now()
	return nil
}

func (r *Runner) putModel(ctx context.Context) (*record.Ref, error) {
	m := &modelState{Model: r.model, Moments: r.optimizer.Moments()}
	return r.Hold.PutFrom(ctx, fmt.Sprintf("model-%d", r.round), m.size(), m)
}

// longSum is how many bytes a sum has at least that is stored on its own, once, when all
// submissions are in it. A shorter one is a part of every state: whoever takes over in
// mid-step then need not ask for submissions again.
const longSum = 64 << 10

// saveSeries returns the state of the sessions, and stores a long sum that has become final.
func (r *Runner) saveSeries(ctx context.Context) (state []byte, err error) {
	size := r.Federation.Config(1).Layout.PackedSize()
	if size < longSum {
		return r.series.Save(r.Key)
	}
	state, sum, err := r.series.SaveParts(r.Key)
	switch {
	case err != nil:
		return nil, err
	case sum == nil && r.sumRef != nil:
		r.spent, r.sumRef = append(r.spent, r.sumRef), nil
	case sum != nil && r.sumRef == nil:
		r.sumRef, err = r.Hold.PutFrom(ctx, fmt.Sprintf("sum-%d", r.round), size, sum)
	}
	return state, err
}

// load reads the newest state, or begins.
func (r *Runner) load(ctx context.Context) error {
	var err error
	if r.ledger, err = r.Federation.Ledger(); err != nil {
		return err
	}
	r.model = first(r.Federation)
	b, err := r.Hold.State(ctx)
	if err != nil || b == nil {
		return err
	}
	r.loaded = time.Now()
	in, err := parseState(b)
	if err != nil {
		return err
	}
	r.round, r.fresh, r.lost, r.paused, r.ended = in.Round, in.Fresh, in.Lost, in.Paused, in.Ended
	r.roundTime, r.history, r.modelRef, r.sumRef = in.RoundTime, in.History, in.Model, in.Sum
	r.why, r.resumed = in.Why, in.Resumed
	if now := time.Now(); r.roundTime.After(now) {
		r.roundTime = now // by the clock of another node
	}
	if r.ledger != nil {
		if err := r.ledger.UnmarshalJSON(in.Ledger); err != nil {
			return fmt.Errorf("%w: %w", record.ErrRecord, err)
		}
	}
	if err := r.loadModel(ctx); err != nil {
		return err
	}
	var sum io.Reader
	if in.Sum != nil {
		if b, err = r.Hold.Get(ctx, in.Sum); err != nil {
			return err
		}
		sum = bytes.NewReader(b)
	}
	label := r.Federation.Config(1).Label
	if r.series, err = protocol.ReadServerSeries(label, r.Key, in.Series, sum); err != nil {
		return fmt.Errorf("%w: %w", record.ErrRecord, err)
	}
	for k, to := range []**session{&r.present, &r.forming} {
		s := in.Sessions[k]
		if s.Number == 0 {
			continue
		}
		*to = &session{number: s.Number, stage: s.Stage, since: time.Now()}
	}
	if err := r.Hold.Tidy(ctx, r.modelRef, r.sumRef); err != nil {
		r.Log.Warn("old objects were not deleted", "error", err.Error())
	}
	return nil
}

// parseState reads what record stored.
func parseState(b []byte) (in state, err error) {
	if err := decode(b, &in); err != nil {
		return in, err
	}
	if in.Format < 1 || in.Format > stateFormat {
		return in, fmt.Errorf("%w: it is of format %d, this program reads 1 to %d", record.ErrRecord,
			in.Format, stateFormat)
	}
	return in, nil
}

// loadModel reads the model that the state names.
func (r *Runner) loadModel(ctx context.Context) error {
	b, err := r.Hold.Get(ctx, r.modelRef)
	if err != nil {
		return err
	}
	m, err := parseModel(b, r.modelRef, r.Federation.Spec.Len())
	if err != nil {
		return err
	}
	r.model = m.Model
	if err := r.optimizer.Resume(m.Moments); err != nil {
		return fmt.Errorf("%w: %w", record.ErrRecord, err)
	}
	return nil
}

// RecordedModel returns the last model that is recorded of a federation, as the file that
// [Runner.Broadcast] returns, whoever leads it. It fails with the errors of package record.
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
	m, err := parseModel(b, in.Model, f.Spec.Len())
	if err != nil {
		return nil, err
	}
	after := in.Round
	if in.Sessions[0].Stage >= Submitting {
		after--
	}
	return modelFile(f, m.Model, after)
}

// first is the model that a federation begins with.
func first(f *federation.Federation) []float64 {
	if f.Initial != nil {
		return f.Initial
	}
	return make([]float64, f.Spec.Len())
}

// modelFile writes a model as it is after so many rounds.
func modelFile(f *federation.Federation, model []float64, after int) ([]byte, error) {
	return f.Spec.Append(nil, model, map[string]string{
		"federation": f.ID,
		"after":      strconv.Itoa(after),
	})
}
