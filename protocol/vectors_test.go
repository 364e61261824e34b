package protocol

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// The vectors of SPEC.md: whole sessions from fixed seeds, with every message
// and the secrets behind it. protocol/internal/specdecode checks them from the
// specification alone.
var update = flag.Bool("update", false, "write the test vectors of testdata anew")

// hexBytes is written as hexadecimal digits.
type hexBytes []byte

func (h hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

type (
	vectorParty struct {
		Identity      hexBytes `json:"identity_seed"`
		PrivateKey    hexBytes `json:"x25519_private"`
		Decapsulation hexBytes `json:"mlkem_seed,omitempty"`
		Random        hexBytes `json:"random_seed"`
	}
	vectorMessage struct {
		From    int      `json:"from"` // -1 is the server
		To      int      `json:"to"`
		Type    string   `json:"type"`
		Lost    bool     `json:"lost,omitempty"`
		Message hexBytes `json:"message"`
	}
	vectorPair struct {
		Low      int        `json:"low"`
		High     int        `json:"high"`
		ChainKey hexBytes   `json:"chain_key"`
		Channels []hexBytes `json:"channels"` // self mask low→high, high→low, recovery low→high, high→low
		Secret   hexBytes   `json:"pair_secret"`
		MaskSeed hexBytes   `json:"mask_seed"`
	}
	vectorInput struct {
		Party    int        `json:"party"`
		Input    [][]string `json:"input"` // decimal, by segment
		SelfMask hexBytes   `json:"b,omitempty"`
		Recovery hexBytes   `json:"k,omitempty"`
	}
	vectorRound struct {
		Round        uint64        `json:"round"`
		Broadcast    hexBytes      `json:"broadcast"`
		Scheduled    []int         `json:"scheduled"`
		Holders      []int         `json:"holders"`
		Participants []int         `json:"participants"`
		Context      hexBytes      `json:"context"`
		Pairs        []vectorPair  `json:"pairs"`
		Inputs       []vectorInput `json:"inputs"`
		// shares that were changed before they were sent
		Wrong    []vectorWrong `json:"wrong,omitempty"`
		Included []int         `json:"included"`
		Sum      [][]string    `json:"sum"`
	}
	vectorWrong struct {
		Holder int `json:"holder"`
		Owner  int `json:"owner"`
	}
	vectorSession struct {
		Description  string          `json:"description"`
		Config       *Config         `json:"config"`
		Parties      []vectorParty   `json:"parties"`
		RosterDigest hexBytes        `json:"roster_digest"`
		ConfigDigest hexBytes        `json:"config_digest"`
		KeysDigest   hexBytes        `json:"keys_digest"`
		Members      []int           `json:"members"`
		SessionID    hexBytes        `json:"session_id"`
		Messages     []vectorMessage `json:"messages"`
		Rounds       []vectorRound   `json:"rounds"`
	}
)

// stream is a deterministic source of bytes, block j of which is
// SHA-256(seed ‖ j), and remembers what was read of it.
type stream struct {
	seed  [32]byte
	next  uint64
	rest  []byte
	reads [][]byte
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) < len(p) {
		block := sha256.Sum256(binary.BigEndian.AppendUint64(s.seed[:], s.next))
		s.rest = append(s.rest, block[:]...)
		s.next++
	}
	copy(p, s.rest)
	s.reads = append(s.reads, bytes.Clone(p))
	s.rest = s.rest[len(p):]
	return len(p), nil
}

// scalar is how a secret is drawn: 64 bytes modulo ℓ. It does not use package
// shamir.
func scalar(t *testing.T, wide []byte) hexBytes {
	t.Helper()
	s, err := new(edwards25519.Scalar).SetUniformBytes(wide)
	if err != nil {
		t.Fatal(err)
	}
	return s.Bytes()
}

// vectorPlan says how the parties of one round leave it.
type vectorPlan struct {
	broadcast  string
	absent     []int // Begin does not reach them
	lost       []int // their Masked does not arrive; -1 is the lowest participant
	unsigned   []int // they submit and are gone
	unrevealed []int
	gather     []int // who is there, if the round is among some
	wrong      []int // who reveals a wrong share of the lowest owner
}

var typeNames = map[wire.Type]string{
	wire.TypeAnnounce: "Announce", wire.TypeKeys: "Keys", wire.TypeBegin: "Begin",
	wire.TypeMasked: "Masked",
	wire.TypeUpload: "Upload", wire.TypeInvite: "Invite", wire.TypeSurvivors: "Survivors",
	wire.TypeSigned:      "Signed",
	wire.TypeCertificate: "Certificate", wire.TypeReveal: "Reveal",
	wire.TypeEncapsulate: "Encapsulate", wire.TypeMembers: "Members",
}

// recorder runs a session and writes down what happens.
type recorder struct {
	t        *testing.T
	session  *vectorSession
	config   *Config
	server   *Server
	clients  []*Client
	streams  []*stream
	recovery map[string]hexBytes // k by party and round
	silent   []int               // whose ciphertexts do not arrive
	wrong    []int
	lies     []vectorWrong
}

func (r *recorder) record(from, to int, lost bool, message []byte) {
	r.session.Messages = append(r.session.Messages,
		vectorMessage{from, to, typeNames[wire.Type(message[1])], lost, bytes.Clone(message)})
}

// toServer carries a party's message, unless it is lost.
func (r *recorder) toServer(party int, message []byte, lost bool) {
	r.t.Helper()
	r.record(party, -1, lost, message)
	if lost {
		return
	}
	if err := deliver(r.server, message); err != nil {
		r.t.Fatal(err)
	}
}

// toParties carries the server's messages to those that are there, and their
// answers back.
func (r *recorder) toParties(envelopes []Envelope, err error, absent ...int) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range envelopes {
		lost := slices.Contains(absent, e.To)
		r.record(-1, e.To, lost, e.Message)
		if lost {
			continue
		}
		r.streams[e.To].reads = nil
		answer, err := r.clients[e.To].Receive(e.Message)
		if err != nil {
			r.t.Fatal(err)
		}
		if answer == nil {
			continue
		}
		if reads := r.streams[e.To].reads; wire.Type(answer[1]) == wire.TypeUpload && len(reads) > 0 {
			r.keep(e.To, answer[wire.HeaderSize:], reads[0])
		}
		if wire.Type(answer[1]) == wire.TypeReveal && slices.Contains(r.wrong, e.To) {
			owner := binary.BigEndian.Uint32(answer[wire.HeaderSize:])
			r.lies = append(r.lies, vectorWrong{e.To, int(owner)})
			answer[wire.HeaderSize+4] ^= 1
		}
		r.toServer(e.To, answer, wire.Type(answer[1]) == wire.TypeEncapsulate &&
			slices.Contains(r.silent, e.To))
	}
}

// keep notes the recovery key of an upload.
func (r *recorder) keep(party int, upload, wide []byte) {
	r.recovery[fmt.Sprint(party, binary.BigEndian.Uint64(upload))] = scalar(r.t, wide)
}

func decimal(values [][]uint64) [][]string {
	out := make([][]string, len(values))
	for i, segment := range values {
		for _, x := range segment {
			out[i] = append(out[i], strconv.FormatUint(x, 10))
		}
	}
	return out
}

// recordSession runs the planned rounds with parties whose keys and randomness
// follow from the session's name.
func recordSession(
	t *testing.T, name, description string, n int, config *Config, late, silent []int,
	plans []vectorPlan,
) *vectorSession {
	t.Helper()
	s := &vectorSession{Description: description}
	r := &recorder{t: t, session: s, config: config, recovery: map[string]hexBytes{}, silent: silent}
	var signers []crypto.Signer
	var members []keyexchange.Entry
	for i := range n {
		seed := sha256.Sum256(fmt.Appendf(nil, "hushsum vectors %s identity %d", name, i))
		key := ed25519.NewKeyFromSeed(seed[:])
		signers = append(signers, key)
		members = append(members,
			keyexchange.Entry{Name: fmt.Sprintf("party-%d", i), Key: key.Public().(ed25519.PublicKey)})
		random := &stream{seed: sha256.Sum256(fmt.Appendf(nil, "hushsum vectors %s random %d", name, i))}
		r.streams = append(r.streams, random)
		s.Parties = append(s.Parties, vectorParty{Identity: seed[:], Random: bytes.Clone(random.seed[:])})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	config.Roster = roster
	if r.server, err = NewServer(config); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		client, err := NewClient(config, signers[i], r.streams[i])
		if err != nil {
			t.Fatal(err)
		}
		r.clients = append(r.clients, client)
		s.Parties[i].PrivateKey = r.streams[i].reads[0]
		if !config.Classical {
			s.Parties[i].Decapsulation = r.streams[i].reads[1]
		}
		if !slices.Contains(late, i) {
			r.toServer(i, client.Announce(), false)
		}
	}
	envelopes, err := r.server.Keys()
	r.toParties(envelopes, err)
	envelopes, err = r.server.Members()
	r.toParties(envelopes, err)
	roster32, config32, keys32, session32 := roster.Digest(), digestOf(config), r.server.topology.keys,
		r.server.session
	s.RosterDigest, s.ConfigDigest, s.KeysDigest, s.SessionID = roster32[:], config32[:], keys32[:],
		session32[:]
	s.Config, s.Members = config, r.server.Enrolled()
	for _, plan := range plans {
		r.round(plan)
	}
	return s
}

// round runs and records one round.
func (r *recorder) round(plan vectorPlan) {
	t := r.t
	t.Helper()
	recovery := r.config.Recovery != nil
	r.wrong, r.lies = plan.wrong, nil
	switch {
	case plan.gather != nil:
		envelopes, err := r.server.Gather(plan.gather)
		r.toParties(envelopes, err)
	case recovery && r.server.Round() > 0:
		envelopes, err := r.server.Invite()
		r.toParties(envelopes, err)
	}
	envelopes, err := r.server.Begin([]byte(plan.broadcast))
	r.toParties(envelopes, err, plan.absent...)
	number := r.server.Round()
	round := vectorRound{Round: number, Broadcast: []byte(plan.broadcast),
		Holders:   slices.Collect(r.server.holders.All()),
		Scheduled: r.server.holders.Of(r.server.topology.scheduled(number)),
		Context:   bytes.Clone(r.server.open.context[:])}
	for _, e := range envelopes {
		round.Participants = append(round.Participants, e.To)
	}
	if slices.Contains(plan.lost, -1) {
		plan.lost = round.Participants[:1]
	}
	round.Pairs = r.pairs(number, round.Participants, plan.absent)
	in, _ := inputs(number, r.config.Layout, len(r.clients))
	for _, i := range round.Participants {
		if slices.Contains(plan.absent, i) {
			continue
		}
		client, random := r.clients[i], r.streams[i]
		near := len(client.open.neighbours)
		random.reads = nil
		message, err := client.Submit([]byte(plan.broadcast), in[i]...)
		if err != nil {
			t.Fatal(err)
		}
		input := vectorInput{Party: i, Input: decimal(in[i])}
		if recovery {
			// The draws of Submit: b, a nonce, the coefficients of b's polynomial,
			// then k and so on.
			input.SelfMask = scalar(t, random.reads[0])
			next := 2
			if client.open.terms.threshold > 1 {
				next++
			}
			body := message[wire.HeaderSize+r.config.Layout.PackedSize()+32+24+near*48:]
			r.keep(i, body, random.reads[next])
		}
		round.Inputs = append(round.Inputs, input)
		r.toServer(i, message, slices.Contains(plan.lost, i))
	}
	if recovery {
		for k := range round.Inputs {
			round.Inputs[k].Recovery = r.recovery[fmt.Sprint(round.Inputs[k].Party, number)]
		}
		envelopes, err := r.server.Survivors()
		r.toParties(envelopes, err, plan.unsigned...)
		envelopes, err = r.server.Certificate()
		r.toParties(envelopes, err, append(slices.Clone(plan.unsigned), plan.unrevealed...)...)
	}
	sum, err := r.server.Sum()
	if err != nil {
		t.Fatal(err)
	}
	round.Wrong, round.Included, round.Sum = r.lies, r.server.Included(), decimal(sum)
	if !equal(sum, sumOf(r.config.Layout, in, round.Included)) {
		t.Fatal("the sum is wrong")
	}
	r.session.Rounds = append(r.session.Rounds, round)
}

// pairs returns what every two neighbours share in the round, from the state of
// one that is in it.
func (r *recorder) pairs(round uint64, participants, absent []int) []vectorPair {
	var out []vectorPair
	for _, low := range participants {
		for _, high := range r.server.topology.neighbours(round, low) {
			if high < low || !slices.Contains(participants, high) {
				continue
			}
			self, peer := low, high
			if slices.Contains(absent, low) {
				self, peer = high, low
			}
			if slices.Contains(absent, self) {
				continue
			}
			chain := r.clients[self].chains[peer]
			state, err := chain.AppendBinary(nil)
			if err != nil {
				r.t.Fatal(err)
			}
			if chain.Round() != round {
				r.t.Fatalf("the chain is at round %d", chain.Round())
			}
			channels, secret, err := chain.Ahead(round)
			if err != nil {
				r.t.Fatal(err)
			}
			seed := secret.MaskSeed(r.clients[self].open.context)
			pair := vectorPair{Low: low, High: high, ChainKey: bytes.Clone(state[8:]),
				Secret: bytes.Clone(secret[:]), MaskSeed: bytes.Clone(seed[:])}
			for _, purpose := range []keyexchange.Purpose{keyexchange.SelfMaskShare,
				keyexchange.RecoveryShare} {
				pair.Channels = append(pair.Channels, bytes.Clone(channels.Key(purpose, low, high)[:]),
					bytes.Clone(channels.Key(purpose, high, low)[:]))
			}
			out = append(out, pair)
		}
	}
	return out
}

// The code still makes the vectors in testdata. After a change of the
// wire format or the key schedule, which needs a new version, run with -update.
func TestVectors(t *testing.T) {
	layout := masking.Layout{{Length: 5, Bits: 20}, {Length: 3, Bits: 64}, {Length: 9, Bits: 3}}
	for _, test := range []struct {
		name, description string
		parties           int
		config            *Config
		late, silent      []int // who does not announce, who does not encapsulate
		rounds            []vectorPlan
	}{
		{
			"plain", "no recovery, everybody in every round", 3,
			&Config{Label: "vectors/plain", Layout: layout, Classical: true}, nil, nil,
			[]vectorPlan{{broadcast: "model 1"}, {}},
		},
		{
			"recovery", "cheating server, complete graph; party 2 misses round 1 and rejoins by Invite, " +
				"party 1's submission of round 2 is lost, party 3 does not sign and party 0 is there " +
				"throughout in round 3", 4,
			&Config{Label: "vectors/recovery", Layout: layout, MaxSkip: 16,
				Recovery: &Recovery{Threshold: 2}}, nil, nil,
			[]vectorPlan{{broadcast: "model 1", absent: []int{2}}, {broadcast: "model 2", lost: []int{1}},
				{broadcast: "model 3", unsigned: []int{3}}},
		},
		{
			"sparse", "semi-malicious server, sparse graph, a schedule; one party of round 2 drops out", 8,
			&Config{Label: "vectors/sparse", Layout: layout[:2], PerRound: 7, Seed: [32]byte{1, 2, 3},
				Recovery: &Recovery{Adversary: SemiMaliciousServer, Degree: 4}, Colluders: 1}, nil, nil,
			[]vectorPlan{{}, {broadcast: "model 2", lost: []int{5}}, {}},
		},
		{
			"odd", "curious server, one sparse graph of odd degree for the session, a zero seed; party 4 " +
				"drops out of round 1", 10,
			&Config{Label: "vectors/odd", Layout: layout[:1],
				Recovery: &Recovery{Adversary: CuriousServer, Degree: 5}}, nil, nil,
			[]vectorPlan{{lost: []int{4}}, {}},
		},
		{
			"missing", "curious server, one sparse graph over those who announced, a zero seed; party 0 " +
				"does not announce, party 9 " +
				"does not encapsulate, party 4 drops out of round 1", 10,
			&Config{Label: "vectors/missing", Number: 1, Layout: layout[:1], MinMembers: 8,
				Recovery: &Recovery{Adversary: CuriousServer, Degree: 4, Threshold: 2}}, []int{0}, []int{9},
			[]vectorPlan{{lost: []int{4}}, {}},
		},
		{
			"some", "cheating server, one colluder; party 3 does not announce and party 8 does not " +
				"encapsulate; round 1 among all " +
				"members, of whom party 1 reveals a wrong share; round 3 among five of them, of whom party " +
				"9 drops out", 10,
			&Config{Label: "Zählung – été", Number: 7,
				Layout:     masking.Layout{{Length: 9, Bits: 1}, {Length: 4, Bits: 7}, {Length: 3, Bits: 33}},
				MinMembers: 5, Colluders: 1, Recovery: &Recovery{}}, []int{3}, []int{8},
			[]vectorPlan{{broadcast: "model 1", wrong: []int{1}},
				{broadcast: "model 3", gather: []int{0, 2, 4, 6, 9}, lost: []int{9}}},
		},
		{
			"classical", "classical keys with recovery, curious server; party 1 drops out of round 1 " +
				"and is invited, party 2 submits in round 2 and does not sign, party 4 signs in round 3 " +
				"and does not reveal", 5,
			&Config{Label: "vectors/classical", Layout: layout[:1], Classical: true,
				Recovery: &Recovery{Adversary: CuriousServer, Threshold: 2}}, nil, nil,
			[]vectorPlan{{broadcast: "model 1", lost: []int{1}}, {broadcast: "model 2", unsigned: []int{2}},
				{unrevealed: []int{4}}},
		},
		{
			"scheduled", "classical keys, cheating server, a schedule on complete graphs; one party of " +
				"round 2 drops out", 8,
			&Config{Label: "vectors/scheduled", Layout: layout[:1], Classical: true, PerRound: 5,
				Seed: [32]byte{4, 5, 6}, Recovery: new(Recovery)}, nil, nil,
			[]vectorPlan{{}, {broadcast: "model 2", lost: []int{-1}}, {}, {}},
		},
		{
			"whole", "hybrid keys without recovery, two rounds among four of five: party 2 does not " +
				"announce", 5,
			&Config{Label: "vectors/whole", Layout: layout, MinMembers: 4}, []int{2}, nil,
			[]vectorPlan{{broadcast: "model 1"}, {}},
		},
		{
			"colluders", "classical keys, cheating server, three colluders; party 0 reveals a wrong " +
				"share, which is corrected, and party 9 drops out of round 2", 12,
			&Config{Label: "vectors/colluders", Layout: layout[:1], Classical: true, Colluders: 3,
				MinMembers: 11, Recovery: &Recovery{Threshold: 8}}, []int{11}, nil,
			[]vectorPlan{{wrong: []int{0}}, {broadcast: "model 2", lost: []int{9}}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			session := recordSession(t, test.name, test.description, test.parties, test.config, test.late,
				test.silent, test.rounds)
			checkGolden(t, test.name, session)
		})
	}
}

// checkGolden compares what the code makes with the file of that name in testdata, or
// writes it.
func checkGolden(t *testing.T, name string, made any) {
	t.Helper()
	got, err := json.MarshalIndent(made, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what the code makes; was a change of the protocol intended?", path)
	}
}
