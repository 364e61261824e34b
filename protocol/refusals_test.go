package protocol

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// refusal is a message that its receiver must refuse, after the first messages of a
// recorded session (SPEC.md §14).
type refusal struct {
	Session string `json:"session"` // the file
	// of the session that were sent before, the lost ones among them
	Messages int      `json:"messages"`
	From     int      `json:"from"` // whom the transport has it from; -1 is the server
	To       int      `json:"to"`
	Message  hexBytes `json:"message"`
	Error    string   `json:"error"` // its name in package protocol
	Party    *int     `json:"party"` // that the error names, null for none
	About    string   `json:"about"`
}

// refusalErrors are the errors of messages, by name, as SPEC.md §11 has them.
var refusalErrors = map[string]error{
	"ErrTruncated": ErrTruncated, "ErrTrailing": ErrTrailing, "ErrOversized": ErrOversized,
	"ErrVersion": ErrVersion, "ErrType": ErrType,
	"ErrEncoding": ErrEncoding, "ErrSession": ErrSession, "ErrSender": ErrSender,
	"ErrDuplicate": ErrDuplicate,
	"ErrSignature": ErrSignature, "ErrPublicKey": ErrPublicKey,
	"ErrEncapsulationKey": ErrEncapsulationKey, "ErrOwnKey": ErrOwnKey,
	"ErrReplay": ErrReplay, "ErrStale": ErrStale, "ErrSkip": ErrSkip,
	"ErrParticipants": ErrParticipants, "ErrTooFew": ErrTooFew,
	"ErrMembers": ErrMembers, "ErrSurvivors": ErrSurvivors, "ErrCertificate": ErrCertificate,
	"ErrPhase": ErrPhase,
}

// refusalSessions are the recorded sessions that refusals begin with.
var refusalSessions = []string{"plain", "recovery", "sparse", "some"}

func readSession(t *testing.T, name string) *vectorSession {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	s := new(vectorSession)
	if err := json.Unmarshal(b, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *vectorSession) round(number uint64) *vectorRound {
	i := slices.IndexFunc(s.Rounds, func(r vectorRound) bool { return r.Round == number })
	return &s.Rounds[i]
}

func headerOf(t *testing.T, message []byte) (wire.Header, []byte) {
	t.Helper()
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		t.Fatal(err)
	}
	return h, body
}

// clientAfter makes a party as it is after the first messages of a session.
func (s *vectorSession) clientAfter(t *testing.T, party, messages int) *Client {
	t.Helper()
	c, err := NewClient(s.Config, ed25519.NewKeyFromSeed(s.Parties[party].Identity),
		&stream{seed: [32]byte(s.Parties[party].Random)})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Messages[:messages] {
		h, _ := headerOf(t, m.Message)
		switch {
		case m.To == party && !m.Lost:
			_, err = c.Receive(m.Message)
		case m.From == party && h.Type == wire.TypeMasked:
			round := s.round(h.Round)
			at := slices.IndexFunc(round.Inputs, func(in vectorInput) bool { return in.Party == party })
			var values [][]uint64
			for _, segment := range round.Inputs[at].Input {
				var xs []uint64
				for _, digits := range segment {
					x, _ := strconv.ParseUint(digits, 10, 64)
					xs = append(xs, x)
				}
				values = append(values, xs)
			}
			_, err = c.Submit(round.Broadcast, values...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// serverAfter makes the server as it is after the first messages of a session.
func (s *vectorSession) serverAfter(t *testing.T, messages int) *Server {
	t.Helper()
	server, err := NewServer(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	var last [2]uint64 // type and round of the server's last messages
	for _, m := range s.Messages[:messages] {
		h, body := headerOf(t, m.Message)
		this := [2]uint64{uint64(h.Type), h.Round}
		switch {
		case m.From >= 0 && !m.Lost:
			err = server.Receive(m.From, m.Message)
		case m.From < 0 && this != last:
			last = this
			err = s.serverStep(server, h, body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return server
}

// serverStep has the server make the messages of a kind.
func (s *vectorSession) serverStep(server *Server, h wire.Header, body []byte) (err error) {
	if (h.Type == wire.TypeBegin || h.Type == wire.TypeInvite) && server.open != nil {
		if _, err := server.Sum(); err != nil {
			return err
		}
	}
	switch h.Type {
	case wire.TypeKeys:
		_, err = server.Keys()
	case wire.TypeMembers:
		_, err = server.Members()
	case wire.TypeBegin:
		_, err = server.Begin(s.round(h.Round).Broadcast)
	case wire.TypeInvite:
		if h.Round == server.Round() {
			_, err = server.Invite()
			break
		}
		holders, parseErr := wire.ParseSet(body, server.config.parties)
		if parseErr != nil {
			return parseErr
		}
		_, err = server.Gather(slices.Collect(holders.All()))
	case wire.TypeSurvivors:
		_, err = server.Survivors()
	case wire.TypeCertificate:
		_, err = server.Certificate()
	}
	return err
}

// give delivers a message after a prefix of a session, and returns what the receiver
// says. A refusal must change nothing.
func (p *replayed) give(t *testing.T, r *refusal) error {
	t.Helper()
	if at := fmt.Sprint(r.Session, r.Messages, r.To); p.at != at {
		p.at, p.server, p.client = at, nil, nil
		if r.To < 0 {
			p.server = p.sessions[r.Session].serverAfter(t, r.Messages)
			p.state = snapshot(p.server)
		} else {
			p.client = p.sessions[r.Session].clientAfter(t, r.To, r.Messages)
			p.state = snapshot(p.client)
		}
	}
	var err error
	var after string
	if r.To < 0 {
		err = p.server.Receive(r.From, r.Message)
		after = snapshot(p.server)
	} else {
		_, err = p.client.Receive(r.Message)
		after = snapshot(p.client)
	}
	if err != nil && after != p.state {
		t.Errorf("%s, %s: the state changed", r.Session, r.About)
	}
	if err == nil {
		p.at = "" // it is not what it was
	}
	return err
}

// replayed is a receiver after the first messages of a session. What it refuses leaves
// it as it was, so that it serves for the next message too.
type replayed struct {
	sessions map[string]*vectorSession
	at       string // whose it is
	client   *Client
	server   *Server
	state    string
}

func newReplayed(t *testing.T) *replayed {
	p := &replayed{sessions: make(map[string]*vectorSession)}
	for _, name := range refusalSessions {
		p.sessions[name+".json"] = readSession(t, name)
	}
	return p
}

// nameOf returns the name of an error and the party that it names, -1 for none.
func nameOf(err error) (name string, party int) {
	for _, name := range slices.Sorted(maps.Keys(refusalErrors)) {
		if errors.Is(err, refusalErrors[name]) {
			party := -1
			var p *PartyError
			if errors.As(err, &p) {
				party = p.Party
			}
			return name, party
		}
	}
	return "", -1
}

// Every refusal of testdata/refusals.json is refused with its error, and changes
// nothing. With -update the file is made anew: see makeRefusals.
func TestRefusals(t *testing.T) {
	path := filepath.Join("testdata", "refusals.json")
	if *update {
		b, err := json.MarshalIndent(makeRefusals(t), "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var refusals []refusal
	if err := json.Unmarshal(b, &refusals); err != nil {
		t.Fatal(err)
	}
	receivers := newReplayed(t)
	sides := map[bool]map[string]bool{true: {}, false: {}} // by whether it is the server
	for i := range refusals {
		r := &refusals[i]
		name, party := nameOf(receivers.give(t, r))
		want := -1
		if r.Party != nil {
			want = *r.Party
		}
		if name != r.Error || party != want {
			t.Errorf("%s after %d messages, %s: got %s (party %d), want %s (party %d)", r.Session,
				r.Messages, r.About, name, party, r.Error, want)
		}
		sides[r.To < 0][name] = true
	}
	for server, missing := range map[bool]string{
		true:  "ErrReplay ErrSkip ErrOwnKey ErrSurvivors ErrCertificate ErrTooFew",
		false: "ErrDuplicate",
	} {
		for name := range refusalErrors {
			if never := slices.Contains(strings.Fields(missing), name); sides[server][name] == never {
				t.Errorf("server %v: %s is there: %v", server, name, !never)
			}
		}
	}
	t.Logf("%d refusals", len(refusals))
}

// makeRefusals spoils every message of the recorded sessions in every way that it
// knows, and keeps one of each kind: receiver, type, what it was, error.
func makeRefusals(t *testing.T) []refusal {
	var out []refusal
	seen := make(map[string]bool)
	receivers := newReplayed(t)
	for _, name := range refusalSessions {
		s := receivers.sessions[name+".json"]
		for k, m := range s.Messages {
			if m.Lost {
				continue
			}
			for _, spoilt := range s.spoil(t, k) {
				h := wire.Type(0)
				if len(spoilt.message) > 1 {
					h = wire.Type(spoilt.message[1])
				}
				// What is tried is enough to tell kinds apart before it is delivered.
				kind := fmt.Sprint(name, m.To < 0, m.Type, h, spoilt.about)
				if seen[kind] {
					continue
				}
				seen[kind] = true
				from := m.From
				if spoilt.from != nil {
					from = *spoilt.from
				}
				r := refusal{Session: name + ".json", Messages: k, From: from, To: m.To,
					Message: spoilt.message,
					About:   m.Type + ": " + spoilt.about}
				err := receivers.give(t, &r)
				if err == nil {
					continue // what may be so, such as another ciphertext in a Masked
				}
				var party int
				if r.Error, party = nameOf(err); r.Error == "" {
					t.Fatalf("%s: an error without a name: %v", r.About, err)
				}
				if party >= 0 {
					r.Party = &party
				}
				result := fmt.Sprint(r.To < 0, m.Type, r.Error, r.Party != nil, spoilt.about)
				if general := []string{"empty", "the version alone", "version 2", "cut in the header",
					"longer than any", "another session",
					"another sender"}; slices.Contains(general, spoilt.about) {
					result = fmt.Sprint(r.To < 0, r.Error, spoilt.about) // whatever the type
				} else if before, _, found := strings.Cut(spoilt.about, ","); found {
					result = fmt.Sprint(r.To < 0, m.Type, r.Error, before)
				} else if strings.HasPrefix(spoilt.about, "as type") {
					result = fmt.Sprint(r.To < 0, r.Error, spoilt.about)
				}
				if !seen[result] {
					seen[result] = true
					out = append(out, r)
				}
			}
		}
	}
	return out
}

type spoiltMessage struct {
	about   string
	message []byte
	from    *int
}

// spoil returns what can be made of message k.
func (s *vectorSession) spoil(t *testing.T, k int) []spoiltMessage {
	m := s.Messages[k]
	h, body := headerOf(t, m.Message)
	var out []spoiltMessage
	add := func(about string,
		message []byte) {
		out = append(out, spoiltMessage{about: about, message: message})
	}
	header := func(change func(h *wire.Header)) []byte {
		changed := h
		change(&changed)
		return append(changed.Append(nil), body...)
	}
	with := func(body []byte) []byte { return append(h.Append(nil), body...) }
	flipped := func(at int) []byte {
		b := bytes.Clone(body)
		b[at] ^= 1
		return with(b)
	}
	add("empty", nil)
	add("the version alone", []byte{wire.Version})
	add("version 2", append([]byte{2}, m.Message[1:]...))
	add("cut in the header", m.Message[:45])
	add("longer than any", make([]byte, s.Config.MaxMessage()+1))
	add("a byte too few", m.Message[:len(m.Message)-1])
	add("a byte too many", append(bytes.Clone(m.Message), 0))
	add("no body", m.Message[:wire.HeaderSize])
	add("another session", header(func(h *wire.Header) { h.Session[0] ^= 1 }))
	add("a round later", header(func(h *wire.Header) { h.Round++ }))
	add("a round earlier", header(func(h *wire.Header) { h.Round-- }))
	add("far ahead", header(func(h *wire.Header) { h.Round = 1 << 60 }))
	for kind := wire.Type(0); kind <= 13; kind++ {
		add(fmt.Sprintf("as type %d", kind), header(func(h *wire.Header) { h.Type = kind }))
	}
	add("another sender", header(func(h *wire.Header) { h.Sender = h.Sender&1 ^ 1 }))
	if m.From >= 0 {
		other := (m.From + 1) % len(s.Parties)
		out = append(out, spoiltMessage{about: "from another", message: m.Message, from: &other})
		sent := header(func(h *wire.Header) { h.Sender = uint32(other) })
		out = append(out, spoiltMessage{about: fmt.Sprintf("of party %d, from it", other), message: sent,
			from: &other})
		nobody := len(s.Parties)
		out = append(out, spoiltMessage{about: "from nobody", message: m.Message, from: &nobody})
	}
	// Earlier messages of the session, again or late.
	for j := range k {
		e := s.Messages[j]
		if e.To == m.To && e.From == m.From {
			again := "again"
			if e.Lost {
				again = "late"
			}
			kind, _ := headerOf(t, e.Message)
			add(fmt.Sprintf("an earlier %s, %s, %d", kind.Type, again, min(h.Round-kind.Round, 2)),
				e.Message)
		}
	}
	switch h.Type {
	case wire.TypeAnnounce:
		add("a key of low order", with(append(make([]byte, 32), body[32:]...)))
		add("another signature", flipped(len(body)-1))
		if !s.Config.Classical {
			b := bytes.Clone(body)
			b[32], b[33] = 0xff, 0xff // a coefficient of 4095
			add("a coefficient that is not reduced", with(b))
		}
	case wire.TypeKeys:
		s.spoilKeys(m.To, h, body, add)
	case wire.TypeEncapsulate:
		add("another signature", flipped(len(body)-1))
		if len(body) > 64 {
			add("another ciphertext", flipped(0))
		}
	case wire.TypeMembers:
		s.spoilSet(m.To, body, 0, with, add)
		if size := (len(s.Parties) + 7) / 8; len(body) > size {
			add("another ciphertext", flipped(size))
			add("another signature", flipped(len(body)-1))
		}
	case wire.TypeBegin:
		s.spoilSet(m.To, body, 32, with, add)
	case wire.TypeSurvivors, wire.TypeInvite:
		s.spoilSet(m.To, body, 0, with, add)
	case wire.TypeMasked:
		add("bits of the padding", flippedPadding(s, with, body))
		if s.Config.Recovery != nil {
			b := bytes.Clone(body)
			at := len(b) - wire.UploadSize(s.uploadNeighbours()) + 7
			if at > 0 && at < len(b) {
				b[at] ^= 64
				add("material for another round", with(b))
			}
		}
	case wire.TypeUpload:
		add("material for another round", flipped(7))
	case wire.TypeSigned:
		add("another signature", flipped(0))
	case wire.TypeCertificate:
		s.spoilCertificate(t, body, with, add)
	case wire.TypeReveal:
		if len(body) >= 72 {
			add("an owner twice", with(append(bytes.Clone(body[:36]), body[:36]...)))
			b := bytes.Clone(body)
			for i := 4; i < 36; i++ {
				b[i] = 0xff
			}
			add("no scalar", with(b))
			own := bytes.Clone(body[:36])
			binary.BigEndian.PutUint32(own, uint32(m.From))
			add("a share of itself", with(own))
			binary.BigEndian.PutUint32(own, uint32(len(s.Parties)))
			add("an owner beyond the roster", with(own))
			add("too many", with(bytes.Repeat(body[:36], len(s.Parties)+1)))
		}
	}
	return out
}

// uploadNeighbours guesses how many neighbours the material at the end of a Masked is
// for: all of a complete graph, or the degree.
func (s *vectorSession) uploadNeighbours() int {
	if d := s.Config.Recovery.Degree; d != 0 {
		return d
	}
	return len(s.Members) - 1
}

func flippedPadding(s *vectorSession, with func([]byte) []byte, body []byte) []byte {
	b := bytes.Clone(body)
	b[s.Config.Layout.PackedSize()-1] |= 0x80
	return with(b)
}

// spoilSet changes the set at an offset of a body, and the shares behind it so that
// their number can be right.
func (s *vectorSession) spoilSet(
	self int, body []byte, at int, with func([]byte) []byte, add func(string, []byte),
) {
	n := len(s.Parties)
	size := (n + 7) / 8
	change := func(set func(wire.Set), shares int) []byte {
		b := bytes.Clone(body)
		parsed, err := wire.ParseSet(b[at:at+size], n)
		if err != nil {
			return nil
		}
		set(parsed)
		copy(b[at:], parsed.Bytes())
		rest := len(b) - at - size + shares*wire.SealedShareSize
		if rest < 0 {
			return nil
		}
		out := make([]byte, at+size+rest)
		copy(out, b[:min(len(b), len(out))])
		return with(out)
	}
	beyond := bytes.Clone(body)
	beyond[at+size-1] |= 0x80
	if n%8 != 0 {
		add("a party beyond the roster", with(beyond))
	}
	add("cut in the set", with(body[:at+size-1]))
	for _, shares := range []int{-3, -2, -1, 0, 1} {
		about := fmt.Sprintf(", %+d shares", shares)
		add("without the receiver"+about, change(func(set wire.Set) { set.Remove(self) }, shares))
		other := (self + 1) % n
		add("without another"+about, change(func(set wire.Set) { set.Remove(other) }, shares))
		add("of two"+about, change(func(set wire.Set) {
			for i := range n {
				if i != self && i != other {
					set.Remove(i)
				}
			}
		}, shares))
		add("of everybody"+about, change(func(set wire.Set) {
			for i := range n {
				set.Add(i)
			}
		}, shares))
	}
}

// spoilKeys changes what Keys says, with the signatures of the parties' own
// identities where that is needed to get further.
func (s *vectorSession) spoilKeys(self int, h wire.Header, body []byte, add func(string, []byte)) {
	hybrid := !s.Config.Classical
	n := len(s.Parties)
	parse := func() *wire.Keys {
		keys, err := wire.ParseKeys(bytes.Clone(body), n, hybrid, func(k *wire.Keys) (int, error) {
			if !hybrid {
				return 0, nil
			}
			rest := len(body) - (n+7)/8 - k.Announced.Len()*wire.KeyEntrySize(true)
			return rest / wire.EncapsulationKeySize, nil
		})
		if err != nil {
			panic(err)
		}
		return keys
	}
	present := slices.Collect(parse().Announced.All())
	own := slices.Index(present, self)
	other := (own + 1) % len(present)
	change := func(about string, f func(k *wire.Keys)) {
		keys := parse()
		f(keys)
		add(about, keys.Append(h.Append(nil)))
	}
	sign := func(k *wire.Keys, at int) {
		e := &k.Entries[at]
		var digest *[32]byte
		if hybrid {
			digest = &e.Digest
		}
		party := present[at]
		e.Signature, _ = keyexchange.SignKey(ed25519.NewKeyFromSeed(s.Parties[party].Identity), h.Session,
			party, keyexchange.PublicKey(e.Key), digest)
	}
	change("another own key", func(k *wire.Keys) { k.Entries[own].Key[0] ^= 1 })
	change("another key", func(k *wire.Keys) { k.Entries[other].Key[0] ^= 1 })
	change("another signature", func(k *wire.Keys) { k.Entries[other].Signature[0] ^= 1 })
	change("a key of low order, signed",
		func(k *wire.Keys) { k.Entries[other].Key = [32]byte{}; sign(k, other) })
	change("a key that is not canonical, signed",
		func(k *wire.Keys) { k.Entries[other].Key[31] |= 0x80; sign(k, other) })
	change("without the receiver",
		func(k *wire.Keys) { k.Announced.Remove(self); k.Entries = slices.Delete(k.Entries, own, own+1) })
	change("of two", func(k *wire.Keys) {
		k.Announced = wire.SetOf(n, []int{self, present[other]})
		k.Entries = []wire.KeyEntry{k.Entries[min(own, other)], k.Entries[max(own, other)]}
	})
	change("cut in the entries",
		func(k *wire.Keys) { k.Entries, k.Encapsulation = k.Entries[:1], nil })
	if hybrid && len(parse().Encapsulation) > 0 {
		change("another encapsulation key", func(k *wire.Keys) { k.Encapsulation[0][9] ^= 1 })
		higher := slices.IndexFunc(present, func(i int) bool { return i > self })
		change("a coefficient that is not reduced, signed", func(k *wire.Keys) {
			k.Encapsulation[0][0], k.Encapsulation[0][1] = 0xff, 0xff
			k.Entries[higher].Digest = keyexchange.EncapsulationDigest(k.Encapsulation[0])
			sign(k, higher)
		})
	}
}

func (s *vectorSession) spoilCertificate(
	t *testing.T, body []byte, with func([]byte) []byte, add func(string, []byte),
) {
	n := len(s.Parties)
	change := func(about string, f func(c wire.Certificate) wire.Certificate) {
		c, err := wire.ParseCertificate(bytes.Clone(body), n)
		if err != nil {
			t.Fatal(err)
		}
		add(about, with(f(c).Append(nil)))
	}
	change("one signature less", func(c wire.Certificate) wire.Certificate { return c[1:] })
	change("none", func(c wire.Certificate) wire.Certificate { return nil })
	change("a signature twice",
		func(c wire.Certificate) wire.Certificate { return append(c[:1:1], c...) })
	change("another signature",
		func(c wire.Certificate) wire.Certificate { c[0].Signature[0] ^= 1; return c })
	change("a party beyond the roster",
		func(c wire.Certificate) wire.Certificate { c[len(c)-1].Party = n; return c })
	change("more than all", func(c wire.Certificate) wire.Certificate { return slices.Repeat(c, n) })
	for i := range n {
		change(fmt.Sprintf("the last of party %d", i), func(c wire.Certificate) wire.Certificate {
			if i <= c[len(c)-2].Party {
				return nil
			}
			c[len(c)-1].Party = i
			return c
		})
	}
}
