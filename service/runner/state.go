package runner

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/record"
)

// stateFormat is the version of state.
const stateFormat = 1

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
	Series    []byte
	Least     uint64
	Sessions  [2]sessionState // present, forming; Number 0: none
}

type sessionState struct {
	Number uint64
	Stage  Stage
}

// modelState is a model as it is stored, with what the server's rule remembers.
type modelState struct {
	Model   []float64
	Moments [][]float64
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
	if out.Series, err = r.series.Save(r.Key); err != nil {
		return err
	}
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
	b, err := encode(modelState{Model: r.model, Moments: r.optimizer.Moments()})
	if err != nil {
		return nil, err
	}
	return r.Hold.Put(ctx, fmt.Sprintf("model-%d", r.round), b)
}

// load reads the newest state, or begins.
func (r *Runner) load(ctx context.Context) error {
	var err error
	if r.ledger, err = r.Federation.Ledger(); err != nil {
		return err
	}
	r.model = r.Federation.Initial
	if r.model == nil {
		r.model = make([]float64, r.Federation.Spec.Len())
	}
	b, err := r.Hold.State(ctx)
	if err != nil || b == nil {
		return err
	}
	r.loaded = time.Now()
	var in state
	if err := decode(b, &in); err != nil {
		return err
	}
	if in.Format != stateFormat {
		return fmt.Errorf("%w: it is of format %d, this program reads %d", record.ErrRecord, in.Format,
			stateFormat)
	}
	r.round, r.fresh, r.lost, r.paused, r.ended = in.Round, in.Fresh, in.Lost, in.Paused, in.Ended
	r.roundTime, r.history, r.modelRef = in.RoundTime, in.History, in.Model
	r.why, r.resumed = in.Why, in.Resumed
	if now := time.Now(); r.roundTime.After(now) {
		r.roundTime = now // by the clock of another node
	}
	if r.ledger != nil {
		if err := r.ledger.UnmarshalJSON(in.Ledger); err != nil {
			return fmt.Errorf("%w: %w", record.ErrRecord, err)
		}
	}
	if b, err = r.Hold.Get(ctx, in.Model); err != nil {
		return err
	}
	var m modelState
	if err := decode(b, &m); err != nil {
		return err
	}
	if len(m.Model) != r.Federation.Spec.Len() {
		return fmt.Errorf("%w: a model of %d numbers", record.ErrRecord, len(m.Model))
	}
	r.model = m.Model
	if err := r.optimizer.Resume(m.Moments); err != nil {
		return fmt.Errorf("%w: %w", record.ErrRecord, err)
	}
	label := r.Federation.Config(1).Label
	if r.series, err = protocol.LoadServerSeries(label, r.Key, in.Series); err != nil {
		return fmt.Errorf("%w: %w", record.ErrRecord, err)
	}
	for k, to := range []**session{&r.present, &r.forming} {
		s := in.Sessions[k]
		if s.Number == 0 {
			continue
		}
		*to = &session{number: s.Number, stage: s.Stage, since: time.Now()}
	}
	if err := r.Hold.Tidy(ctx, r.modelRef); err != nil {
		r.Log.Warn("old objects were not deleted", "error", err.Error())
	}
	return nil
}
