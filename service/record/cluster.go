package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// This file finds the nodes of an embedded cluster, and removes one for good.

// keyNodes is the key under which the removed nodes are listed: it is no federation's
// identifier.
const keyNodes = "nodes"

// Voter is a node of an embedded cluster.
type Voter struct {
	Name string
	Here bool // the others hear from it
	id   string
}

// Copies lists the nodes that keep a stream of the record.
type Copies struct {
	On      []string // names of nodes
	Current int      // how many of them are present and have all of it
	// CurrentOn lists these nodes by name.
	CurrentOn map[string]bool
}

// Cluster holds the nodes that decide what is recorded.
type Cluster struct {
	Voters  []Voter
	Streams []Copies
}

// Cluster returns the nodes of the cluster. It fails with [ErrUnavailable] if no node leads the
// cluster, as while at most half of its voters are present.
func (e *Embedded) Cluster(ctx context.Context) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var answer struct {
		Data server.JSInfo `json:"data"`
	}
	err := e.ask(ctx, "$SYS.REQ.SERVER.PING.JSZ", map[string]bool{"leader_only": true}, &answer)
	if err != nil {
		return nil, err
	}
	meta := answer.Data.Meta
	if meta == nil {
		return nil, fmt.Errorf("%w: it is not a cluster", ErrUnavailable)
	}
	out := &Cluster{Voters: []Voter{{Name: meta.Leader, Here: true, id: meta.Peer}}}
	for _, p := range meta.Replicas {
		m := Voter{Name: p.Name, Here: !p.Offline, id: p.Peer}
		if strings.Contains(m.Name, " ") { // one that was not heard since the others were restarted
			m.Name = p.Peer
		}
		out.Voters = append(out.Voters, m)
	}
	names := 0
	list := e.JS.StreamNames(ctx)
	for range list.Name() {
		names++
	}
	if list.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, list.Err())
	}
	streams := e.JS.ListStreams(ctx)
	for info := range streams.Info() {
		out.Streams = append(out.Streams, copiesOf(info))
	}
	if err := streams.Err(); err != nil || len(out.Streams) < names {
		return nil, fmt.Errorf("%w: %d of %d streams have a leader (%v)", ErrUnavailable,
			len(out.Streams), names, err)
	}
	return out, nil
}

// Away records that a voter is absent, with its copies.
func (c *Cluster) Away(name string) {
	for i := range c.Voters {
		if c.Voters[i].Name == name {
			c.Voters[i].Here = false
		}
	}
	for i := range c.Streams {
		if s := &c.Streams[i]; s.CurrentOn[name] {
			delete(s.CurrentOn, name)
			s.Current--
		}
	}
}

func copiesOf(info *jetstream.StreamInfo) Copies {
	c := Copies{CurrentOn: make(map[string]bool)}
	if info.Cluster == nil {
		return c
	}
	add := func(name string, current bool) {
		c.On = append(c.On, name)
		if current {
			c.Current++
			c.CurrentOn[name] = true
		}
	}
	add(info.Cluster.Leader, true)
	for _, p := range info.Cluster.Replicas {
		add(p.Name, p.Current && !p.Offline)
	}
	return c
}

// Remove takes a voter out of the cluster for good. The copies that it had are made again on
// another node, if there is one.
func (e *Embedded) Remove(ctx context.Context, m Voter) error {
	var answer server.JSApiMetaServerRemoveResponse
	request := server.JSApiMetaServerRemoveRequest{Server: m.Name, Peer: m.id}
	for began := time.Now(); ; {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		err := e.ask(attempt, server.JSApiRemoveServer, request, &answer)
		cancel()
		switch {
		case err == nil && (answer.Success || answer.Error != nil &&
			answer.Error.ErrCode == uint16(server.JSClusterServerNotMemberErr)):
			return nil // now, or by an attempt whose answer was lost
		case err == nil && answer.Error != nil:
			err = answer.Error
		}
		if ctx.Err() != nil || time.Since(began) > patience {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		time.Sleep(pause)
		answer = server.JSApiMetaServerRemoveResponse{}
	}
}

// ask sends a question that only the system's account gets an answer to.
func (e *Embedded) ask(ctx context.Context, subject string, question, answer any) error {
	if e.system == nil {
		return fmt.Errorf("%w: it is not a cluster", ErrUnavailable)
	}
	b, err := json.Marshal(question)
	if err != nil {
		return err
	}
	for {
		// While another leader is being found no node answers, and such a request stays unanswered.
		attempt, cancel := context.WithTimeout(ctx, attemptTime/3)
		m, err := e.system.RequestMsgWithContext(attempt, &nats.Msg{Subject: subject, Data: b})
		cancel()
		if err == nil {
			err = json.Unmarshal(m.Data, answer)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: nobody leads the cluster: %w", ErrUnavailable, err)
		}
		time.Sleep(pause)
	}
}

// Left holds the nodes that were removed for good, by name.
type Left map[string]time.Time

// Left returns the removed nodes, with the revision of the entry, which a removal has to name.
func (r *Records) Left(ctx context.Context) (left Left, revision uint64, err error) {
	left = make(Left)
	err = r.retry(ctx, func(ctx context.Context) error {
		entry, err := r.definitions.Get(ctx, keyNodes)
		if err != nil {
			return err
		}
		revision = entry.Revision()
		return json.Unmarshal(entry.Value(), &left)
	})
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return left, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return left, revision, nil
}

// Leaves records that a node is removed for good. It fails with [ErrLost] if another removal was
// recorded since that revision.
func (r *Records) Leaves(ctx context.Context, name string, revision uint64) error {
	left, now, err := r.Left(ctx)
	if err != nil {
		return err
	}
	if now != revision {
		return ErrLost
	}
	left[name] = time.Now().UTC()
	b, err := json.Marshal(left)
	if err != nil {
		return err
	}
	err = r.retry(ctx, func(ctx context.Context) error {
		if revision == 0 {
			_, err := r.definitions.Create(ctx, keyNodes, b)
			return err
		}
		_, err := r.definitions.Update(ctx, keyNodes, b, revision)
		return err
	})
	if err == nil {
		return nil
	}
	if wrongSequence(err) || errors.Is(err, jetstream.ErrKeyExists) {
		return ErrLost
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
