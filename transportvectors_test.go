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

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
)

var writeTransport = flag.Bool("transport.write", false, "write testdata/transport.json anew")

const transportFile = "testdata/transport.json"

// transportVectors are examples of what SPEC-TRANSPORT.md specifies.
type transportVectors struct {
	Job        []string      `json:"job"`        // its lines
	Identities []string      `json:"identities"` // Ed25519 seeds, of party-0 and so on
	Roster     string        `json:"roster"`
	Digest     string        `json:"digest"`
	Broadcast  string        `json:"broadcast"` // digest of that in the frames
	Frames     []frameVector `json:"frames"`
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
	declared := job.Job{Name: "vectors", Rounds: 3, Model: job.Model{Length: 2},
		Privacy: job.Privacy{Clip: 1}}
	s, err := declared.Settle(job.Files{Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	greeting := greetingOf(s)
	out.Job, out.Roster, out.Digest = greeting.Job, greeting.Roster, greeting.Digest
	greeting.Sessions, greeting.Least = []uint64{3}, 4
	cast := &link.Broadcast{Round: 2, Fresh: [32]byte{1, 2, 3},
		Model: link.Floats[float64]{0.5, -1}}
	if err := cast.Settle(); err != nil {
		t.Fatal(err)
	}
	out.Broadcast = hex.EncodeToString(cast.Digest[:])
	body := bytesOf(t, cast)
	add := func(about string, f []byte) {
		b := append(binary.BigEndian.AppendUint32(nil, uint32(len(f))), f...)
		out.Frames = append(out.Frames, frameVector{about, hex.EncodeToString(b)})
	}
	add("hello of a party in session 3", link.JSONFrame(link.KindHello, greeting))
	add("refusal of another job", link.JSONFrame(link.KindRefusal,
		&link.Refusal{Field: "privacy.epsilon", Ours: "8", Theirs: "1"}))
	add("join session 4", link.NumberFrame(link.KindJoin, 4))
	add("broadcast of round 2", link.NewFrame(link.KindBroadcast, body))
	add("end after round 2", link.NewFrame(link.KindEnd, body))
	add("part of a broadcast: its first 40 bytes",
		link.NewFrame(link.KindPart, link.NewFrame(link.KindBroadcast, body[:40])))
	add("broadcast: the rest of it", link.NewFrame(link.KindBroadcast, body[40:]))
	add("absence from round 3", link.JSONFrame(link.KindAbsent,
		link.Absence{Told: 2, Absent: 3, Why: "no vector"}))
	add("absence from none", link.JSONFrame(link.KindAbsent, link.Absence{Told: 2}))
	add("offer for round 3", link.NumberFrame(link.KindOffer, 3))
	add("upload in round 3", link.NumberFrame(link.KindUpload, 3))
	return out
}

// The code makes what testdata/transport.json says: package link reads it.
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
}
