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
	"strconv"
	"strings"
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
	// Jobs have what is declared, in canonical JSON, and their digests; the parties are those above.
	Jobs []jobVector `json:"jobs"`
	// Refused are hellos, and the field of the refusal.
	Refused []refusedVector `json:"refused"`
}

type jobVector struct {
	About    string          `json:"about"`
	Text     string          `json:"text"`                // as in a file
	Model    string          `json:"model,omitempty"`     // the first one's file, hexadecimal
	Members  string          `json:"committee,omitempty"` // digest
	Declared json.RawMessage `json:"declared"`
	Job      []string        `json:"job"`    // its lines in hello
	Digest   string          `json:"digest"` // the job's
	// Multiplier and Scale are those of the noise, to six digits; 0: there is none.
	Multiplier float64 `json:"multiplier,omitempty"`
	Scale      float64 `json:"scale,omitempty"`
	Settled    string  `json:"settled"` // digest of what was settled
	// Numbers are those of sessions; nil: of one message, or with noise, which machines may calibrate
	// differently.
	Numbers *job.SessionNumbers `json:"numbers,omitempty"`
}

type refusedVector struct {
	About string `json:"about"`
	Hello string `json:"hello"`
	Field string `json:"field"`
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
	out.Jobs, out.Refused = jobVectors(t, roster), refusedVectors(t, s)
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

// jobVectors settles jobs of a roster.
func jobVectors(t *testing.T, roster *keyexchange.Roster) (out []jobVector) {
	t.Helper()
	var long strings.Builder
	for k := range 400 {
		fmt.Fprintf(&long, "[[query]]\nname = \"q%d\"\nkind = \"count\"\n", k)
		fmt.Fprintf(&long, "where = \"age >= %d\"\n", k%80)
	}
	const rest = "parties.count = 4\nname = \"v\"\nrounds = 3\nmodel.length = 2\n"
	const noise = "privacy = { noise = \"discrete-gaussian\", clip = 0.75, epsilon = 1.0, " +
		"delta = 1e-6 }\n"
	for _, v := range []jobVector{
		{About: "no noise", Text: rest + "privacy.clip = 1.0\n"},
		{About: "noise, and the parties' number from the roster",
			Text: "parties.roster = \"roster.txt\"\n" +
				strings.TrimPrefix(rest, "parties.count = 4\n") + noise},
		{About: "noise, and a first model", Text: rest + noise, Model: "0102"},
		{About: "one message, and a committee", Text: rest +
			"sum = { protocol = \"oneshot\", committee = \"committee.txt\", range = 1.0 }\n"},
		{About: "drop-outs and colluders", Text: rest +
			"parties.drop_out = 0.3\nparties.colluders = 1\n" +
			"sum = { adversary = \"curious\", range = 3.3 }\n"},
		{About: "recovery of all", Text: rest +
			"sum = { recovery = true, fraction_bits = 33, classical = true }\n"},
		{About: "rounds among three", Text: rest + "parties.per_round = 3\nsum.recovery = true\n"},
		{About: "rounds among two, whose threshold follows from the round", Text: rest +
			"parties.per_round = 2\nsum.recovery = true\nmodel.dtype = \"float64\"\n"},
		{About: "a job longer than a hello", Text: "name = \"v\"\nparties = { count = 4, rows = 3 }\n" +
			"privacy = { noise = \"discrete-gaussian\", epsilon = 1.0 }\n" +
			"column = [{ name = \"age\", type = \"whole\", range = [0, 100] }]\n" + long.String()},
	} {
		j, err := job.Parse("", []byte(v.Text))
		if err != nil {
			t.Fatal(v.About, err)
		}
		files := job.Files{Roster: roster}
		if files.Model, err = hex.DecodeString(v.Model); err != nil {
			t.Fatal(err)
		}
		if j.Oneshot() {
			var members []keyexchange.Entry
			for k := range 5 {
				seed := bytes.Repeat([]byte{byte(100 + k)}, ed25519.SeedSize)
				members = append(members, keyexchange.Entry{Name: fmt.Sprint("member-", k),
					Key: ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)})
			}
			if files.Committee, err = keyexchange.NewRoster(members); err != nil {
				t.Fatal(err)
			}
			digest := files.Committee.Digest()
			v.Members = hex.EncodeToString(digest[:])
		}
		s, err := j.Settle(files)
		if err != nil {
			t.Fatal(v.About, err)
		}
		digest, settled := s.Job().Digest(), s.Digest()
		v.Declared, v.Digest = s.Job().Canonical(), hex.EncodeToString(digest[:])
		v.Settled, v.Job = hex.EncodeToString(settled[:]), greetingOf(s).Job
		if m := s.Mechanism(); m != nil {
			v.Multiplier, v.Scale = sixDigits(t, s.Multiplier()), sixDigits(t, m.Encoder.Scale)
		} else {
			v.Numbers = s.Numbers()
		}
		out = append(out, v)
	}
	return out
}

// sixDigits rounds as the digest of what was settled does: machines may differ in later digits.
func sixDigits(t *testing.T, x float64) float64 {
	t.Helper()
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 5, 64), 64)
	if err != nil {
		t.Fatal(err)
	}
	return rounded
}

// refusedVectors spoils the hello of a job in each way.
func refusedVectors(t *testing.T, s *Settled) (out []refusedVector) {
	t.Helper()
	g := greetingOf(s)
	g.Sessions = []uint64{}
	body := string(link.JSONFrame(link.KindHello, g)[1:])
	if _, refused := checkGreeting(s, []byte(body)); refused != nil {
		t.Fatal(refused)
	}
	changed := func(was, is string) string {
		if !strings.Contains(body, was) {
			t.Fatalf("%s has no %s", body, was)
		}
		return strings.Replace(body, was, is, 1)
	}
	for _, v := range []refusedVector{
		{"cut", body[:len(body)-1], ""},
		{"more behind it", body + " {}", ""},
		{"a key twice", changed(`"least":0`, `"least":0,"least":0`), ""},
		{"a key written otherwise", changed(`"least"`, `"Least"`), ""},
		{"an unknown key", changed(`"least":0`, `"least":0,"more":1`), ""},
		{"a number below 0", changed(`"least":0`, `"least":-1`), ""},
		{"a number that is a text", changed(`"least":0`, `"least":"0"`), ""},
		{"no number but null", changed(`"least":0`, `"least":null`), ""},
		{"another number of rounds", changed(`rounds = 3`, `rounds = 4`), "rounds"},
		{"a field less", changed(`"rounds = 3",`, ``), "rounds"},
		{"no job", `{` + body[strings.Index(body, `"roster"`):], "model.dtype"},
		{"another roster", changed(g.Roster, g.Digest), "roster"},
		{"another digest", changed(g.Digest, g.Roster), "digest"},
	} {
		_, refused := checkGreeting(s, []byte(v.Hello))
		if refused == nil || refused.Field != v.Field {
			t.Errorf("%s: %s is answered %+v, want field %q", v.About, v.Hello, refused, v.Field)
		}
		out = append(out, v)
	}
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
