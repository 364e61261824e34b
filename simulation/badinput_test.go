package simulation

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/protocol"
)

// world is a session of three parties in the middle of its second round: all
// have submitted but party 2, which is about to.
type world struct {
	t          *testing.T
	average    aggregation.FedAvg
	config     *protocol.Config
	identities []crypto.Signer
	server     *protocol.Server
	clients    []*protocol.Client
	begins     [][]byte // the message that began each round
	submitted  []byte   // what party 1 sent in this round
	announced  []byte   // what party 1 sent in set-up
}

var weights = []float64{0.5, -1.25, 3}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, average: aggregation.FedAvg{Parties: 3, Dimension: 3, Range: 4, FractionBits: 8,
		MaxSamples: 10}}
	layout, err := w.average.Layout()
	w.must(err)
	var members []keyexchange.Entry
	for _, name := range []string{"ana", "ben", "eva"} {
		seed := sha256.Sum256([]byte(name))
		key := ed25519.NewKeyFromSeed(seed[:])
		w.identities = append(w.identities, key)
		members = append(members, keyexchange.Entry{Name: name, Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	w.must(err)
	w.config = &protocol.Config{Label: "bad input", Roster: roster, Layout: layout}
	w.server, err = protocol.NewServer(w.config)
	w.must(err)
	for _, identity := range w.identities {
		client, err := protocol.NewClient(w.config, identity, nil)
		w.must(err)
		w.clients = append(w.clients, client)
		w.must(w.server.Receive(client.Party(), client.Announce()))
	}
	w.announced = w.clients[1].Announce()
	for _, next := range []func() ([]protocol.Envelope, error){w.server.Keys, w.server.Members} {
		envelopes, err := next()
		w.must(err)
		w.deliver(envelopes)
	}
	for round := range 2 {
		begin, err := w.server.Begin(nil)
		w.must(err)
		w.begins = append(w.begins, begin[0].Message)
		w.deliver(begin)
		for i, client := range w.clients {
			if round == 1 && i == 2 {
				break
			}
			w.submitted, err = client.Submit(nil, w.encode(weights)...)
			w.must(err)
			w.must(w.server.Receive(i, w.submitted))
		}
		if round == 0 {
			_, err := w.server.Sum()
			w.must(err)
		}
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deliver(envelopes []protocol.Envelope) {
	for _, e := range envelopes {
		answer, err := w.clients[e.To].Receive(e.Message)
		w.must(err)
		if answer != nil {
			w.must(w.server.Receive(e.To, answer))
		}
	}
}

func (w *world) encode(weights []float64) [][]uint64 {
	values, err := w.average.Encode(weights, 10)
	w.must(err)
	return values
}

// finish ends the round: had the bad input changed any state, the sum would not
// come out, or not be this one.
func (w *world) finish() {
	w.t.Helper()
	message, err := w.clients[2].Submit(nil, w.encode(weights)...)
	w.must(err)
	w.must(w.server.Receive(2, message))
	sum, err := w.server.Sum()
	w.must(err)
	mean, samples, err := w.average.Decode(sum)
	w.must(err)
	if !slices.Equal(mean, weights) || samples != 30 {
		w.t.Errorf("the round ends with %v of %d samples, want %v of 30", mean, samples, weights)
	}
}

// All the kinds of bad input that a user can give or meet, from a weight to a
// file: each has its own documented error, and the round that was under way ends
// as if nothing had happened. (Package protocol's own table has every refusal of
// every message.)
func TestBadInput(t *testing.T) {
	encode := func(weights []float64, samples int) func(*world) error {
		return func(w *world) error { _, err := w.average.Encode(weights, samples); return err }
	}
	toServer := func(message func(w *world) []byte) func(*world) error {
		return func(w *world) error { return w.server.Receive(1, message(w)) }
	}
	toClient := func(message func(w *world) []byte) func(*world) error {
		return func(w *world) error { _, err := w.clients[2].Receive(message(w)); return err }
	}
	changed := func(b []byte, at int, to byte) []byte {
		b = bytes.Clone(b)
		b[at] = to
		return b
	}
	member := func(w *world, i int, name string) keyexchange.Entry {
		return keyexchange.Entry{Name: name, Key: w.config.Roster.Key(i)}
	}
	roster := func(members func(w *world) []keyexchange.Entry) func(*world) error {
		return func(w *world) error { _, err := keyexchange.NewRoster(members(w)); return err }
	}
	adult := func(files map[string]string) func(*world) error {
		return func(w *world) error {
			dir := w.t.TempDir()
			for name, text := range files {
				w.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			_, err := learning.ReadAdult(dir)
			return err
		}
	}
	const row = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, " +
		"White, Male, 2174, 0, 40, United-States, <=50K"
	const testHead = "|1x3 Cross validator\n"

	for _, c := range []struct {
		name string
		want error
		do   func(*world) error
	}{
		{"weight is NaN", aggregation.ErrNotFinite, encode([]float64{0, math.NaN(), 0}, 1)},
		{"weight is infinite", aggregation.ErrNotFinite, encode([]float64{0, 0, math.Inf(-1)}, 1)},
		{"weight out of range", aggregation.ErrSaturated, encode([]float64{4.5, 0, 0}, 1)},
		{"too few weights", aggregation.ErrLength, encode([]float64{1, 2}, 1)},
		{"too many weights", aggregation.ErrLength, encode([]float64{1, 2, 3, 4}, 1)},
		{"no samples", aggregation.ErrSamples, encode(weights, 0)},
		{"too many samples", aggregation.ErrSamples, encode(weights, 11)},
		{"input with a segment too few", protocol.ErrLength, func(w *world) error {
			_, err := w.clients[2].Submit(nil, w.encode(weights)[0])
			return err
		}},
		{"input outside the ring", protocol.ErrRange, func(w *world) error {
			values := w.encode(weights)
			values[0][0] = 1 << 63
			_, err := w.clients[2].Submit(nil, values...)
			return err
		}},
		{"input made from another broadcast", protocol.ErrBroadcast, func(w *world) error {
			_, err := w.clients[2].Submit([]byte("other model"), w.encode(weights)...)
			return err
		}},
		{"unknown identity", protocol.ErrIdentity, func(w *world) error {
			_, stranger, err := ed25519.GenerateKey(nil)
			w.must(err)
			_, err = protocol.NewClient(w.config, stranger, nil)
			return err
		}},
		{"message of an unknown party", protocol.ErrSender,
			toServer(func(w *world) []byte { return changed(w.submitted, 45, 3) })},
		{"duplicate identity", keyexchange.ErrDuplicateIdentity,
			roster(func(w *world) []keyexchange.Entry {
				return []keyexchange.Entry{member(w, 0, "ana"), member(w, 0, "ben")}
			})},
		{"roster of one", keyexchange.ErrRosterSize, roster(func(w *world) []keyexchange.Entry {
			return []keyexchange.Entry{member(w, 0, "ana")}
		})},
		{"bad signature", protocol.ErrSignature, func(w *world) error {
			server, err := protocol.NewServer(w.config)
			w.must(err)
			return server.Receive(1,
				changed(w.announced, len(w.announced)-1, w.announced[len(w.announced)-1]^1))
		}},
		{"truncated message", protocol.ErrTruncated, toServer(func(w *world) []byte { return w.submitted[:20] })},
		{"oversized message", protocol.ErrOversized,
			toServer(func(w *world) []byte { return make([]byte, w.config.MaxMessage()+1) })},
		{"message with a trailing byte", protocol.ErrTrailing, toClient(func(w *world) []byte {
			return append(changed(w.begins[1], 41, 3), 0) // of a round to come
		})},
		{"message of another session", protocol.ErrSession,
			toClient(func(w *world) []byte { return newWorld(w.t).begins[1] })},
		{"round replayed", protocol.ErrReplay, toClient(func(w *world) []byte { return w.begins[1] })},
		{"round number going back", protocol.ErrStale, toClient(func(w *world) []byte { return w.begins[0] })},
		{"submitted twice", protocol.ErrDuplicate, toServer(func(w *world) []byte { return w.submitted })},
		{"missing CSV", fs.ErrNotExist, adult(nil)},
		{"half a CSV", learning.ErrIncomplete, adult(map[string]string{
			"adult.data": strings.Repeat(row+"\n", 100),
			"adult.test": testHead + strings.Repeat(row+".\n", 100),
		})},
		{"CSV cut within a row", learning.ErrIncomplete, adult(map[string]string{
			"adult.data": row + "\n" + row[:60], "adult.test": testHead + row + ".\n",
		})},
		{"CSV with a bad number", learning.ErrMalformed, adult(map[string]string{
			"adult.data": row + "\n" + strings.Replace(row, "77516", "many", 1) + "\n",
			"adult.test": testHead + row + ".\n",
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if err := c.do(w); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			} else {
				t.Log(err)
			}
			w.finish()
		})
	}
}
