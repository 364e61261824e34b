package node_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	jobs "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

// hospital is a party over a year, with whatever keys it has.
type hospital struct {
	name    string
	key     ed25519.PrivateKey
	folder  string
	seal    *keyexchange.SealKey
	book    *consent.Book
	stopped chan error // why it does not go on
}

// yearWorld is a node and its hospitals.
type yearWorld struct {
	*testing.T
	in        *network
	ctx       context.Context
	node      *node.Node
	operator  ed25519.PrivateKey
	keys      string // file of seal keys
	door      string // file of the door's certificate
	hospitals map[string]*hospital
	group     sync.WaitGroup

	mutex sync.Mutex
	seen  *accounting.Ledger // of who sees messages only
}

func newIdentity(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	key, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// comes has a hospital take part from a federation on, and in those that follow.
func (w *yearWorld) comes(name string, f *federation.Federation) {
	w.Helper()
	h := w.hospitals[name]
	stopped := make(chan error, 1)
	h.stopped = stopped
	server, err := party.NewServer(w.node.Address, w.pin(), h.key)
	if err == nil {
		err = server.KeepCertificates(h.certificates())
	}
	if err != nil {
		w.Fatal(err)
	}
	p := party.Party{Identity: h.key, Server: w.in.server(server), Key: h.seal, Book: h.book,
		Policy: &consent.Policy{MaxEpsilon: 8, MaxEpsilonYear: 8, FollowJoined: 1,
			Follow: []string{hex.EncodeToString(w.operator.Public().(ed25519.PublicKey))}},
		Trainer: party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
			return &party.Update{Vector: []float64{0.1, 0.2, 0.3}}, nil
		})}
	w.group.Go(func() { stopped <- w.follows(h, p, f) })
}

func (w *yearWorld) follows(h *hospital, p party.Party, f *federation.Federation) error {
	for f != nil {
		round := f.Settled.Round()
		p.Federation, p.Folder = f, filepath.Join(h.folder, f.ID[:16])
		p.Submitted = func(int, [][]uint64) {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			if err := w.seen.SpendRound(round, h.name); err != nil {
				w.Errorf("%s: %v", h.name, err)
			}
		}
		if _, err := p.Run(w.ctx); err != nil {
			return err
		}
		var err error
		for f = nil; f == nil; {
			if f, err = p.Successor(w.ctx); errors.Is(err, consent.ErrPolicy) || w.ctx.Err() != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond) // no answer, or no successor yet
		}
	}
	return nil
}

// roster is that of some hospitals.
func (w *yearWorld) roster(names []string) []byte {
	w.Helper()
	var members []keyexchange.Entry
	for _, name := range names {
		h := w.hospitals[name]
		if h == nil {
			folder := w.TempDir()
			seal, err := keyexchange.GenerateSealKey(nil)
			if err != nil {
				w.Fatal(err)
			}
			h = &hospital{name: name, key: newIdentity(w.T), folder: folder, seal: seal,
				book: &consent.Book{File: filepath.Join(folder, "book"), Key: seal}}
			w.hospitals[name] = h
		}
		members = append(members, keyexchange.Entry{Name: name,
			Key: h.key.Public().(ed25519.PublicKey)})
	}
	list, err := keyexchange.NewRoster(members)
	if err != nil {
		w.Fatal(err)
	}
	text, err := list.MarshalText()
	if err != nil {
		w.Fatal(err)
	}
	return text
}

// declare declares a federation, at the operator's word if it goes on from another.
func (w *yearWorld) declare(files federation.Files) *federation.Federation {
	w.Helper()
	f, err := federation.New(files)
	if err != nil {
		w.Fatal(err)
	}
	if files.Before != nil {
		if files.Succession, err = f.Sign(w.operator); err != nil {
			w.Fatal(err)
		}
	}
	if f, err = w.node.Create(w.ctx, files); err != nil {
		w.Fatal(err)
	}
	return f
}

func (w *yearWorld) ended(f *federation.Federation) *runner.Status {
	return awaitStatus(w.ctx, w.T, w.node, f.ID, func(s *runner.Status) bool {
		return s.State == "ended"
	})
}

// again stops the node and starts it again, at the same address.
func (w *yearWorld) again(config node.Options) {
	w.Helper()
	config.Listen = strings.TrimPrefix(w.node.Address, "https://")
	w.node.Close()
	var err error
	if w.node, err = node.Start(w.ctx, config); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { w.node.Close() })
}

// config is that of a node with a new folder, and the seal key and certificate of now.
func (w *yearWorld) config() node.Options {
	return w.in.node(node.Options{Folder: w.TempDir(), Listen: "127.0.0.1:0", KeyFile: w.keys,
		CertificateFile: w.door})
}

func (w *yearWorld) write(file string, text []byte) {
	w.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		w.Fatal(err)
	}
}

// pin is the fingerprint of the door's certificate, as an operator tells it now.
func (w *yearWorld) pin() string {
	w.Helper()
	pair, err := tls.LoadX509KeyPair(w.door, w.door)
	if err != nil {
		w.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(pair.Certificate[0]))
}

func (h *hospital) certificates() string { return filepath.Join(h.folder, "certificates.json") }

func (w *yearWorld) eventually(what string, is func() bool) {
	w.Helper()
	for !is() {
		if w.ctx.Err() != nil {
			w.Fatal(what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// otherSealKey changes the key that seals while hospitals take part.
func (w *yearWorld) otherSealKey(newer string) {
	w.Helper()
	old, err := os.ReadFile(w.keys)
	if err != nil {
		w.Fatal(err)
	}
	w.write(w.keys, []byte(newer+string(old)))
	w.eventually("the new key does not seal", func() bool {
		k, err := w.node.Keys(w.ctx)
		return err == nil && len(k) == 2
	})
	if k, err := w.node.Rewrite(w.ctx); err != nil || k[1].Objects > 0 {
		w.Fatalf("%+v: %v", k, err)
	}
	w.write(w.keys, []byte(newer))
	w.eventually("the old key stays", func() bool {
		k, err := w.node.Keys(w.ctx)
		return err == nil && len(k) == 1
	})
}

// otherCertificate changes that of the door, which the hospitals have pinned.
func (w *yearWorld) otherCertificate(names []string) {
	w.Helper()
	w.write(w.door+".next", madeCertificate(w.T))
	for _, name := range names {
		w.eventually("a hospital does not learn of the next certificate", func() bool {
			_, err := os.Stat(w.hospitals[name].certificates())
			return err == nil
		})
	}
	if err := os.Rename(w.door+".next", w.door); err != nil {
		w.Fatal(err)
	}
}

// restored goes on with a new node, at the same address, from a backup.
func (w *yearWorld) restored(f *federation.Federation) {
	w.Helper()
	var file bytes.Buffer
	if err := w.node.WriteBackup(w.ctx, &file); err != nil {
		w.Fatal(err)
	}
	w.again(w.config())
	if _, err := w.node.ReadBackup(w.ctx, &file); err != nil {
		w.Fatal(err)
	}
	awaitStatus(w.ctx, w.T, w.node, f.ID, func(s *runner.Status) bool { return s.Leader != "" })
}

// Twelve federations go on from each other while hospitals leave, join, and lose a key, the seal
// key and the door's certificate change, and the node is started again, and restored from a backup:
// the model goes on, no round is lost, and what each hospital has spent is the same by the server's
// ledger, by its own book, and to an accountant that sees messages only.
func TestYear(t *testing.T) {
	inTurn(t)
	inBubble(t, year)
}

func year(t *testing.T, in *network) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &yearWorld{
		T:         t,
		in:        in,
		ctx:       ctx,
		operator:  newIdentity(t),
		hospitals: map[string]*hospital{},
		keys:      filepath.Join(t.TempDir(), "seal.key"),
		door:      filepath.Join(t.TempDir(), "door.pem"),
	}
	w.write(w.keys, []byte(strings.Repeat("1a", 32)+"\n"))
	w.write(w.door, madeCertificate(t))
	config := w.config()
	var err error
	if w.node, err = node.Start(ctx, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.node.Close() })
	names := []string{"a", "b", "c", "d", "e", "f"}
	f := w.declare(federation.Files{Roster: w.roster(names), Text: []byte(`name = "year"
rounds = 2
parties = { roster = "roster.txt", drop_out = 0.2 }
time = { step_time = "2m" }
model.tensor = [ { name = "w", shape = [3] } ]
privacy = { noise = "discrete-gaussian", epsilon = 1.0, clip = 1.0 }
`)})
	budget, err := accounting.NewBudget(f.Settled.Statement(), 100, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	w.seen, err = accounting.NewLedger(budget)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		w.comes(name, f)
	}
	firstID := f.ID
	var last []byte
	for month := 2; month <= 12; month++ {
		if s := w.ended(f); s.Round != 2 || s.Lost != 0 {
			t.Fatalf("month %d: %+v", month-1, s)
		}
		switch month {
		case 5:
			w.otherSealKey(strings.Repeat("2b", 32) + "\n")
		case 8: // all connections are new from here on
			w.otherCertificate(names)
			w.again(config)
			awaitStatus(ctx, t, w.node, f.ID, func(s *runner.Status) bool { return s.Leader != "" })
		case 10: // another machine, with the seal key and the certificate of now
			w.restored(f)
		}
		files, err := w.node.After(ctx, f.ID)
		if err != nil {
			t.Fatal(err)
		}
		j, err := jobs.Parse("job.toml", files.Text)
		if err != nil || j.Name != fmt.Sprint("year-", month) {
			t.Fatalf("%+v: %v", j, err)
		}
		j.Privacy.Epsilon = 1 + 0.4*float64(month-1)
		if files.Text, err = j.MarshalText(); err != nil {
			t.Fatal(err)
		}
		leaver, joiner := "", ""
		switch month {
		case 3, 5, 9:
			leaver, names = names[0], names[1:]
		case 4, 7:
			joiner = fmt.Sprint("new-", month)
			names = append(names, joiner)
		case 6: // it has lost its key, and comes by hand with another
			joiner = names[0]
			w.hospitals[joiner].key = newIdentity(t)
			leaver = joiner
		}
		stopped := make(chan error, 1)
		if leaver != "" {
			stopped = w.hospitals[leaver].stopped
		}
		files.Roster = w.roster(names)
		if month == 2 { // nobody counts less than was spent, and nobody goes on from what goes on
			w.refused(files, firstID)
		}
		f = w.declare(*files)
		if joiner != "" {
			w.comes(joiner, f)
		}
		if leaver != "" {
			if err := <-stopped; !errors.Is(err, consent.ErrPolicy) {
				t.Errorf("%s is not in the roster any more: %v", leaver, err)
			}
		}
		last = files.Model
	}
	s := w.ended(f)
	model, err := w.node.Model(ctx, f.ID)
	if err != nil || string(model) == string(last) || s.Lost != 0 {
		t.Errorf("the model has not gone on: %v, %d lost", err, s.Lost)
	}
	for _, name := range names {
		for h := w.hospitals[name]; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			if entries, err := h.book.Entries(); err == nil &&
				!entries[len(entries)-1].Ended.IsZero() {
				break
			}
		}
	}
	cancel()
	w.group.Wait()
	w.compare(f)
}

// refused tries declarations of a successor that are refused.
func (w *yearWorld) refused(files *federation.Files, id string) {
	w.Helper()
	before := new(jobs.Before)
	if err := before.UnmarshalText(files.Before); err != nil {
		w.Fatal(err)
	}
	less := *files
	budget, err := accounting.NewBudget(accounting.Statement{}, 1, 1e-5)
	if err != nil {
		w.Fatal(err)
	}
	empty, err := accounting.NewLedger(budget)
	if err != nil {
		w.Fatal(err)
	}
	if less.Before, err = (&jobs.Before{Federation: id, Ledger: empty}).MarshalText(); err != nil {
		w.Fatal(err)
	}
	if _, err := w.node.Create(w.ctx, less); !errors.Is(err, jobs.ErrConfig) ||
		!strings.Contains(err.Error(), "privacy.before: it is not what the parties of") {
		w.Errorf("nothing was spent before: %v", err)
	}
	signed := *files
	signed.Succession = bytes.Repeat([]byte{7}, 96)
	if _, err := w.node.Create(w.ctx, signed); !errors.Is(err, federation.ErrSuccession) {
		w.Errorf("nobody's word: %v", err)
	}
	// A hospital's own book notices, whatever the server says.
	f, err := federation.New(less)
	if err != nil {
		w.Fatal(err)
	}
	if err := w.hospitals["a"].book.Check(nil, f.Settled,
		w.hospitals["a"].key.Public()); !errors.Is(err, consent.ErrPolicy) {
		w.Errorf("by its own book it has spent: %v", err)
	}
	if err := w.hospitals["a"].book.Check(&consent.Policy{MaxEpsilonYear: 1.3}, f.Settled,
		w.hospitals["a"].key.Public()); !errors.Is(err, consent.ErrPolicy) {
		w.Errorf("a year's epsilon: %v", err)
	}
}

// compare compares what all ledgers say.
func (w *yearWorld) compare(f *federation.Federation) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	files, err := w.node.After(ctx, f.ID)
	if err != nil {
		w.Fatal(err)
	}
	server := new(jobs.Before)
	if err := server.UnmarshalText(files.Before); err != nil {
		w.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(w.hospitals)) {
		a, err := server.Ledger.Spent(name)
		if err != nil {
			w.Fatal(err)
		}
		b, err := w.seen.Spent(name)
		if err != nil {
			w.Fatal(err)
		}
		entries, err := w.hospitals[name].book.Entries()
		if err != nil || len(entries) == 0 {
			w.Fatalf("%v: %v", entries, err)
		}
		own := leftIn(w, entries)
		if math.Abs(a.Bare().Upper-b.Bare().Upper) > 1e-9 || math.Abs(a.Bare().Upper-own) > 1e-9 {
			w.Errorf("%s: epsilon %v by the server, %v by messages, %v by its own book", name,
				a.Bare().Upper,
				b.Bare().Upper, own)
		}
		w.Logf("%s: epsilon %.4f over %d federations", name, own, len(entries))
	}
}
