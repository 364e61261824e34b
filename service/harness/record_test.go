package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/record"
)

// This file has what the harness knows of package record.

// sealed is the key that all records of the harness are sealed with.
var sealed = keyexchange.SealKey{7, 5, 3}

// disk is a record on the files of a folder: of a node alone, or of two nodes on an operator's
// NATS.
type disk struct {
	embedded *record.Embedded // of a node alone
	nats     *server.Server   // an operator's
	conn     *nats.Conn
	records  map[string]*record.Records // by node; of a node alone, the same for both names
}

// nodes are the names of those that claim.
var nodes = []string{"a", "b"}

// folders are those of two nodes on an operator's NATS, and of that.
var folders = map[string]string{"a": "a", "b": "b", "nats": "nats"}

// start opens the record of a folder.
func start(ctx context.Context, folder string, external bool) (d *disk, err error) {
	d = &disk{records: make(map[string]*record.Records)}
	defer func() {
		if err != nil {
			_ = d.close()
		}
	}()
	if !external {
		d.embedded, err = record.StartEmbedded(ctx, record.EmbeddedOptions{Folder: folder, Name: "n"})
		if err != nil {
			return d, err
		}
		r, err := d.open(ctx, d.embedded.JS)
		if err != nil {
			return d, err
		}
		r.Alone()
		d.records["a"], d.records["b"] = r, r
		return d, r.KeepIn(folder)
	}
	if err := d.startNATS(filepath.Join(folder, folders["nats"])); err != nil {
		return d, err
	}
	js, err := record.JetStream(d.conn)
	if err != nil {
		return d, err
	}
	for _, node := range nodes {
		at := filepath.Join(folder, folders[node])
		if d.records[node], err = d.open(ctx, js); err == nil {
			err = d.records[node].KeepIn(at)
		}
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d *disk) open(ctx context.Context, js jetstream.JetStream) (*record.Records, error) {
	return record.Open(ctx, js, 1, record.NewKeys(sealed))
}

// startNATS starts a server as an operator does, who mends nothing of its files.
func (d *disk) startNATS(folder string) (err error) {
	d.nats, err = server.NewServer(&server.Options{JetStream: true, StoreDir: folder,
		SyncAlways: true, DontListen: true, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	go d.nats.Start() // there is damage on which it counts for ever
	if !d.nats.ReadyForConnections(20 * time.Second) {
		d.nats = nil
		return fmt.Errorf("%w: NATS does not start", record.ErrUnavailable)
	}
	d.conn, err = nats.Connect("", nats.InProcessServer(d.nats))
	return err
}

func (d *disk) close() error {
	var errs []error
	for _, node := range nodes {
		if r := d.records[node]; r != nil { // a node alone has nothing left to close at the second
			errs = append(errs, r.Close())
		}
	}
	if d.embedded != nil {
		d.embedded.Close()
	}
	if d.conn != nil {
		d.conn.Close()
	}
	if d.nats != nil {
		d.nats.Shutdown()
		d.nats.WaitForShutdown()
	}
	return errors.Join(errs...)
}

// create declares a federation.
func (d *disk) create(ctx context.Context, id string) error {
	return d.records["a"].Create(ctx, record.Definition{ID: id, Text: []byte("text"),
		Roster: []byte("roster"), Created: time.Now()}, []byte("the first model"), nil)
}

// looks has nodes know of a federation, as they do when they start.
func (d *disk) looks(ctx context.Context, id string) error {
	for _, node := range nodes {
		r := d.records[node]
		if err := r.Look(ctx, id); err != nil && !errors.Is(err, record.ErrRecord) {
			return err
		}
	}
	return nil
}

// stored has what a decision stores.
type stored struct {
	Value   string
	Charged uint64
	Orders  int
	Model   *record.Ref
}

// holding is a claim.
type holding struct {
	*record.Hold
	stored
}

// errCut ends a decision as a kill does.
var errCut = errors.New("it was killed")

// claims has a node claim a federation, and read it as a leader does.
func (d *disk) claims(ctx context.Context, id, node string) (h *holding, named bool, err error) {
	hold, err := d.records[node].Claim(ctx, id, node)
	if err != nil {
		return nil, false, err
	}
	h = &holding{Hold: hold}
	err = h.load(ctx)
	for errors.Is(err, record.ErrMissing) {
		named = true
		begun, failed := hold.Back(ctx)
		if failed != nil {
			return nil, true, failed
		}
		if err = h.load(ctx); err == nil {
			h.Charged = max(h.Charged, begun)
		}
	}
	if err == nil && !named && h.Charged != hold.Round {
		err = fmt.Errorf("the state has %d rounds, and what names it %d", h.Charged, hold.Round)
	}
	return h, named, err
}

// load reads the state, and the model that it names.
func (h *holding) load(ctx context.Context) error {
	h.stored = stored{}
	b, err := h.State(ctx)
	if err != nil || b == nil {
		return err
	}
	if err := json.Unmarshal(b, &h.stored); err != nil {
		return err
	}
	if b, err = h.Get(ctx, h.Model); err != nil {
		return err
	}
	return ofModel(b, h.Value)
}

func modelOf(value string) []byte { return []byte("model of " + value) }

func ofModel(b []byte, value string) error {
	if string(b) != string(modelOf(value)) {
		return fmt.Errorf("%s has %q", value, b)
	}
	return nil
}

// decides records a decision. fault is called in each step of it.
func (h *holding) decides(ctx context.Context, to stored, fault func(step string)) (err error) {
	defer func() {
		if said := recover(); said == errCut {
			err = errCut
		} else if said != nil {
			panic(said)
		}
	}()
	h.Fault = fault
	before := h.Model
	if to.Model, err = h.Put(ctx, "model-"+to.Value, modelOf(to.Value)); err != nil {
		return err
	}
	b, err := json.Marshal(to)
	if err != nil {
		return err
	}
	h.Round = to.Charged
	h.Lines = []record.Line{{Event: "begun", Round: int(to.Charged), Note: to.Value}}
	if err := h.Decide(ctx, b, before); err != nil {
		return err
	}
	h.stored = to
	return nil
}

// reads reads the state of a federation at a node, or its model too.
func (d *disk) reads(ctx context.Context, node, id string, model bool) (s stored, err error) {
	b, err := d.records[node].State(ctx, id)
	if err != nil || b == nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil || !model {
		return s, err
	}
	if b, err = d.records[node].Get(ctx, id, s.Model); err != nil {
		return s, err
	}
	return s, ofModel(b, s.Value)
}

// given has a node take lines that a party has kept of a federation, as its door does.
func (d *disk) given(ctx context.Context, node, id string, lines []byte) error {
	_, err := d.records[node].Heal(ctx, id, lines)
	return err
}

// lines returns what a party keeps of the decisions of a federation.
func (d *disk) lines(ctx context.Context, node, id string) ([]byte, error) {
	c, err := d.records[node].Chain(ctx, id)
	if err != nil {
		return nil, err
	}
	return bytes.Join(c.Lines(0), []byte("\n")), nil
}

// logged reads which decisions the audit log has a line of, and how many it says are lost.
func (d *disk) logged(ctx context.Context, id string) (values map[string]bool, lost int,
	err error,
) {
	values = make(map[string]bool)
	log, err := d.records["a"].AuditLog(ctx, id, 0, func(l record.Line) bool {
		if values[l.Note] = true; l.Event == record.EventUnreadable ||
			l.Event == "damaged" {
			lost++
		}
		return true
	})
	return values, lost + log.Missing, err
}

// resultOf says what an error of the record means to whoever called.
func resultOf(err error) (r result, unnamed error) {
	switch {
	case err == nil:
		return ok, nil
	case errors.Is(err, errCut):
		return unknown, nil
	case errors.Is(err, record.ErrLost):
		return lost, nil
	case errors.Is(err, record.ErrRecord):
		return refused, nil
	}
	return unknown, err
}
