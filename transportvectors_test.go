package hushsum

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

var writeTransport = flag.Bool("transport.write", false, "write testdata/transport.json anew")

const transportFile = "testdata/transport.json"

// transportVectors are examples of what SPEC-TRANSPORT.md specifies.
type transportVectors struct {
	Plan       json.RawMessage `json:"plan"`
	Identities []string        `json:"identities"` // Ed25519 seeds, of party-0 and so on
	Roster     string          `json:"roster"`
	Digest     string          `json:"digest"`
	Broadcast  string          `json:"broadcast"` // digest of that in the frames
	Frames     []frameVector   `json:"frames"`
}

type frameVector struct {
	About string `json:"about"`
	Bytes string `json:"bytes"` // with the length before it
}

// makeTransport makes the vectors of what the code does today.
func makeTransport(t *testing.T) *transportVectors {
	t.Helper()
	out := &transportVectors{}
	var members []keyexchange.Entry
	for i := range 4 {
		seed := bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize)
		out.Identities = append(out.Identities, hex.EncodeToString(seed))
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party-", i),
			Key: ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Name: "vectors", Rounds: 3, Length: 2, Clip: 1}
	s, err := plan.Settle(roster)
	if err != nil {
		t.Fatal(err)
	}
	greeting := greetingOf(s)
	if out.Plan, err = json.Marshal(greeting.Plan); err != nil {
		t.Fatal(err)
	}
	out.Roster, out.Digest = greeting.Roster, greeting.Digest
	greeting.Sessions, greeting.Least = []uint64{3}, 4
	cast := &broadcast{round: 2, fresh: [32]byte{1, 2, 3}, model: floats[float64]{0.5, -1}}
	if err := cast.settle(); err != nil {
		t.Fatal(err)
	}
	out.Broadcast = hex.EncodeToString(cast.digest[:])
	body, err := cast.bytes()
	if err != nil {
		t.Fatal(err)
	}
	add := func(about string, f []byte) {
		b := append(binary.BigEndian.AppendUint32(nil, uint32(len(f))), f...)
		out.Frames = append(out.Frames, frameVector{about, hex.EncodeToString(b)})
	}
	add("hello of a party in session 3", jsonFrame(frameHello, greeting))
	add("refusal of another plan", jsonFrame(frameRefusal, &refusal{"epsilon", "8", "1"}))
	add("join session 4", joinFrame(4))
	add("broadcast of round 2", frame(frameBroadcast, body))
	add("end after round 2", frame(frameEnd, body))
	add("part of a broadcast: its first 40 bytes", frame(framePart, frame(frameBroadcast, body[:40])))
	add("broadcast: the rest of it", frame(frameBroadcast, body[40:]))
	add("absence from round 3", jsonFrame(frameAbsent, absence{2, 3, "no vector"}))
	add("absence from none", jsonFrame(frameAbsent, absence{Told: 2}))
	add("offer for round 3", roundFrame(frameOffer, 3))
	add("upload in round 3", roundFrame(frameUpload, 3))
	return out
}

// The code makes what testdata/transport.json says, and reads it.
func TestTransportVectors(t *testing.T) {
	made, err := json.MarshalIndent(makeTransport(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	made = append(made, '\n')
	if *writeTransport {
		if err := os.WriteFile(transportFile, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(transportFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, kept) {
		t.Fatalf("the code makes other frames than %s has", transportFile)
	}
	var in transportVectors
	if err := json.Unmarshal(kept, &in); err != nil {
		t.Fatal(err)
	}
	// The broadcast in one piece and in two is the same, with the digest that is written down.
	whole := newBroadcastReader(make(floats[float64], 2))
	parts := newBroadcastReader(make(floats[float64], 2))
	for _, f := range in.Frames {
		b, err := hex.DecodeString(f.Bytes)
		if err != nil || int(binary.BigEndian.Uint32(b)) != len(b)-4 {
			t.Fatalf("%s: %v", f.About, err)
		}
		to, body := whole, b[5:]
		switch f.About {
		case "broadcast of round 2":
		case "part of a broadcast: its first 40 bytes":
			to, body = parts, b[6:]
		case "broadcast: the rest of it":
			to = parts
		default:
			continue
		}
		if _, err := to.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []*broadcastReader{whole, parts} {
		b, err := r.end()
		if err != nil || b.round != 2 || hex.EncodeToString(b.digest[:]) != in.Broadcast {
			t.Errorf("%+v, %v", b, err)
		}
	}
}
