package link

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// The code reads what the vectors of SPEC-TRANSPORT.md say: package hushsum makes them.
func TestTransportVectors(t *testing.T) {
	kept, err := os.ReadFile("../testdata/transport.json")
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Broadcast string
		Frames    []struct{ About, Bytes string }
	}
	if err := json.Unmarshal(kept, &in); err != nil {
		t.Fatal(err)
	}
	// The broadcast in one piece and in two is the same, with the digest that is written down.
	whole := NewBroadcastReader(make(Floats[float64], 2))
	parts := NewBroadcastReader(make(Floats[float64], 2))
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
	for _, r := range []*BroadcastReader{whole, parts} {
		b, err := r.End()
		if err != nil || b.Round != 2 || hex.EncodeToString(b.Digest[:]) != in.Broadcast {
			t.Errorf("%+v, %v", b, err)
		}
	}
}
