package node_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

const (
	recordParties = 4
	recordRounds  = 5
)

// fourParties are parties that anybody can be, and their federation.
func fourParties(t *testing.T) (text, roster []byte, identities []ed25519.PrivateKey) {
	t.Helper()
	var members []keyexchange.Entry
	for i := range recordParties {
		seed := bytes.Repeat([]byte{byte(i + 1)}, 32)
		key := ed25519.NewKeyFromSeed(seed)
		identities = append(identities, key)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("p", i),
			Key: key.Public().(ed25519.PublicKey)})
	}
	list, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	if roster, err = list.MarshalText(); err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(nil, `name = "kept"
rounds = %d
parties = { roster = "roster.txt", drop_out = 0.25 }
model.tensor = [{ name = "w", shape = [40] }]
server = { rule = "fedadam", rate = 1.0 }
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 1.0 }
time.step_time = "20s"
`, recordRounds)
	return text, roster, identities
}

// takePart has parties take part until the federation or ctx ends.
func takePart(
	ctx context.Context, t *testing.T, fed *federation.Federation, address string,
	identities []ed25519.PrivateKey, update []float64,
) {
	t.Helper()
	takePartBy(ctx, t, fed, reachAt(address), identities, func(context.Context, *party.Work,
	) (*party.Update, error) {
		return &party.Update{Vector: update}, nil
	})
}

// reach makes parties' ways to a server.
type reach func(identity ed25519.PrivateKey) (*party.Server, error)

func reachAt(address string) reach {
	return func(identity ed25519.PrivateKey) (*party.Server, error) {
		return party.NewServer(address, "", identity)
	}
}

// takePartBy is takePart by a reach of the test's own, with a trainer.
func takePartBy(
	ctx context.Context, t *testing.T, fed *federation.Federation, reach reach,
	identities []ed25519.PrivateKey, train party.TrainerFunc,
) {
	t.Helper()
	var group sync.WaitGroup
	for i, identity := range identities {
		dir := t.TempDir()
		key, err := keyfile.SealKey(filepath.Join(dir, "seal.key"), true)
		if err != nil {
			t.Fatal(err)
		}
		way, err := reach(identity)
		if err == nil {
			err = way.KeepCertificates(filepath.Join(dir, "certificates.json"))
		}
		if err != nil {
			t.Fatal(err)
		}
		p := party.Party{Federation: fed, Identity: identity, Server: way, Folder: dir, Key: key,
			Trainer: train}
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := p.Run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("party %d: %v", i, err)
			}
		}()
	}
	group.Wait()
}

func plainNode(folder string) node.Options {
	return node.With(node.Options{Folder: folder, Listen: "127.0.0.1:0", PerSecond: testRate},
		node.Hooks{Plain: true})
}

// testRate lets rounds follow each other as fast as one machine holds them.
const testRate = 10_000

// awaitStatus waits until a federation's status is as wanted.
func awaitStatus(
	ctx context.Context, t *testing.T, n *node.Node, id string, good func(*runner.Status) bool,
) *runner.Status {
	t.Helper()
	for {
		s, err := n.Status(ctx, id)
		if err == nil && good(s) {
			return s
		}
		if ctx.Err() != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// A record of another format is refused by name, is led by nobody, and stays as it is.
func TestRecordOfOtherFormat(t *testing.T) {
	for _, c := range []struct{ bucket, what string }{
		{"hushsum-federations", "definition"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		config := plainNode(t.TempDir())
		n, err := node.Start(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		text, roster, _ := fourParties(t)
		fed, err := n.Create(ctx, federation.Files{Text: text, Roster: roster})
		if err != nil {
			t.Fatal(err)
		}
		awaitStatus(ctx, t, n, fed.ID, func(s *runner.Status) bool { return s.Leader != "" })
		n.Close()
		other := entryOf(ctx, t, config.Folder, c.bucket, fed.ID, func(b []byte) []byte {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(b, &fields); err != nil {
				t.Fatal(err)
			}
			fields["format"] = json.RawMessage(fmt.Sprint(record.Format + 1))
			b, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			return b
		})
		log := new(safeBuffer)
		config.Log = slog.New(slog.NewJSONHandler(log, nil))
		if n, err = node.Start(ctx, config); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("the %s of %.16s… has format %d, and this program reads", c.what, fed.ID,
			record.Format+1)
		for !strings.Contains(log.String(), want) {
			if ctx.Err() != nil {
				t.Fatalf("the log lacks %q:\n%s", want, log.String())
			}
			time.Sleep(20 * time.Millisecond)
		}
		if s, err := n.Status(ctx, fed.ID); err == nil {
			t.Errorf("it is led: %+v", s)
		}
		n.Close()
		if now := entryOf(ctx, t, config.Folder, c.bucket, fed.ID, nil); now != other {
			t.Errorf("it was %s and is %s", other, now)
		}
	}
}

// entryOf returns a key's revision and value, after a change if there is one.
func entryOf(
	ctx context.Context, t *testing.T, folder, bucket, key string, change func([]byte) []byte,
) string {
	t.Helper()
	e, err := record.StartEmbedded(ctx, record.EmbeddedOptions{Folder: folder, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	kv, err := e.JS.KeyValue(ctx, bucket)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := kv.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		if _, err := kv.Put(ctx, key, change(entry.Value())); err != nil {
			t.Fatal(err)
		}
		if entry, err = kv.Get(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%d %s", entry.Revision(), entry.Value())
}

// safeBuffer is written and read from several goroutines.
type safeBuffer struct {
	mutex sync.Mutex
	b     bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.b.String()
}

func (s *safeBuffer) has(text string) bool { return strings.Contains(s.String(), text) }

// Two processes, or nodes, do not use one folder.
func TestFolderIsLocked(t *testing.T) {
	folder := t.TempDir()
	n, err := node.Start(context.Background(), plainNode(folder))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Start(context.Background(), plainNode(folder)); !errors.Is(err, node.ErrLocked) {
		t.Errorf("a second node: %v", err)
	}
	n.Close()
	if n, err = node.Start(context.Background(), plainNode(folder)); err != nil {
		t.Fatal(err)
	}
	n.Close()
}

// startNATS starts a NATS of the operator's, and returns how it is reached with a password.
func startNATS(t *testing.T) (address func(password string) string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   t.TempDir(),
		SyncAlways: true,
		Username:   "hushsum",
		Password:   "a pass-word",
		NoSigs:     true,
		NoLog:      true,
	})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("it did not start")
	}
	return func(password string) string {
		u := url.URL{
			Scheme: "nats",
			User:   url.UserPassword("hushsum", password),
			Host:   s.Addr().String(),
		}
		return u.String()
	}
}

// Two nodes on a NATS of the operator's, reached by its URL with a password: one leads,
// and when it stops the other goes on. A wrong password is told at once.
func TestExternalNATS(t *testing.T) {
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	address := startNATS(t)
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	start := func(name, nats string) (*node.Node, error) {
		config := plainNode(t.TempDir())
		config.Name, config.NATS, config.Hooks().Key, config.Silence = name, nats, key, 3*time.Second
		return node.Start(ctx, config)
	}
	_, err = start("z", address("another"))
	if err == nil || strings.Contains(err.Error(), "another") ||
		!strings.Contains(err.Error(), "--nats") {
		t.Errorf("a wrong password: %v", err)
	}
	a, err := start("a", address("a pass-word"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := start("b", address("a pass-word"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	text, roster, identities := fourParties(t)
	fed, err := a.Create(ctx, federation.Files{Text: text, Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	first := awaitStatus(ctx, t, b, fed.ID, func(s *runner.Status) bool { return s.Leader != "" })
	leads, other := a, b
	if first.Leader == "b" {
		leads, other = b, a
	}
	// Before the first decision too an operator can name what it has seen; from any node.
	if first.Round != 0 || first.Decisions > 2 { // the claims
		t.Errorf("%d decisions without a party, round %d", first.Decisions, first.Round)
	}
	asked := page.Order{What: "pause", Who: "ann", Seen: "7" + first.Orders[1:]}
	if _, err := other.Do(ctx, fed.ID, asked); !errors.Is(err, runner.ErrStale) {
		t.Errorf("orders that were not seen: %v", err)
	}
	asked = page.Order{What: "pause", Who: "ann", Seen: first.Orders}
	if s, err := other.Do(ctx, fed.ID, asked); err != nil ||
		s.State != "paused" {
		t.Errorf("%+v %v", s, err)
	}
	resumed, err := other.Do(ctx, fed.ID, page.Order{What: "resume", Who: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		awaitStatus(ctx, t, other, fed.ID, func(s *runner.Status) bool { return s.Round >= 2 })
		leads.Close()
	}()
	takePart(ctx, t, fed, a.Address+","+b.Address, identities, make([]float64, 40))
	last := awaitStatus(ctx, t, other, fed.ID, func(s *runner.Status) bool {
		return s.State == "ended"
	})
	if last.Round != recordRounds || last.Leader != other.Name {
		t.Errorf("%d rounds, led by %s", last.Round, last.Leader)
	}
	// It has ended since, under another leader: to end it is no mistake, and nothing else is meant.
	for what, want := range map[string]error{"end": nil, "pause": runner.ErrStale} {
		o := page.Order{What: what, Who: "ann", Seen: resumed.Orders}
		if s, err := other.Do(ctx, fed.ID, o); !errors.Is(err, want) || err == nil && s.State != "ended" {
			t.Errorf("%s: %+v, %v, want %v", what, s, err, want)
		}
	}
}

// What a party sends is in no file of the operator's, at no decision: neither the bytes
// of its messages, nor its update in any form. What is declared is, so that the search is
// known to find things.
func TestNoSubmissionInFiles(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	folder := t.TempDir()
	var mutex sync.Mutex
	var sent [][]byte // pieces of bodies
	looked, declared := 0, 0
	config := plainNode(folder)
	config.Hooks().Fault = func(step string) {
		if step != "sending" {
			return
		}
		mutex.Lock()
		pieces := sent
		mutex.Unlock()
		looked++
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil //nolint:nilerr // a file that is just gone
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return nil //nolint:nilerr // likewise
			}
			for k, piece := range pieces {
				if bytes.Contains(b, piece) {
					t.Errorf("%s has piece %d of %d", path, k, len(pieces))
				}
			}
			if bytes.Contains(b, []byte("hushsum-federations")) {
				declared++
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	n, err := node.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	target, err := url.Parse(n.Address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	bodies := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(b))
			mutex.Lock()
			// A header says what a message is; what follows is keys, masked or sealed.
			for at := 120; at+24 <= len(b); at += 200 {
				sent = append(sent, bytes.Clone(b[at:at+24]))
			}
			bodies++
			mutex.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	text, roster, identities := fourParties(t)
	text = bytes.Replace(text, []byte("rounds = 5"), []byte("rounds = 2"), 1)
	text = bytes.Replace(text, []byte("noise = \"discrete-gaussian\"\nepsilon = 8.0\n"), nil, 1)
	fed, err := n.Create(ctx, federation.Files{Text: text, Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	update := make([]float64, 40)
	for k := range update {
		update[k] = 0.0123456789
	}
	spec := fed.Spec
	plain, err := spec.Append(nil, update, nil)
	if err != nil {
		t.Fatal(err)
	}
	sent = append(sent, bytes.Clone(plain[len(plain)-24:]))
	takePart(ctx, t, fed, front.URL, identities, update)
	if looked < 8 || declared < looked || bodies < 4*8 {
		t.Errorf("%d decisions looked at, what is declared found %d times, %d bodies", looked, declared,
			bodies)
	}
	t.Logf("%d pieces of %d bodies, %d decisions", len(sent), bodies, looked)
}
