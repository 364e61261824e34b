package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// stolen holds what a thief finds in the state of one party.
type stolen struct {
	party    int
	private  *[32]byte // the X25519 key of the session, if it is still there
	chains   map[int][40]byte
	round    uint64 // that is open or was last
	channels []*keyexchange.Channels
	recovery map[int][32]byte // shares of recovery keys of the open round, by owner
}

// savedClient is the part of a saved client that a thief reads: saving is
// package protocol's own affair, and this the names that it has there.
type savedClient struct {
	Key    [32]byte
	Chains []struct {
		Peer  int
		Chain [40]byte
	}
	Last uint64
	Open *struct {
		Near []struct {
			Peer     int
			Channels [128]byte
			Recovery [32]byte
			Held     bool
		}
	}
}

// saver is a [protocol.Client] or a [protocol.Server].
type saver interface {
	Save(key *keyexchange.SealKey) ([]byte, error)
}

// opened returns what a client or server saves, without the seal: the thief has the key
// too.
func opened(from saver, config [32]byte, party uint32) ([]byte, error) {
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		return nil, err
	}
	sealed, err := from.Save(key)
	if err != nil {
		return nil, err
	}
	label := append([]byte(labels.State), config[:]...)
	data := sha256.Sum256(binary.BigEndian.AppendUint32(label, party))
	return keyexchange.Open(key, sealed, data[:])
}

// snapshot describes all that a message could change in a client or server.
func snapshot(receiver any, config [32]byte) (string, error) {
	switch x := receiver.(type) {
	case *protocol.Client:
		state, err := opened(x, config, uint32(x.Party()))
		return string(state), err
	case *protocol.Server:
		state, err := opened(x, config, wire.ServerIndex)
		return string(state), err
	case interface{ Snapshot() string }:
		return x.Snapshot(), nil
	}
	return "", fmt.Errorf("%T has no state that can be looked at", receiver)
}

// steal takes the state of a party.
func steal(p textbook.Party, config [32]byte) (*stolen, error) {
	switch x := p.(type) {
	case *textbook.Client:
		return stealTextbook(x)
	case *protocol.Client:
		return stealSaved(x, config)
	}
	return nil, fmt.Errorf("%T has no state that can be stolen", p)
}

// stealTextbook reads what lies open.
func stealTextbook(client *textbook.Client) (*stolen, error) {
	s := &stolen{
		party:    client.Self,
		round:    client.Last,
		chains:   make(map[int][40]byte),
		recovery: make(map[int][32]byte),
	}
	if key, err := client.Private.AppendBinary(nil); err == nil {
		s.private = (*[32]byte)(key)
	}
	for peer, chain := range client.Chains {
		key, err := chain.AppendBinary(nil)
		if err != nil {
			return nil, err
		}
		s.chains[peer] = [40]byte(key)
	}
	if client.Open != nil {
		s.channels = client.Open.Channels
		for i, share := range client.Open.Recovery {
			if share != nil {
				s.recovery[client.Open.Near[i]] = *share
			}
		}
	}
	return s, nil
}

// stealSaved reads what a client saves.
func stealSaved(client *protocol.Client, config [32]byte) (*stolen, error) {
	state, err := opened(client, config, uint32(client.Party()))
	if err != nil {
		return nil, err
	}
	var saved savedClient
	if err := gob.NewDecoder(bytes.NewReader(state)).Decode(&saved); err != nil {
		return nil, err
	}
	if len(saved.Chains) == 0 {
		return nil, errors.New("saved states are not what this thief reads")
	}
	s := &stolen{
		party:    client.Party(),
		round:    saved.Last,
		chains:   make(map[int][40]byte),
		recovery: make(map[int][32]byte),
	}
	if saved.Key != ([32]byte{}) {
		s.private = &saved.Key
	}
	for _, chain := range saved.Chains {
		s.chains[chain.Peer] = chain.Chain
	}
	if saved.Open == nil {
		return s, nil
	}
	for _, near := range saved.Open.Near {
		channels, err := keyexchange.ParseChannels(near.Channels[:])
		if err != nil {
			return nil, err
		}
		s.channels = append(s.channels, channels)
		if near.Held {
			s.recovery[near.Peer] = near.Recovery
		}
	}
	return s, nil
}
