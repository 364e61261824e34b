package oneshot

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/noise"
)

// The vectors of SPEC-ONESHOT.md. internal/specdecode checks them from the
// specification alone.
var update = flag.Bool("update", false, "write the test vectors of testdata anew")

// hexBytes is written as hexadecimal digits.
type hexBytes []byte

func (h hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

func (h *hexBytes) UnmarshalText(b []byte) (err error) {
	*h, err = hex.DecodeString(string(b))
	return err
}

type (
	vectorConfig struct {
		Label         string `json:"label"`
		Length        int    `json:"length"`
		Bits          int    `json:"bits"`
		Noise         string `json:"noise"` // σ² as in the digest
		MinSurvivors  int    `json:"min_survivors"`
		Colluders     int    `json:"colluders"`
		Faults        int    `json:"faults"`
		Disputes      int    `json:"disputes"`
		PerPolynomial int    `json:"per_polynomial"`
		Covered       bool   `json:"covered"`
		KEM           int    `json:"kem"`
		Stale         int    `json:"stale,omitempty"`
		Norm          int64  `json:"norm,omitempty"`
		InLeague      int    `json:"in_league,omitempty"`
		MembersNoise  bool   `json:"members_noise,omitempty"`
		Groups        int    `json:"groups,omitempty"`
		Weights       []int  `json:"weights,omitempty"`
	}
	vectorFigures struct {
		Modulus     uint64 `json:"modulus"`
		Scale       int64  `json:"scale"`
		Spare       int    `json:"spare"`
		Polynomials int    `json:"polynomials"`
		Answers     int    `json:"answers"`
		Quorum      int    `json:"quorum"`
	}
	vectorPerson struct {
		Name     string   `json:"name"`
		Identity hexBytes `json:"identity_seed"`
		Public   hexBytes `json:"identity_key"`
		Private  hexBytes `json:"private_key,omitempty"` // a member's, as HPKE serializes it

		Seeds []hexBytes `json:"seeds,omitempty"` // of a member's candidates for noise
	}
	vectorMessage struct {
		From    string   `json:"from"`
		To      string   `json:"to"`
		Type    int      `json:"type"`
		Message hexBytes `json:"message"`
	}
	vectorDealing struct {
		Party     int        `json:"party"`
		Made      uint64     `json:"made,omitempty"`
		Values    []int64    `json:"values"`
		Key       hexBytes   `json:"key"` // s, one signed byte a coefficient
		Noise     []int64    `json:"noise"`
		Masked    hexBytes   `json:"masked"` // y, packed, before it is covered
		Plain     []hexBytes `json:"plain"`  // by member; empty without a key
		Root      hexBytes   `json:"root"`
		Statement hexBytes   `json:"statement"`
	}
	vectorRound struct {
		Description     string          `json:"description"`
		Config          vectorConfig    `json:"config"`
		Figures         vectorFigures   `json:"figures"`
		Parties         []vectorPerson  `json:"parties"`
		Members         []vectorPerson  `json:"members"`
		RosterDigest    hexBytes        `json:"roster_digest"`
		CommitteeDigest hexBytes        `json:"committee_digest"`
		ConfigDigest    hexBytes        `json:"config_digest"`
		Round           uint64          `json:"round"`
		Broadcast       hexBytes        `json:"broadcast"`
		Context         hexBytes        `json:"context"`
		Dealings        []vectorDealing `json:"dealings"`
		Messages        []vectorMessage `json:"messages"`
		Included        []int           `json:"included"`
		Chain           hexBytes        `json:"chain"`
		Sum             []int64         `json:"sum"`
	}
	vectorRefusal struct {
		Name  string `json:"name"`
		After int    `json:"after"` // messages of round.json that came before
		To    string `json:"to"`
		// The message is one of round.json in which, from byte At on, Remove bytes are
		// replaced by Insert.
		Of     int      `json:"of"`
		At     int      `json:"at"`
		Remove int      `json:"remove"`
		Insert hexBytes `json:"insert"`
		Error  string   `json:"error"`
		// Signature, if there is one, takes the place of the last 64 bytes then.
		Signature hexBytes `json:"signature,omitempty"`
		// Spends says that the sender is out of the round for it; otherwise nothing changes.
		Spends bool `json:"spends,omitempty"`

		message []byte
	}
)

// recorded is a round with all that is to be told of it.
type recorded struct {
	*world
	out vectorRound
}

func (r *recorded) note(from, to string, message []byte) {
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		panic(err)
	}
	r.out.Messages = append(r.out.Messages, vectorMessage{from, to, int(h.Type), message})
}

// record plays the round of the vectors: seven members, the last without a key; five
// parties, of whom member 0 disputes party 1.
func record(t *testing.T, description string, terms Terms) *recorded {
	cryptotest.SetGlobalRandom(t, 1)
	r := &recorded{world: newWorld(5, 7, terms)}
	r.anew = true // with these random values
	w := r.world
	s := must(w.config.settle())
	out := &r.out
	out.Description = description
	out.Config = vectorConfig{Label: s.Label, Length: s.Length, Bits: s.Bits,
		MinSurvivors: s.MinSurvivors, Colluders: s.Colluders,
		Faults: s.Faults, Disputes: s.Figures.Disputes, PerPolynomial: s.Figures.PerPolynomial,
		Covered: s.Covered, KEM: int(s.KEM),
		Stale: s.Stale, Norm: s.Norm}
	if s.Terms.Noise.Family() != 0 {
		out.Config.Noise = s.Terms.Noise.Scale().RatString()
	}
	out.Figures = vectorFigures{Modulus: s.Modulus, Scale: s.Scale, Spare: s.Spare,
		Polynomials: s.Polynomials,
		Answers:     s.Answers, Quorum: s.Quorum}
	person := func(list *keyexchange.Roster, i int, key ed25519.PrivateKey) vectorPerson {
		return vectorPerson{Name: list.Name(i), Identity: hexBytes(key.Seed()),
			Public: hexBytes(list.Key(i))}
	}
	for i, key := range w.keys {
		out.Parties = append(out.Parties, person(s.Roster, i, key))
	}
	_, memberKeys := people("member", 7)
	for k, key := range memberKeys {
		out.Members = append(out.Members, person(s.Committee, k, key))
	}
	roster, committee := s.Roster.Digest(), s.Committee.Digest()
	out.RosterDigest, out.CommitteeDigest, out.ConfigDigest = roster[:], committee[:], s.digest[:]
	out.Broadcast = hexBytes("model")

	member := func(k int) string { return fmt.Sprintf("member %d", k) }
	w.server.Skip(uint64(s.Stale)) // rounds that inputs may be from
	invite := w.server.Invite()
	out.Round = w.server.Round()
	r.note("server", "members", invite)
	for k, m := range w.members[:6] {
		answer := must(m.Receive(invite))
		r.note(member(k), "server", answer)
		if err := w.server.Receive(answer); err != nil {
			t.Fatal(err)
		}
		out.Members[k].Private = bytes.Clone(m.open.private.seed[:])
	}
	w.opening = must(w.server.Open(out.Broadcast))
	r.note("server", "all", w.opening)
	for _, m := range w.members[:6] {
		must(m.Receive(w.opening))
	}
	context := w.server.open.context
	out.Context = context[:]
	for i := range w.keys {
		deals := s.Norm > 0 && i == boundedCheat
		var message []byte
		if deals && s.Covered {
			message = w.deal(i, cheats["a value of twice the bound"])
		} else if deals {
			message = w.deal(i, dealer{parts: moved(boundedWronged)})
		} else {
			message = must(w.submit(i))
		}
		r.note(fmt.Sprintf("party %d", i), "server", message)
		if err := w.server.Receive(message); err != nil {
			t.Fatal(err)
		}
		if !deals {
			out.Dealings = append(out.Dealings, r.dealing(t, s, i, message))
		}
	}
	for _, e := range must(w.server.Batch()) {
		r.note("server", member(e.To), e.Message)
		answer := must(w.members[e.To].Receive(e.Message))
		if e.To == 0 {
			answer = slices.Clone(answer)
			answer[len(answer)-1] |= 1 << 1
		}
		r.note(member(e.To), "server", answer)
		if err := w.server.Receive(answer); err != nil {
			t.Fatal(err)
		}
	}
	settled := must(w.server.Settle())
	r.note("server", "members", settled)
	for _, m := range w.members[:6] {
		must(m.Receive(settled))
	}
	chain := w.server.open.chain
	out.Chain = chain[:]
	for _, next := range []func() ([]byte, error){w.server.Close, w.server.Certificate} {
		message := must(next())
		r.note("server", "members", message)
		for k, m := range w.members[:6] {
			answer := must(m.Receive(message))
			r.note(member(k), "server", answer)
			if err := w.server.Receive(answer); err != nil && !errors.Is(err, ErrExcluded) {
				t.Fatal(err)
			}
		}
	}
	if s.Covered {
		r.uncover(w)
	}
	if s.reduces {
		for _, message := range must(w.server.Reduce()) {
			r.note("server", "members", message)
			for k, m := range w.members[:6] {
				if answer := must(m.Receive(message)); answer != nil {
					r.note(member(k), "server", answer)
					if err := w.server.Receive(answer); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	out.Included = w.server.Included()
	out.Sum = must(w.server.Sum())
	return r
}

// uncover gives the server the submissions of those that are in again.
func (r *recorded) uncover(w *world) {
	in := w.server.Included()
	for _, m := range slices.Clone(r.out.Messages) {
		if slices.ContainsFunc(in, func(i int) bool { return m.From == fmt.Sprintf("party %d", i) }) {
			if err := w.server.Uncover(m.Message); err != nil {
				panic(err)
			}
		}
	}
}

// dealing tells a party's secrets, drawn again from its stream.
func (r *recorded) dealing(t *testing.T, s *settled, i int, message []byte) vectorDealing {
	context := [32]byte(r.out.Context)
	random := noise.Expand(chacha(100 + i))
	key, e := make([]int64, degree), make([]int64, s.length)
	for _, err := range []error{s.keys.NewSampler(random).Fill(key),
		s.noise.NewSampler(random).Fill(e)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d := vectorDealing{Party: i, Values: r.values(i), Noise: e}
	if s.Stale > 0 {
		d.Made = r.made(i)
	}
	for _, c := range key {
		if c != int64(int8(c)) {
			t.Fatal("a coefficient does not fit a byte")
		}
		d.Key = append(d.Key, byte(c))
	}
	d.Masked = must(s.mask(s.noise.NewSampler(seeded(i)), &context, key, d.Values, nil))
	_, body, err := wire.ParseHeader(message)
	if err != nil {
		t.Fatal(err)
	}
	m := must(s.parseSubmission(body, 6))
	leaves := make([][32]byte, s.leafPlaces())
	d.Plain = make([]hexBytes, s.c)
	for k := range 6 {
		d.Plain[k] = must(open(r.members[k].open.private, boxInfo(&context, i, k),
			m.boxes[k*s.boxSize():][:s.boxSize()]))
		part := s.partPlainSize()
		leaves[k] = leaf(&context, i, k, d.Plain[k][:part])
		if s.reduces {
			leaves[s.coverPlace(k)] = coverLeaf(&context, i, k, d.Plain[k][part:])
		}
	}
	root := tree(leaves, s.depth)[s.depth][0]
	d.Root = root[:]
	var bound []byte
	if s.scheme != nil {
		bound = s.bind(&context, i, m)
	}
	d.Statement = statement(&context, i, root, hash(labels.OneshotMasked, m.masked), m.extra, bound)
	return d
}

// seeded is a party's stream from where its noise begins.
func seeded(i int) *seekReader {
	random := noise.Expand(chacha(100 + i))
	_ = must(noise.NewTable(keyLaw())).NewSampler(random).Fill(make([]int64, degree))
	return &seekReader{random.Read}
}

type seekReader struct{ read func([]byte) (int, error) }

func (r *seekReader) Read(p []byte) (int, error) { return r.read(p) }

// compare checks a file of vectors, or writes it.
func compare(t *testing.T, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s differs: the format has changed, which needs a new version", path)
	}
}

func vectorTerms(covered bool) Terms {
	t := small(Terms{Covered: covered, Colluders: 1})
	if covered {
		t.KEM = KEMX25519
		return t // exact
	}
	t.Noise = gaussian(20, t.MinSurvivors-t.Colluders)
	return t
}

func TestVectors(t *testing.T) {
	compare(t, "round.json", record(t, "form (a), noise, X25519", vectorTerms(false)).out)
	compare(t, "covered.json", record(t, "form (b), exact, X25519", vectorTerms(true)).out)
	stale := vectorTerms(true)
	stale.Stale = 3
	compare(t, "stale.json", record(t, "form (b), exact, X25519, inputs made up to 3 rounds before",
		stale).out)
}

// byte positions of a message.
const bodyAt = wire.HeaderSize

// TestRefusals shows each side messages that it must refuse, at the right moment of the
// round of round.json, and checks that nothing changes: its saved state is as it was.
func TestRefusals(t *testing.T) {
	r := record(t, "form (a), noise, X25519", vectorTerms(false))
	refusals := r.refusals(t)
	for i, one := range refusals {
		t.Run(one.Name, func(t *testing.T) { refusals[i].Error = r.present(t, one) })
	}
	compare(t, "refusals.json", refusals)
}

// errorNames are the documented errors.
var errorNames = []struct {
	name string
	err  error
}{
	{"ErrTruncated", ErrTruncated}, {"ErrTrailing", ErrTrailing}, {"ErrOversized", ErrOversized},
	{"ErrVersion", ErrVersion},
	{"ErrType", ErrType}, {"ErrEncoding", ErrEncoding}, {"ErrContext", ErrContext}, {"ErrSender", ErrSender},
	{"ErrDuplicate", ErrDuplicate}, {"ErrSignature", ErrSignature},
	{"ErrCertificate", ErrCertificate}, {"ErrKey", ErrKey}, {"ErrOwnKey", ErrOwnKey},
	{"ErrReplay", ErrReplay}, {"ErrTooFew", ErrTooFew}, {"ErrStatement", ErrStatement},
	{"ErrLost", ErrLost}, {"ErrEvidence", ErrEvidence}, {"ErrExcluded", ErrExcluded}, {"ErrFull", ErrFull},
	{"ErrPhase", ErrPhase}, {"ErrBroadcast", ErrBroadcast},
	{"ErrProof", ErrProof}, {"ErrComplaint", ErrComplaint},
}

func nameOf(err error) string {
	for _, e := range errorNames {
		if errors.Is(err, e.err) {
			return e.name
		}
	}
	return fmt.Sprint(err)
}

// replay brings a fresh world to where that many messages have come.
func (r *recorded) replay(after int) *world {
	_, keys := people("party", 5)
	w := &world{config: r.config, keys: keys, server: must(NewServer(r.config, 0))}
	for k := range 7 { // with the keys of the file
		w.members = append(w.members, must(NewMember(r.config, memberKey(k), chacha(k))))
	}
	for _, m := range r.out.Messages[:after] {
		r.deliverOne(w, m)
	}
	return w
}

func memberKey(k int) ed25519.PrivateKey {
	_, keys := people("member", k+2)
	return keys[k]
}

func (r *recorded) deliverOne(w *world, m vectorMessage) {
	var k int
	switch {
	case m.To == "server":
		if err := w.server.Receive(m.Message); err != nil && !errors.Is(err, ErrExcluded) {
			panic(err)
		}
	case m.To == "members" || m.To == "all":
		switch m.Type { // the server's own steps
		case 64:
			w.server.Invite()
		case 66:
			must(w.server.Open([]byte("model")))
		case 70:
			must(w.server.Settle())
		case 71:
			must(w.server.Close())
		case 73:
			must(w.server.Certificate())
		case 78, 79:
			if w.server.open.step == stepCovers {
				r.uncover(w)
				must(w.server.Reduce())
			}
		}
		for _, member := range w.members[:6] {
			if _, err := member.Receive(m.Message); err != nil {
				panic(err)
			}
		}
	default:
		if w.server.open.flight == nil {
			must(w.server.Batch())
		}
		if _, err := fmt.Sscanf(m.To, "member %d", &k); err != nil {
			panic(err)
		}
		must(w.members[k].Receive(m.Message))
	}
}

// present shows the message and returns the name of the error.
func (r *recorded) present(t *testing.T, one vectorRefusal) string {
	w := r.replay(one.After)
	key := new(keyexchange.SealKey)
	var k int
	var save func() []byte
	var receive func([]byte) error
	if _, err := fmt.Sscanf(one.To, "member %d", &k); err == nil {
		save = func() []byte { return must(w.members[k].Save(key)) }
		receive = func(b []byte) error { _, err := w.members[k].Receive(b); return err }
	} else if one.To == "server" {
		save = func() []byte { return must(w.server.Save(key)) }
		receive = w.server.Receive
	} else {
		party := w.party(0)
		if one.After > 8 {
			must(party.Submit(r.out.Messages[7].Message, []byte("model"), w.values(0)))
		}
		save = func() []byte { return must(party.Save(key)) }
		receive = func(b []byte) error {
			_, err := party.Submit(b, []byte("model"), w.values(0))
			return err
		}
	}
	before := opened(t, key, w, one.To, k, save())
	err := receive(one.message)
	if err == nil {
		t.Fatal("taken")
	}
	if one.Error != "" && nameOf(err) != one.Error {
		t.Errorf("%v, want %s", err, one.Error)
	}
	if after := opened(t, key, w, one.To, k, save()); bytes.Equal(before, after) == one.Spends {
		t.Errorf("the state has changed: %v", !one.Spends)
	}
	return nameOf(err)
}

// opened returns what is in a saved state.
func opened(
	t *testing.T, key *keyexchange.SealKey, w *world, to string, k int, state []byte,
) []byte {
	t.Helper()
	owner, at := ownerParty, 0
	switch {
	case to == "server":
		owner = ownerServer
	case to[0] == 'm':
		owner, at = ownerMember, k
	}
	return must(keyexchange.Open(key, state, stateData(must(w.config.settle()), owner, at)))
}

// refusals lists the bad messages with the errors that they must give.
func (r *recorded) refusals(t *testing.T) []vectorRefusal {
	var out []vectorRefusal
	s := must(r.config.settle())
	first := func(kind int, from string) int {
		i := slices.IndexFunc(r.out.Messages,
			func(m vectorMessage) bool { return m.Type == kind && (from == "" || m.From == from) })
		if i < 0 {
			t.Fatalf("no message of type %d", kind)
		}
		return i
	}
	add := func(name string, after int, to string, message []byte, want string) {
		one := vectorRefusal{Name: name, After: after, To: to, Error: want, message: message}
		one.describe(r.out.Messages)
		out = append(out, one)
	}
	change := func(i int, f func(b []byte) []byte) []byte {
		return f(slices.Clone(r.out.Messages[i].Message))
	}
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[(at+len(b))%len(b)] ^= 1; return b }
	}
	put := func(at int, v ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], v); return b }
	}
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	more := func(b []byte) []byte { return append(b, 0) }

	// What all receivers check, each with the first message that it gets.
	for _, c := range []struct {
		to string
		at int
	}{{"server", first(65, "")}, {"server", first(67, "")}, {"server", first(69, "")},
		{"server", first(72, "")}, {"server", first(74, "")},
		{"member 0", first(64, "")}, {"member 0", first(66, "")}, {"member 0", first(68, "")},
		{"member 0", first(70, "")},
		{"member 0", first(71, "")}, {"member 0", first(73, "")}, {"party 0", first(66, "")}} {
		name := func(what string) string {
			return fmt.Sprintf("%s, type %d: %s", c.to, r.out.Messages[c.at].Type, what)
		}
		at := c.at
		kind := r.out.Messages[at].Type
		add(name("empty"), at, c.to, nil, "ErrTruncated")
		add(name("header cut"), at, c.to, r.out.Messages[at].Message[:bodyAt-1], "ErrTruncated")
		if kind != 64 {
			add(name("cut"), at, c.to, change(at, cut), "ErrTruncated")
		}
		want := "ErrTrailing"
		if kind == 68 || kind == 73 { // lists of entries
			want = "ErrTruncated"
		}
		add(name("a byte more"), at, c.to, change(at, more), want)
		add(name("version"), at, c.to, change(at, put(0, wire.Version+1)), "ErrVersion")
		add(name("type"), at, c.to, change(at, put(1, 63)), "ErrType")
		add(name("session"), at, c.to, change(at, flip(2)), "ErrContext")
		want = "ErrPhase"
		if kind == 64 || c.to == "party 0" {
			want = "ErrReplay"
			add(name("round 0"), at, c.to, change(at, put(34, make([]byte, 8)...)), want)
		} else {
			add(name("another round"), at, c.to, change(at, flip(41)), want)
		}
		if c.to != "server" {
			add(name("sender"), at, c.to, change(at, flip(45)), "ErrSender")
		} else {
			add(name("sender unknown"), at, c.to, change(at, put(42, 0, 0, 1, 0)), "ErrSender")
			add(name("sender the server"), at, c.to, change(at, put(42, 255, 255, 255, 255)), "ErrSender")
		}
	}
	// Invite and keys.
	key := first(65, "")
	invited := r.out.Messages[0].Message
	add("invite to an open round", first(66, "")+1, "member 0", invited, "ErrReplay")
	add("invite to no round", key, "member 0", change(0, put(41, 0)), "ErrReplay")
	add("key of another member", key, "server", change(key, put(45, 1)), "ErrSignature")
	add("key changed", key, "server", change(key, flip(bodyAt)), "ErrSignature")
	add("key twice", key+1, "server", r.out.Messages[key].Message, "ErrDuplicate")
	add("key late", first(66, "")+1, "server", r.out.Messages[key].Message, "ErrPhase")
	add("key of small order", key, "server",
		append(s.header(typeKey, &s.digest, 1, memberSender), r.signedKey(t, 0)...), "ErrKey")

	// Opening.
	opening := first(66, "")
	set := bodyAt + 32
	add("opening before the invite", 0, "member 0", r.out.Messages[opening].Message, "ErrPhase")
	add("opening again", opening+1, "member 0", r.out.Messages[opening].Message, "ErrDuplicate")
	add("opening: bits beyond the committee", opening, "member 0",
		change(opening, func(b []byte) []byte { b[set] |= 1 << 7; return b }), "ErrEncoding")
	add("opening: a key changed", opening, "member 0", change(opening, flip(set+1)), "ErrSignature")
	add("opening: two keys exchanged", opening, "party 0", change(opening, r.exchangeKeys),
		"ErrSignature")
	few := func(b []byte) []byte { b[set] = 0b1111; return b[:set+1+4*s.keyBodySize()] }
	add("opening: too few keys", opening, "party 0", change(opening, few), "ErrTooFew")
	add("opening: another key, signed", opening, "member 0",
		change(opening, put(set+1, r.signedKey(t, 9)...)), "ErrOwnKey")
	add("opening: another broadcast", opening, "party 0", change(opening, flip(bodyAt)),
		"ErrBroadcast")
	add("opening: round answered before", opening+2, "party 0", r.out.Messages[opening].Message,
		"ErrReplay")

	// Submission.
	sub := first(67, "")
	high := func(b []byte) []byte {
		for i := range s.ModulusBits / 8 {
			b[bodyAt+i] = 255
		}
		b[bodyAt+s.ModulusBits/8] |= 1<<(s.ModulusBits%8) - 1
		return b
	}
	add("submission: a coefficient of 2^k − 1", sub, "server", change(sub, high), "ErrEncoding")
	add("submission: y changed", sub, "server", change(sub, flip(bodyAt)), "ErrSignature")
	add("submission: a leaf changed", sub, "server", change(sub, flip(bodyAt+s.packed)),
		"ErrSignature")
	add("submission: signature changed", sub, "server", change(sub, flip(-1)), "ErrSignature")
	add("submission of another party", sub, "server", change(sub, put(45, 1)), "ErrSignature")
	add("submission twice", sub+1, "server", r.out.Messages[sub].Message, "ErrDuplicate")
	add("submission before the opening", opening, "server", r.out.Messages[sub].Message, "ErrPhase")
	add("submission late", first(71, "")+1, "server", r.out.Messages[sub].Message, "ErrPhase")
	add("submission by a member", sub, "server", change(sub, put(42, 128)), "ErrType")
	if used := s.length * s.ModulusBits % 8; used != 0 {
		pad := func(b []byte) []byte { b[bodyAt+s.packed-1] |= 1 << used; return b }
		add("submission: padding", sub, "server", change(sub, pad), "ErrEncoding")
	}

	// Batch, disputes, settled.
	batch := first(68, "")
	entry := bodyAt + 4
	second := entry + s.entrySize()
	add("batch 2 first", batch, "member 0", change(batch, put(bodyAt+3, 2)), "ErrPhase")
	add("batch 0", batch, "member 0", change(batch, put(bodyAt+3, 0)), "ErrDuplicate")
	add("batch again", batch+1, "member 0", r.out.Messages[batch].Message, "ErrDuplicate")
	add("batch: a number of 2^31", batch, "member 0", change(batch, put(bodyAt, 128)), "ErrEncoding")
	add("batch: a party of 2^31", batch, "member 0", change(batch, put(entry, 128)), "ErrEncoding")
	add("batch: no entries", batch, "member 0", r.out.Messages[batch].Message[:entry], "ErrTruncated")
	add("batch: not ascending", batch, "member 0", change(batch, put(second, 0, 0, 0, 0)),
		"ErrEncoding")
	add("batch: beyond the roster", batch, "member 0",
		change(batch, put(len(r.out.Messages[batch].Message)-s.entrySize(), 0, 0, 0, 5)), "ErrEncoding")
	settled := first(70, "")
	repeated := change(batch, put(bodyAt+3, 2))
	add("batch: a party again", settled+1, "member 0", repeated, "ErrDuplicate")
	disputes := first(69, "")
	add("disputes of another batch", disputes, "server", change(disputes, put(bodyAt+3, 2)),
		"ErrPhase")
	add("disputes: bits beyond the batch", disputes, "server",
		change(disputes, func(b []byte) []byte { b[len(b)-1] |= 1 << 5; return b }), "ErrEncoding")
	add("disputes twice", disputes+1, "server", r.out.Messages[disputes].Message, "ErrDuplicate")
	add("disputes by a member without a key", disputes, "server", change(disputes, put(45, 6)),
		"ErrSender")
	add("settled before the batch", batch, "member 0", r.out.Messages[settled].Message, "ErrPhase")
	add("settled twice", settled+1, "member 0", r.out.Messages[settled].Message, "ErrPhase")
	add("settled: another batch", settled, "member 0", change(settled, put(bodyAt+3, 2)), "ErrPhase")
	add("settled: bits beyond the batch", settled, "member 0",
		change(settled, func(b []byte) []byte { b[len(b)-1] |= 1 << 5; return b }), "ErrEncoding")

	// Closing, signatures, certificate, parts.
	closing := first(71, "")
	add("closing with a batch open", batch+1, "member 0", r.out.Messages[closing].Message, "ErrPhase")
	add("closing: more batches", closing, "member 0", change(closing, put(bodyAt+3, 2)), "ErrPhase")
	add("closing: fewer batches", closing, "member 0", change(closing, put(bodyAt+3, 0)),
		"ErrStatement")
	add("closing: 2^31 batches", closing, "member 0", change(closing, put(bodyAt, 128)), "ErrEncoding")
	add("closing: 2^31 parties", closing, "member 0", change(closing, put(bodyAt+4, 128)),
		"ErrEncoding")
	add("closing: another count", closing, "member 0", change(closing, put(bodyAt+7, 3)),
		"ErrStatement")
	add("closing: another chain", closing, "member 0", change(closing, flip(bodyAt+8)), "ErrStatement")
	add("closing twice", closing+1, "member 0", r.out.Messages[closing].Message, "ErrPhase")
	signed := first(72, "")
	add("signed: changed", signed, "server", change(signed, flip(-1)), "ErrSignature")
	add("signed for another", signed, "server", change(signed, put(45, 1)), "ErrSignature")
	add("signed twice", signed+1, "server", r.out.Messages[signed].Message, "ErrDuplicate")
	certificate := first(73, "")
	one := 4 + 64
	fewer := func(b []byte) []byte { return b[:bodyAt+(s.Quorum-1)*one] }
	add("certificate: too few", certificate, "member 0", change(certificate, fewer), "ErrCertificate")
	add("certificate: one twice", certificate, "member 0", change(certificate, func(b []byte) []byte {
		return append(b[:bodyAt+one], b[bodyAt:]...)
	}), "ErrEncoding")
	add("certificate: a bad signature", certificate, "member 0", change(certificate, flip(-1)),
		"ErrCertificate")
	add("certificate: a member without a key", certificate, "member 0",
		change(certificate, put(bodyAt+5*one+3, 6)), "ErrCertificate")
	add("certificate: beyond the committee", certificate, "member 0",
		change(certificate, put(bodyAt+5*one+3, 7)), "ErrEncoding")
	add("certificate before the closing", closing, "member 0", r.out.Messages[certificate].Message,
		"ErrPhase")
	add("certificate twice", certificate+1, "member 0", r.out.Messages[certificate].Message,
		"ErrPhase")
	part := first(74, "member 1")
	add("part: a scalar of 2^256 − 1", part, "server",
		change(part, put(bodyAt, bytes.Repeat([]byte{255}, 32)...)), "ErrEncoding")
	add("part twice", part+1, "server", r.out.Messages[part].Message, "ErrDuplicate")
	add("part before the certificate", certificate, "server", r.out.Messages[part].Message, "ErrPhase")
	return out
}

// describe finds the message of the round that differs least.
func (v *vectorRefusal) describe(round []vectorMessage) {
	best := -1
	for i, m := range round {
		at := 0
		for at < min(len(m.Message), len(v.message)) && m.Message[at] == v.message[at] {
			at++
		}
		end := 0
		for end < min(len(m.Message), len(v.message))-at &&
			m.Message[len(m.Message)-1-end] == v.message[len(v.message)-1-end] {
			end++
		}
		if insert := v.message[at : len(v.message)-end]; best < 0 || len(insert) < best {
			best = len(insert)
			v.Of, v.At, v.Remove, v.Insert = i, at, len(m.Message)-end-at, insert
		}
	}
}

// TestOversized: nobody reads on in a message that is too long.
func TestOversized(t *testing.T) {
	w := newWorld(5, 7, vectorTerms(false))
	message := append(w.server.Invite(), make([]byte, w.config.MaxMessage())...)
	_, member := w.members[0].Receive(message)
	_, party := w.party(0).Submit(message, nil, nil)
	for _, err := range []error{member, party, w.server.Receive(message)} {
		if !errors.Is(err, ErrOversized) {
			t.Error(err)
		}
	}
}

// exchangeKeys puts the first two keys of an opening into each other's places.
func (r *recorded) exchangeKeys(b []byte) []byte {
	size := r.server.config.keyBodySize()
	at := bodyAt + 32 + 1
	first := slices.Clone(b[at : at+size])
	copy(b[at:], b[at+size:at+2*size])
	copy(b[at+size:], first)
	return b
}

// signedKey is a key of member 0 for round 1 that begins with the given byte, signed. At
// zero no secret comes of it.
func (r *recorded) signedKey(t *testing.T, first byte) []byte {
	s := must(r.config.settle())
	key := make([]byte, 32)
	key[0] = first
	signature, err := keyexchange.Sign(memberKey(0), labels.OneshotKey, s.keyStatement(1, 0, key))
	if err != nil {
		t.Fatal(err)
	}
	return append(key, signature[:]...)
}
