package door_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/internal/openapi"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/signature"
)

// site is a door with one federation, which this process leads.
type site struct {
	*door.Door
	server     *httptest.Server
	fed        *federation.Federation
	roster     []byte
	mutex      sync.Mutex // of run, which may be another
	run        *runner.Runner
	committee  []byte
	identities []ed25519.PrivateKey
	stranger   ed25519.PrivateKey
}

func (s *site) Find(id string) (door.Known, bool) {
	if id != s.fed.ID {
		return door.Known{}, false
	}
	return s.Entries()[0], true
}

func (s *site) Archive() []exchange.Listed { return nil }

func (s *site) Entries() []door.Known {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return []door.Known{{Federation: s.fed, Runner: s.run,
		Files: federation.Files{Roster: s.roster, Committee: s.committee}}}
}

const declared = `name = "doors"
rounds = 3
parties = { roster = "r", drop_out = 0.2 }
privacy.clip = 1.0
time.step_time = "10m"
[[model.tensor]]
name = "w"
shape = [16]
`

func newSite(t testing.TB, o door.Options) *site {
	t.Helper()
	return newSiteOf(t, o, declared, 5, 0)
}

// newSiteWith is a site with a committee.
func newSiteWith(t testing.TB, o door.Options, declared string, committee []byte) *site {
	t.Helper()
	return newSiteFrom(t, o, federation.Files{Text: []byte(declared), Committee: committee}, 5, 0)
}

// newSiteOf is a site of this many parties, whose runner has this much room for messages.
func newSiteOf(t testing.TB, o door.Options, declared string, parties int, outRoom int64) *site {
	t.Helper()
	return newSiteFrom(t, o, federation.Files{Text: []byte(declared)}, parties, outRoom)
}

func newSiteFrom(
	t testing.TB, o door.Options, files federation.Files, parties int, outRoom int64,
) *site {
	t.Helper()
	s := &site{}
	var members []keyexchange.Entry
	for i := range parties + 1 {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == parties {
			s.stranger = key
			break
		}
		s.identities = append(s.identities, key)
		members = append(members, keyexchange.Entry{
			Name: fmt.Sprint("p", i),
			Key:  key.Public().(ed25519.PublicKey),
		})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	if s.roster, err = roster.MarshalText(); err != nil {
		t.Fatal(err)
	}
	files.Roster, s.committee = s.roster, files.Committee
	if s.fed, err = federation.New(files); err != nil {
		t.Fatal(err)
	}
	s.lead(t, outRoom)
	o.Federations = s
	s.Door = door.New(o)
	s.server = httptest.NewServer(s.Door)
	t.Cleanup(s.server.Close)
	return s
}

// lead has a runner lead that has nothing recorded.
func (s *site) lead(t testing.TB, outRoom int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	embedded, err := record.StartEmbedded(ctx, record.EmbeddedOptions{Folder: t.TempDir(), Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	records, err := record.Open(ctx, embedded.JS, 1, record.NewKeys(*key))
	if err != nil {
		t.Fatal(err)
	}
	d := record.Definition{ID: s.fed.ID, Text: s.fed.Text}
	if err := records.Create(ctx, d, nil, nil); err != nil {
		t.Fatal(err)
	}
	if s.fed.Key, err = records.Public(ctx, s.fed.ID); err != nil {
		t.Fatal(err)
	}
	hold, err := records.Claim(ctx, s.fed.ID, "n")
	if err != nil {
		t.Fatal(err)
	}
	run, err := runner.Start(ctx, runner.Options{
		Federation: s.fed,
		Records:    records,
		Hold:       hold,
		Node:       "n",
		Keys:       record.NewKeys(*key),
		OutRoom:    outRoom,
		Log:        slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		_ = run.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		group.Wait()
		embedded.Close()
	})
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.run = run
}

// request is one that is signed by a party, unless it is changed.
func (s *site) request(t testing.TB, method, path string, body []byte, who ed25519.PrivateKey,
) *http.Request {
	t.Helper()
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequest(method, s.server.URL+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	if who != nil {
		if err := signature.Sign(r, body, who, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// send returns the status and the kind of problem.
func send(t testing.TB, r *http.Request) (status int, kind, body string) {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var p exchange.Problem
	if answer.StatusCode >= 400 {
		if got := answer.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s %s: a refusal of type %q", r.Method, r.URL.Path, got)
		}
		if err := json.Unmarshal(b, &p); err != nil || p.Status != answer.StatusCode || p.Title == "" {
			t.Errorf("%s %s: no problem details: %s", r.Method, r.URL.Path, b)
		}
	}
	return answer.StatusCode, strings.TrimPrefix(p.Type, exchange.ProblemPrefix), string(b)
}

// Every refusal has its status and kind, and changes nothing.
func TestRefusals(t *testing.T) {
	s := newSite(t, door.Options{})
	f := "/v1/federations/" + s.fed.ID
	me := s.identities[0]
	long := bytes.Repeat([]byte{1}, 1<<20)
	signedAt := func(at time.Time) *http.Request {
		r := s.request(t, "GET", f, nil, nil)
		if err := signature.Sign(r, nil, me, at); err != nil {
			t.Fatal(err)
		}
		return r
	}
	change := func(r *http.Request, change func(r *http.Request)) *http.Request {
		change(r)
		return r
	}
	matching := func(r *http.Request, tag string) *http.Request {
		r.Header.Set("If-Match", tag)
		if err := signature.Sign(r, nil, me, time.Now()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	get := func(path string) *http.Request { return s.request(t, "GET", path, nil, me) }
	post := func(body []byte) *http.Request { return s.request(t, "POST", f+"/messages", body, me) }
	// Until somebody asks, nothing is due.
	if status, kind, _ := send(t, post([]byte("x"))); status != 409 || kind != "due" {
		t.Errorf("before anything is due: %d %s", status, kind)
	}
	s.gather(t)
	// An identifier that could be one is not called malformed.
	for id, want := range map[string]string{
		strings.Repeat("0", 64): "this server does not have it",
		strings.Repeat("0", 63): "an identifier is 64 hexadecimal digits",
	} {
		if _, _, body := send(t, get("/v1/federations/"+id)); !strings.Contains(body, want) {
			t.Errorf("%s: %s", id, body)
		}
	}
	cases := []struct {
		name   string
		r      *http.Request
		status int
		kind   string
	}{
		{"no such resource", get("/v1/nothing"), 404, "route"},
		{"another method", s.request(t, "DELETE", f, nil, me), 405, "method"},
		{"no such federation", get("/v1/federations/" + strings.Repeat("0", 64)), 404, "unknown"},
		{"path tricks", get("/v1/federations/..%2f..%2fetc/next"), 404, "unknown"},
		{"unsigned", s.request(t, "GET", f, nil, nil), 401, "unsigned"},
		{"a stranger", s.request(t, "GET", f, nil, s.stranger), 403, "stranger"},
		{"old", signedAt(time.Now().Add(-time.Hour)), 401, "clock"},
		{"an hour early", signedAt(time.Now().Add(time.Hour)), 401, "clock"},
		{"signed for another path", change(get(f), func(r *http.Request) {
			r.URL.Path += "/roster"
		}), 401, "signature"},
		{"signed for another query", change(get(f+"/next?least=1"), func(r *http.Request) {
			r.URL.RawQuery = "least=2"
		}), 401, "signature"},
		{"signed for another method", change(get(f), func(r *http.Request) {
			r.Method = "POST"
			r.URL.Path += "/messages"
		}), 401, "signature"},
		{"another's key", change(get(f), func(r *http.Request) {
			other := fmt.Sprintf("%x", []byte(s.identities[1].Public().(ed25519.PublicKey)))
			mine := fmt.Sprintf("%x", []byte(me.Public().(ed25519.PublicKey)))
			h := r.Header.Get("Signature-Input")
			r.Header.Set("Signature-Input", strings.Replace(h, mine, other, 1))
		}), 401, "signature"},
		{"another algorithm", change(get(f), func(r *http.Request) {
			h := r.Header.Get("Signature-Input")
			r.Header.Set("Signature-Input", strings.Replace(h, "ed25519", "rsa-v1_5-sha256", 1))
		}), 401, "unsigned"},
		{"two signatures", change(get(f), func(r *http.Request) {
			r.Header.Add("Signature", r.Header.Get("Signature"))
		}), 401, "unsigned"},
		{"garbage for a signature", change(get(f), func(r *http.Request) {
			r.Header.Set("Signature-Input", "sig1=?%%%")
		}), 401, "unsigned"},
		{"an unknown parameter", get(f + "/next?what=1"), 400, "query"},
		{"a number that is none", get(f + "/next?least=-1"), 400, "query"},
		{"a parameter twice", get(f + "/next?least=1&least=1"), 400, "query"},
		{"more seen than there can be", get(f + "/next?seen=a,b,c,d,e"), 400, "query"},
		{"a wait below 0", get(f + "/next?wait=-1"), 400, "query"},
		{"a wait that is not a number", get(f + "/next?wait=NaN"), 400, "query"},
		{"more sessions than there can be", get(f + "/next?sessions=1,2,3,4,5"), 400, "query"},
		{"a wait without end", get(f + "/next?wait=1e9"), 400, "query"},
		{"a least number that is not decimal", get(f + "/next?least=a"), 400, "query"},
		{"a long query", get(f + "/next?seen=" + strings.Repeat("a", 2000)), 400, "query"},
		{"a round that is none", get(f + "/rounds/01/model"), 400, "query"},
		{"a round that is not now", get(f + "/rounds/7/model"), 409, "due"},
		{"a range that is not there", change(get(f+"/model"), func(r *http.Request) {
			r.Header.Set("Range", "bytes=99999-")
		}), 416, "range"},
		{"another model than the one that is there", matching(get(f+"/model"), `"00"`), 412, "match"},
		{"a first model that is not there", get(f + "/initial"), 404, "route"},
		{"no length", change(post([]byte("abc")), func(r *http.Request) { r.ContentLength = -1 }), 411,
			"length"},
		{"a body that is too long", post(long), 413, "oversized"},
		{"another body than was signed", change(post([]byte("abc")), func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("abd"))
		}), 400, "digest"},
		{"a body without a digest", change(post([]byte("abc")), func(r *http.Request) {
			r.Header.Del("Content-Digest")
		}), 401, "unsigned"},
		{"a body that is no message", post([]byte("abc")), 422, "message"},
		{"a piece that says too little", s.request(t, "POST", f+"/messages?offset=0", []byte("a"), me),
			400, "query"},
		{"a piece that says too much", s.piece(t, long, 0, 3, me, "&what=1"), 400, "query"},
		{"a piece of no digest", change(s.piece(t, long, 0, 3, me, ""), func(r *http.Request) {
			r.URL.RawQuery = "upload=ab&length=9&offset=0"
			if err := signature.Sign(r, []byte("abc"), me, time.Now()); err != nil {
				t.Fatal(err)
			}
		}), 400, "query"},
		{"a piece beyond the end", s.request(t, "POST", f+"/messages?upload="+strings.Repeat("0", 64)+
			"&length=2&offset=0", []byte("abc"), me), 400, "query"},
		{"a piece of a message that is too long", s.piece(t, long, 0, 3, me, ""), 413, "oversized"},
		{"a piece that nothing goes before", s.piece(t, long[:9], 3, 6, me, ""), 409, "offset"},
	}
	document := openapi.Read(t, door.OpenAPI())
	for _, c := range cases {
		status, kind, body := send(t, c.r)
		if status != c.status || kind != c.kind {
			t.Errorf("%s: %d %s, want %d %s: %s", c.name, status, kind, c.status, c.kind, body)
		}
		document.Allows(t, c.r, status, kind)
	}
	after, err := s.run.Status(context.Background())
	if err != nil || after.BytesIn != 0 || after.Round != 0 {
		t.Errorf("refusals changed something: %+v %v", after, err)
	}
}

// One address has its rate, and a refusal says when to come again.
func TestRate(t *testing.T) {
	now := time.Now()
	s := newSite(t, door.Options{PerSecond: 2, Now: func() time.Time { return now }})
	refused := 0
	for range 30 {
		answer, err := http.Get(s.server.URL + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusTooManyRequests {
			refused++
			if answer.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
	}
	if refused != 10 { // a burst of 20 is allowed
		t.Errorf("%d of 30 refused, want 10", refused)
	}
}

// An address beyond those that are remembered is refused, and has the others looked through
// once a second at most; after a minute of silence they are forgotten.
func TestManyAddresses(t *testing.T) {
	now := time.Now()
	d := door.New(door.Options{PerSecond: 1, Now: func() time.Time { return now }})
	ask := func(k int) int {
		r := httptest.NewRequest("GET", "/healthz", nil)
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", k>>16, k>>8&255, k&255)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w.Code
	}
	for k := range door.Addresses {
		if got := ask(k); got != 200 {
			t.Fatalf("address %d: %d", k, got)
		}
	}
	first := now
	for k := range 3 {
		if got := ask(door.Addresses + k); got != 429 || !door.Swept(d).Equal(first) {
			t.Errorf("one more: %d, looked through at %v", got, door.Swept(d))
		}
		now = now.Add(300 * time.Millisecond)
	}
	if now = first.Add(2 * time.Minute); ask(door.Addresses) != 200 {
		t.Error("after a minute the others are not forgotten")
	}
}

// Whoever has an IPv6 address has its network's other addresses, and one of IPv4 is the same
// however it is written: neither gets more by them. A zone is not part of an address.
func TestAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:443":                   "192.0.2.1",
		"192.0.2.1":                       "192.0.2.1",
		"[::ffff:192.0.2.1]:443":          "192.0.2.1",
		"[::ffff:127.0.0.1]:443":          "127.0.0.1",
		"[2001:db8:1:2:3:4:5:6]:443":      "2001:db8:1:2::",
		"[2001:db8:1:2:ffff:ffff:ff::]:1": "2001:db8:1:2::",
		"[2001:db8:1:3::1]:443":           "2001:db8:1:3::",
		"[fe80::1%eth0]:443":              "fe80::",
		"[::1]:443":                       "::1",
		"::1":                             "::1",
	} {
		if got, ok := door.Address(remote); !ok || got.String() != want {
			t.Errorf("%s: %v %v, want %s", remote, got, ok, want)
		}
	}
	for _, remote := range []string{"", "@", "host:1", "192.0.2:1"} {
		if got, ok := door.Address(remote); ok || got.IsValid() {
			t.Errorf("%q is %v", remote, got)
		}
	}
}

// A question that may be a copy of one that another server was asked is refused, with the number
// that the next has to be above.
func TestCopiedQuestion(t *testing.T) {
	began := time.Now().UnixNano()
	s := newSite(t, door.Options{})
	up := time.Now().UnixNano()
	path := "/v1/federations/" + s.fed.ID + "/next?wait=20&number=1"
	answer, err := http.DefaultClient.Do(s.request(t, "GET", path, nil, s.identities[0]))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	last, err := strconv.ParseInt(answer.Header.Get(exchange.HeaderNumber), 10, 64)
	if answer.StatusCode != 409 || err != nil || last < began || last > up {
		t.Errorf("%d, last %d: %v", answer.StatusCode, last, err)
	}
}

// A party that does not wait is told what is next all the same.
func TestWithoutWaiting(t *testing.T) {
	s := newSite(t, door.Options{})
	s.gather(t)
	for range 20 {
		path := "/v1/federations/" + s.fed.ID + "/next?wait=0"
		if status, _, text := send(t, s.request(t, "GET", path, nil, s.identities[0])); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
	}
}

// Strangers of one IPv6 network, and one that writes its IPv4 address in two ways, share a rate.
func TestRateOfNetwork(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		other string
		want  int
	}{
		{"[2001:db8:1:2:3:4:5:6]:1", 429},
		{"[2001:db8:1:3::1]:1", 200},
		{"192.0.2.1:1", 429},
		{"192.0.2.2:1", 200},
	} {
		d := door.New(door.Options{PerSecond: 1, Now: func() time.Time { return now }})
		ask := func(from string) int {
			r := httptest.NewRequest("GET", "/healthz", nil)
			r.RemoteAddr = from
			w := httptest.NewRecorder()
			d.ServeHTTP(w, r)
			return w.Code
		}
		for range 10 {
			for _, from := range []string{"[2001:db8:1:2::1]:1", "[::ffff:192.0.2.1]:1"} {
				if got := ask(from); got != 200 {
					t.Fatalf("%s: %d", from, got)
				}
			}
		}
		if got := ask(c.other); got != c.want {
			t.Errorf("%s: %d, want %d", c.other, got, c.want)
		}
	}
}

// gather has all parties there, so that a session forms.
func (s *site) gather(t testing.TB) {
	t.Helper()
	for _, who := range s.identities {
		r := s.request(t, "GET", "/v1/federations/"+s.fed.ID+"/next?wait=20", nil, who)
		go func() {
			answer, err := http.DefaultClient.Do(r)
			if err == nil {
				_ = answer.Body.Close()
			}
		}()
	}
	eventually(t, "a session", func() bool {
		status, err := s.run.Status(context.Background())
		return err == nil && status.Stage != ""
	})
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after a minute", what)
		}
	}
}

// begin sends the first bytes of a body, over a connection of its own.
func (s *site) begin(t testing.TB, body []byte, first int, who ed25519.PrivateKey) net.Conn {
	t.Helper()
	return s.beginOf(t, s.request(t, "POST", "/v1/federations/"+s.fed.ID+"/messages", body, who),
		body, first)
}

// beginOf sends the first bytes of a request's body.
func (s *site) beginOf(t testing.TB, r *http.Request, body []byte, first int) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n",
		r.URL.RequestURI(), len(body))
	for _, name := range []string{"Signature", "Signature-Input", "Content-Digest"} {
		fmt.Fprintf(connection, "%s: %s\r\n", name, r.Header.Get(name))
	}
	fmt.Fprintf(connection, "\r\n%s", body[:first])
	return connection
}

// A body that stops coming is given up, a second body of the same party next to it is
// refused, and so is one for which there is no room. None of them keeps room.
func TestSlowBody(t *testing.T) {
	s := newSite(t, door.Options{InFlight: 1000, Patience: time.Hour})
	f := "/v1/federations/" + s.fed.ID
	s.gather(t)
	body := bytes.Repeat([]byte{7}, 800)
	connection := s.begin(t, body, 2, s.identities[0])
	defer connection.Close()
	eventually(t, "the body", func() bool { return door.Waiting(s.Door) > 0 })
	r := s.request(t, "POST", f+"/messages", []byte("x"), s.identities[0])
	if status, kind, _ := send(t, r); kind != "busy" {
		t.Errorf("a second body: %d %s", status, kind)
	}
	r = s.request(t, "POST", f+"/messages", body, s.identities[1])
	if status, kind, _ := send(t, r); kind != "full" {
		t.Errorf("a body without room: %d %s", status, kind)
	}
	if n := door.Waiting(s.Door); n != 800 {
		t.Errorf("%d bytes are in flight, want the 800 of the first body", n)
	}
	s = newSite(t, door.Options{Patience: 500 * time.Millisecond})
	s.gather(t)
	connection = s.begin(t, body, 2, s.identities[0])
	defer connection.Close()
	answer := make([]byte, 64)
	_ = connection.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := connection.Read(answer)
	if err != nil || !strings.Contains(string(answer[:n]), " 408 ") {
		t.Errorf("a slow body: %q %v", answer[:n], err)
	}
	if n, m := door.Waiting(s.Door), door.Room(s.Door); n != 0 || m != 0 {
		t.Errorf("a slow body leaves %d bytes in flight and %d in memory", n, m)
	}
	s = newSite(t, door.Options{Memory: 1, Folder: filepath.Join(t.TempDir(), "missing")})
	s.gather(t)
	r = s.request(t, "POST", "/v1/federations/"+s.fed.ID+"/messages", body, s.identities[0])
	if status, kind, _ := send(t, r); kind != "full" || door.Waiting(s.Door) != 0 {
		t.Errorf("a body that no disk takes: %d %s, %d bytes in flight", status, kind,
			door.Waiting(s.Door))
	}
}

// A party reads what its signature names; models have ranges and ETags.
func TestResources(t *testing.T) {
	s := newSite(t, door.Options{})
	f := "/v1/federations/" + s.fed.ID
	me := s.identities[2]
	if _, _, body := send(t, s.request(t, "GET", f+"/roster", nil, me)); body != string(s.roster) {
		t.Errorf("roster %q", body)
	}
	_, _, body := send(t, s.request(t, "GET", f, nil, me))
	var d exchange.Description
	if err := json.Unmarshal([]byte(body), &d); err != nil || d.ID != s.fed.ID || d.Text != declared {
		t.Errorf("description %v %+v", err, d)
	}
	r := s.request(t, "GET", f+"/model", nil, me)
	r.Header.Set("Range", "bytes=0-7")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusPartialContent || answer.ContentLength != 8 {
		t.Errorf("a range: %d, %d bytes", answer.StatusCode, answer.ContentLength)
	}
	r = s.request(t, "GET", f+"/model", nil, me)
	r.Header.Set("If-None-Match", answer.Header.Get("ETag"))
	if status, _, _ := send(t, r); status != http.StatusNotModified {
		t.Errorf("the same model: %d", status)
	}
}

// The recipe of the documentation: curl, with openssl for the signature.
func TestCurlRecipe(t *testing.T) {
	for _, tool := range []string{"curl", "openssl", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	s := newSite(t, door.Options{})
	folder := t.TempDir()
	text, err := os.ReadFile(filepath.FromSlash("../../docs/service-join.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(text), "```sh\n# recipe")
	script, _, closed := strings.Cut(script, "```")
	if !found || !closed {
		t.Fatal("docs/service-join.md has no recipe")
	}
	key := filepath.Join(folder, "identity.pem")
	if err := os.WriteFile(key, pemOf(t, s.identities[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-eu", "-c", "#"+script)
	c.Dir = folder
	c.Env = append(os.Environ(), "SERVER="+s.server.URL, "ID="+s.fed.ID, "KEY="+key,
		fmt.Sprintf("PUBLIC=%x", []byte(s.identities[0].Public().(ed25519.PublicKey))))
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"name":"doors"`) {
		t.Errorf("%v: %s", err, out)
	}
}

// FuzzDoor has the handlers take whatever comes: they answer, and never with a 5xx but
// for a federation without a leader.
func FuzzDoor(f *testing.F) {
	s := newSite(f, door.Options{})
	id := s.fed.ID
	f.Add("GET", "/v1/federations/"+id+"/next", "least=1&wait=0", "sig1=(\"@method\");created=1",
		"sig1=:AAAA:", "sha-256=:AAAA:", []byte("x"))
	f.Add("POST", "/v1/federations/"+id+"/messages", "", "sig1=()", "sig1=::", "", []byte{})
	f.Add("GET", "/v1/federations/"+id+"/rounds/1/model", "", "", "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, method, path, query, input, made, digest string, body []byte) {
		r, err := http.NewRequest(method, "http://door/", bytes.NewReader(body))
		if err != nil {
			return
		}
		r.URL.Path, r.URL.RawQuery = path, query
		r.RemoteAddr = "127.0.0.1:1"
		for name, value := range map[string]string{
			"Signature-Input": input, "Signature": made, "Content-Digest": digest,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		for _, sign := range []bool{false, true} {
			if sign {
				if signature.Sign(r, body, s.identities[0], time.Now()) != nil {
					return
				}
				if len(body) == 0 {
					r.ContentLength = 0
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r.WithContext(ctx))
			cancel()
			if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
				t.Errorf("%s %s?%s: %d %s", method, path, query, w.Code, w.Body)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
	})
}

// Who is waited for is late when half of a step's time is over, and not before.
func TestLateParties(t *testing.T) {
	for step, late := range map[string]bool{"1h": false, "1s": true} {
		s := newSiteOf(t, door.Options{}, strings.Replace(declared, "10m", step, 1), 6, 0)
		s.gather(t)
		looks := 0
		eventually(t, "a party that is late", func() bool {
			status, err := s.run.Status(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range status.Parties {
				if p.State == "late" {
					return true
				}
			}
			looks++
			return !late && looks > 50
		})
		status, err := s.run.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range status.Parties {
			if p.State == "late" && !late {
				t.Errorf("with %s for a step %s is %s at once", step, p.Name, p.State)
			}
		}
	}
}
