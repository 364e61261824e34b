package sidecar

import (
	"bytes"
	"sync"

	declared "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/protocol"
)

var serverCalls = map[string]handler{
	"server.new":     newServer,
	"server.load":    loadServer,
	"server.state":   server(0, serverState),
	"server.receive": server(1, serverReceive),
	"server.keys":    server(0, envelopes((*protocol.Server).Keys)),
	"server.members": server(0, envelopes((*protocol.Server).Members)),
	"server.invite":  server(0, envelopes((*protocol.Server).Invite)),
	"server.gather":  server(0, serverGather),
	"server.begin":   server(0, serverBegin),
	"server.survivors": server(0,
		envelopes((*protocol.Server).Survivors)),
	"server.certificate": server(0, envelopes((*protocol.Server).Certificate)),
	"server.sum":         server(0, serverSum),
	"server.skip":        server(0, serverSkip),
	"server.exclude":     server(0, serverExclude),
	"server.readmit":     server(0, serverReadmit),
	"server.save":        server(1, serverSave),
}

// serverObject is the server of one session.
type serverObject struct {
	mutex   sync.Mutex
	server  *protocol.Server
	settled *declared.Settled
	begun   [32]byte // the broadcast of the round; unknown, and 0, for a server that was loaded
}

// serverJSON is the progress of a server.
type serverJSON struct {
	Server   uint64 `json:"server"` // the object
	Round    uint64 `json:"round"`
	Enrolled []int  `json:"enrolled"`
	Missing  []int  `json:"missing"`
	Included []int  `json:"included"`
	Excluded []int  `json:"excluded"`
	Holders  []int  `json:"holders"`
	// To lists the parties that the blobs are messages to, by roster index.
	To []int `json:"to,omitempty"`
	// StdDev is that of the noise in a mean, Weight the sum of the weights of its vectors.
	StdDev *float64 `json:"std_dev,omitempty"`
	Weight int      `json:"weight,omitempty"`
}

func (o *serverObject) state(id uint64) serverJSON {
	s := o.server
	return serverJSON{
		Server:   id,
		Round:    s.Round(),
		Enrolled: s.Enrolled(),
		Missing:  s.Missing(),
		Included: s.Included(),
		Excluded: s.Excluded(),
		Holders:  s.Holders(),
	}
}

func newServer(s *sidecar, r *request) (any, [][]byte, error) {
	var with sessionParameters
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	return s.addServer(with, protocol.NewServer)
}

// loadServer takes the key and the saved state.
func loadServer(s *sidecar, r *request) (any, [][]byte, error) {
	var with sessionParameters
	if err := r.take(&with, 2); err != nil {
		return nil, nil, err
	}
	key, err := r.sealKey(0)
	if err != nil {
		return nil, nil, err
	}
	return s.addServer(with, func(c *protocol.Config) (*protocol.Server, error) {
		return protocol.LoadServer(c, key, r.blobs[1].bytes)
	})
}

func (s *sidecar) addServer(
	with sessionParameters, makeServer func(c *protocol.Config) (*protocol.Server, error),
) (any, [][]byte, error) {
	settled, err := lookup[*declared.Settled](s, with.Settled, "job")
	if err != nil {
		return nil, nil, err
	}
	if err := sessions(settled); err != nil {
		return nil, nil, err
	}
	o := &serverObject{settled: settled}
	if o.server, err = makeServer(settled.Config(with.Number)); err != nil {
		return nil, nil, err
	}
	id, err := s.add(o)
	if err != nil {
		return nil, nil, err
	}
	return o.state(id), nil, nil
}

// serverCall holds the arguments of a call on a server, apart from its blobs.
type serverCall struct {
	Server  uint64 `json:"server"`
	Party   *int   `json:"party"`   // roster index
	Parties []int  `json:"parties"` // roster indices
	// Broadcast is the digest of what a round begins with.
	Broadcast string `json:"broadcast"`
	Numbers   string `json:"numbers"` // of a mean
}

// step holds the result of a call on a server.
type step struct {
	to     []int
	blobs  [][]byte
	stdDev *float64
	weight int
}

// server finds the server of a call that takes a given number of blobs, and has it work on no other
// call meanwhile.
func server(
	blobs int, work func(o *serverObject, with serverCall, r *request) (step, error),
) handler {
	return func(s *sidecar, r *request) (any, [][]byte, error) {
		var with serverCall
		if err := r.take(&with, blobs); err != nil {
			return nil, nil, err
		}
		o, err := lookup[*serverObject](s, with.Server, "server")
		if err != nil {
			return nil, nil, err
		}
		o.mutex.Lock()
		defer o.mutex.Unlock()
		done, err := work(o, with, r)
		if err != nil {
			return nil, nil, err
		}
		state := o.state(with.Server)
		state.To, state.StdDev, state.Weight = done.to, done.stdDev, done.weight
		return state, done.blobs, nil
	}
}

// party returns the party that a call is about.
func (o *serverObject) party(with serverCall) (int, error) {
	n := o.settled.Roster().Len()
	if with.Party == nil || *with.Party < 0 || *with.Party >= n {
		return 0, fieldError("party", "", "give an index from 0 to %d", n-1)
	}
	return *with.Party, nil
}

func serverState(*serverObject, serverCall, *request) (step, error) { return step{}, nil }

func serverReceive(o *serverObject, with serverCall, r *request) (step, error) {
	from, err := o.party(with)
	if err != nil {
		return step{}, err
	}
	if b := r.blobs[0]; b.shared {
		// In pieces, each of which is read once.
		return step{}, o.server.ReadMessage(from, bytes.NewReader(b.bytes))
	}
	return step{}, o.server.Receive(from, r.blobs[0].bytes)
}

// addressed makes a step from envelopes.
func addressed(list []protocol.Envelope, err error) (step, error) {
	out := step{to: make([]int, 0, len(list))}
	for _, e := range list {
		out.to = append(out.to, e.To)
		out.blobs = append(out.blobs, e.Message)
	}
	return out, err
}

func envelopes(
	next func(*protocol.Server) ([]protocol.Envelope, error),
) func(o *serverObject, with serverCall, r *request) (step, error) {
	return func(o *serverObject, _ serverCall, _ *request) (step, error) {
		return addressed(next(o.server))
	}
}

func serverGather(o *serverObject, with serverCall, _ *request) (step, error) {
	return addressed(o.server.Gather(with.Parties))
}

func serverBegin(o *serverObject, with serverCall, _ *request) (step, error) {
	broadcast, err := parseDigest(with.Broadcast)
	if err != nil {
		return step{}, err
	}
	done, err := addressed(o.server.BeginDigest(broadcast))
	if err == nil {
		o.begun = broadcast
	}
	return done, err
}

// serverSum ends the round.
func serverSum(o *serverObject, with serverCall, _ *request) (step, error) {
	broadcast, err := parseDigest(with.Broadcast)
	if err == nil {
		err = checkNumbers(with.Numbers)
	}
	if err == nil && o.begun != [32]byte{} && o.begun != broadcast {
		err = protocol.ErrBroadcast
	}
	if err != nil {
		return step{}, err
	}
	sum, err := o.server.SumVector()
	if err != nil {
		return step{}, err
	}
	freed(sum.Layout().PackedSize()) // what submissions were read into
	parties := len(o.server.Included())
	mean, weight, err := meanOf(o.settled, broadcast, with.Numbers, sum, parties)
	if err != nil {
		return step{}, err
	}
	stdDev := o.settled.StdDev(parties)
	return step{blobs: [][]byte{mean}, stdDev: &stdDev, weight: weight}, nil
}

func serverSkip(o *serverObject, _ serverCall, _ *request) (step, error) {
	return step{}, o.server.Skip()
}

func serverExclude(o *serverObject, with serverCall, _ *request) (step, error) {
	party, err := o.party(with)
	if err == nil {
		o.server.Exclude(party)
	}
	return step{}, err
}

func serverReadmit(o *serverObject, with serverCall, _ *request) (step, error) {
	party, err := o.party(with)
	if err == nil {
		o.server.Readmit(party)
	}
	return step{}, err
}

func serverSave(o *serverObject, _ serverCall, r *request) (step, error) {
	key, err := r.sealKey(0)
	if err != nil {
		return step{}, err
	}
	state, err := o.server.Save(key)
	return step{blobs: [][]byte{state}}, err
}
