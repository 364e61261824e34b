// Package node is one process of the service: JetStream, embedded or the operator's, a leader for
// each federation that this node claims, the parties' door and the operators' page.
//
// Each leader announces its name every second on a subject of its own. The name is only a hint: a
// node that hears no leader for some time claims the record. If two nodes both believe that they
// lead, no harm is done, since only one of them can record a decision. docs/locks.md has the order
// of the locks.
package node

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// Options configure a [Node].
type Options struct {
	Folder string // its keys, and the embedded JetStream's files
	Name   string // of this node; empty: that in the folder, or a new one
	Listen string // host:port of the parties' door
	// Advertise is the address by which other nodes reach the door, empty for Listen's.
	Advertise string
	Admin     string          // host:port of the operators' page, on loopback
	Open      bool            // the page can be read without a token
	Operators *page.Operators // by their keys, next to tokens

	// CertificateFile and CertificateKey name the door's certificate and its key; without them the
	// node makes a certificate of its own, kept in the folder. Files with the suffix .next hold the
	// next certificate: it is announced for Overlap, 0 for 7 days, and shown then, or once it has
	// replaced the present one.
	CertificateFile, CertificateKey string
	Overlap                         time.Duration

	// NATS is the URL of an external JetStream, and NATSOptions how to connect to it: TLS,
	// credentials. Or Cluster is the host:port on which this node's own JetStream listens for those
	// of Peers, with ClusterTLS. With neither, the node is alone.
	NATS        string
	NATSOptions []nats.Option
	Replicas    int // of an external JetStream; 0 for 1
	Cluster     string
	Peers       []string
	ClusterTLS  *tls.Config

	// KeyFile holds the keys that seal records, one per line: the first key seals, all keys open. The
	// node reads the file again whenever it changes. Empty: the node uses a key of its own, kept in
	// the folder.
	KeyFile string
	Log     *slog.Logger

	// Silence is how long a leader may be silent before another node claims; 0 for 10 s.
	Silence time.Duration
	// PerSecond bounds the requests of a party, or of an address, at the door: see door.Options.
	PerSecond float64

	// PublicLog is the name of the server's public log, the same at all nodes; empty: there is none.
	// LogRounds has it say how far each federation has come as soon as that changes, and not once a
	// day.
	PublicLog string
	LogRounds bool

	// Judge, Traces and Summed are as in runner.Options, for every federation.
	Judge  func(model []float64) float64
	Traces trace.TracerProvider
	Summed func(round int, parties []int, sum [][]uint64)

	hooks Hooks
}

// Hooks returns the options that only tests set.
func (c *Options) Hooks() *Hooks { return &c.hooks }

// Hooks are options that only tests set: shorter times, fewer connections, another clock, faults.
type Hooks struct {
	Plain bool // the door speaks HTTP, on loopback only
	// Key replaces the keys of KeyFile.
	Key   *keyexchange.SealKey
	Grace time.Duration // see runner.Options
	// Probe is the time between two probes of the record, 0 for 5 s; other times, in which a record
	// heals or in which files of keys and certificates are read, scale with it.
	Probe time.Duration
	// Connections bounds the door's connections, 0 for as many as the files allow that the process
	// may open.
	Connections int
	// Patience is how long a request's headers or body may pause, 0 for door.DefaultPatience.
	Patience time.Duration
	// Now returns the time that the door compares signatures with; nil: time.Now.
	Now   func() time.Time
	Fault func(step string) // as in record.Hold, for every federation
	// Listen replaces net.Listen, for the door and the page.
	Listen func(network, address string) (net.Listener, error)
}

// Times.
const (
	defaultSilence = 10 * time.Second
	beat           = time.Second
	lookAgain      = time.Second
	unreadable     = 30 * time.Second
	closing        = 10 * time.Second
	idle           = 2 * time.Minute // of a connection, between requests
	formTime       = time.Minute     // in which a cluster forms
)

// Subjects.
const (
	subjectLead = "hushsum.lead."
	subjectAsk  = "hushsum.ask."
)

// Node is a running node.
type Node struct {
	Options
	embedded *record.Embedded // nil with an external JetStream
	conn     *nats.Conn
	records  *record.Records
	alone    bool
	health   health
	back     chan struct{} // has one when the connection to the record is back
	between  *between
	seals    *record.Keys
	keyMutex sync.Mutex // while keyFile is read
	keyFile  watched

	certificate certificate
	logMutex    sync.Mutex // while the checkpoint of the public log is written

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mutex   sync.Mutex
	entries map[string]*entry
	unread  map[string]error // why recorded federations are not in entries, by identifier
	checked checks
	// forgotten has the federations that nobody leads any more, by identifier.
	forgotten map[string]*record.Forgotten
	looked    bool                // all recorded federations are in entries
	others    map[string]*present // nodes that were heard, including this one
	passing   passing
	// know has the nodes that know of a federation whose declaration waits for them.
	know map[string]map[string]bool

	Door        *door.Door
	Address     string // of the door, with its scheme
	Fingerprint string // of its certificate, empty for HTTP
	Page        string // address of the page
	// Hangs receives an error if the record hangs in this process, which then has to end without
	// Close: everything decided is recorded.
	Hangs chan error
	// Removed receives [ErrRemoved] if an operator has removed this node, which then has to end.
	Removed     chan error
	servers     []*http.Server
	connections int // that the door may have
	atDoor      *boundedListener
	tokens      *page.Tokens
	lock        io.Closer // of the folder
	NewTokens   []string  // made at this start
	TokensFile  string    // that holds them, readable only by its owner; empty without them
}

// entry is a federation on this node.
type entry struct {
	federation   *federation.Federation
	files        federation.Files // that it is of
	wait         time.Duration    // of its parties' questions
	runner       *runner.Runner   // while this node leads
	leader       lead             // what was heard last
	heard        time.Time
	claimed      time.Time     // the leader began to say that it claims
	late, warned time.Time     // of messages about the leader that do not open: the first, a line
	doubt        chan struct{} // another node says that it leads, while this one does
	forward      *forward      // to the leader
	lost         time.Time     // another node claimed it from this one
	losses       int           // in a row
	rests        time.Time     // until when this node does not claim
	outage       bool          // the record was away when it last led, or tried to
	shown        shown
	unopened     string            // why this node cannot lead it; empty: it can, or has not tried
	asked        *federation.Asked // with its answers, once there are some
}

// Start starts a node, which its caller closes.
func Start(ctx context.Context, c Options) (*Node, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Silence == 0 {
		c.Silence = defaultSilence
	}
	if c.hooks.Patience == 0 {
		c.hooks.Patience = door.DefaultPatience
	}
	if c.hooks.Listen == nil {
		c.hooks.Listen = net.Listen
	}
	if c.hooks.Probe == 0 {
		c.hooks.Probe = probeEvery
	}
	n := &Node{Options: c, health: health{every: c.hooks.Probe}, back: make(chan struct{}, 1),
		Hangs:   make(chan error, 1),
		Removed: make(chan error, 1), entries: make(map[string]*entry),
		forgotten: make(map[string]*record.Forgotten),
		unread:    make(map[string]error), others: make(map[string]*present),
		know: make(map[string]map[string]bool)}
	n.ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := n.start(ctx); err != nil {
		n.Close()
		n.forgetTokens()
		return nil, err
	}
	return n, nil
}

// start starts all parts of a node. The caller closes the node if that fails.
func (n *Node) start(ctx context.Context) error {
	if err := n.keys(); err != nil {
		return err
	}
	if _, err := os.Stat(n.leftFile()); err == nil {
		return ErrRemoved
	}
	n.between = newBetween(n.seals, time.Now)
	if err := n.connect(ctx); err != nil {
		return err
	}
	if err := n.mayBe(ctx); err != nil {
		return err
	}
	if err := n.opens(ctx); err != nil {
		return err
	}
	if err := n.serve(); err != nil {
		return err
	}
	if n.PublicLog != "" {
		n.group.Add(1)
		go n.publishes()
	}
	n.group.Add(5)
	go n.checkNightly()
	go n.beats()
	go n.reload()
	go n.look()
	go n.watch()
	return nil
}

// connect starts or finds JetStream.
func (n *Node) connect(ctx context.Context) (err error) {
	var js jetstream.JetStream
	replicas := max(n.Replicas, 1)
	if n.NATS != "" {
		if n.conn, err = n.reach(ctx); err != nil {
			return err
		}
		if js, err = record.JetStream(n.conn); err != nil {
			return err
		}
	} else {
		n.embedded, err = record.StartEmbedded(ctx, record.EmbeddedOptions{
			Folder: n.Folder,
			Name:   n.Name,
			Listen: n.Cluster,
			Peers:  n.Peers,
			TLS:    n.ClusterTLS,
		})
		if err != nil {
			return err
		}
		for _, name := range n.embedded.Moved {
			n.Log.Error("damaged files of the record were moved aside; check this node's disk", "folder",
				name)
		}
		n.conn, js = n.embedded.Conn, n.embedded.JS
		n.alone = len(n.Peers) == 0
		if !n.alone {
			replicas = min(len(n.Peers), 3)
		}
	}
	// A cluster takes some time until it can store anything.
	for began, told := time.Now(), false; ; {
		n.records, err = record.Open(ctx, js, replicas, n.seals)
		if err == nil || ctx.Err() != nil || time.Since(began) > formTime {
			break
		}
		if !told {
			told = true
			n.Log.Warn("the record cannot be used yet; most of a cluster's nodes must be up",
				"error", err.Error())
		}
	}
	switch {
	case err != nil && !n.alone && n.embedded != nil:
		return fmt.Errorf("%w; start most of the nodes of --peers within %v of each other, and make "+
			"sure that they reach each other's --cluster", err, formTime)
	case err != nil:
		return err
	}
	if n.alone {
		n.records.Alone()
	}
	if err = n.records.KeepIn(n.Folder); err != nil {
		return err
	}
	if _, err = n.conn.Subscribe(subjectLead+"*", n.hear); err != nil {
		return err
	}
	_, err = n.conn.Subscribe(subjectNode, n.hearNode)
	return err
}

// notYet lists the errors of a NATS that may answer later: a proxy in front of it, such as a
// balancer, accepts connections and ends them.
var notYet = []error{nats.ErrNoServers, nats.ErrTimeout, io.EOF, syscall.ECONNRESET,
	syscall.EPIPE}

// reach connects to an external NATS, and waits for one that does not answer yet.
func (n *Node) reach(ctx context.Context) (*nats.Conn, error) {
	options := append([]nats.Option{nats.MaxReconnects(-1), nats.Name("hushsumd " + n.Name),
		nats.PingInterval(beat), nats.MaxPingsOutstanding(3), nats.ReconnectWait(beat / 4),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { n.away(true) }),
		nats.ReconnectHandler(func(*nats.Conn) { n.hearsAgain() })}, n.NATSOptions...)
	for told := false; ; {
		conn, err := nats.Connect(n.NATS, options...)
		if err == nil {
			return conn, nil
		}
		// Errors omit the URL, and so any password.
		err = fmt.Errorf("%w at the URL of --nats: %w", record.ErrUnavailable, err)
		if !slices.ContainsFunc(notYet, func(e error) bool { return errors.Is(err, e) }) {
			return nil, err
		}
		if !told {
			told = true
			n.Log.Warn("NATS does not answer; this node waits for it", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lookAgain):
		}
	}
}

// serve opens the door and the page.
func (n *Node) serve() error {
	n.Door = door.New(door.Options{
		Federations: (*federations)(n),
		Log:         n.Log,
		PerSecond:   n.PerSecond,
		Folder:      n.Folder,
		Patience:    n.hooks.Patience,
		Known:       known,
		Poll:        poll,
		Now:         n.hooks.Now,
		Ready:       n.ready,
		Healthy:     n.health.healthy,

		Certificates: n.statements,
		PublicLog:    n.published(),
		Cosigned:     n.cosigned,
	})
	files := openFiles()
	connections, pageConnections, reserve := shares(files)
	if n.hooks.Connections > 0 {
		connections = n.hooks.Connections
	}
	n.connections = connections
	n.Log.Info("connections are limited", "door", connections, "page", pageConnections,
		"files", files, "files reserved for the record", reserve)
	listener, err := n.hooks.Listen("tcp", n.Listen)
	if err != nil {
		return fmt.Errorf("node: the parties' door: %w; see --listen", err)
	}
	address := listener.Addr().String()
	if n.hooks.Plain {
		if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
			_ = listener.Close()
			return errors.New("node: HTTP without TLS is for loopback only")
		}
		n.Address = "http://" + address
	}
	n.atDoor = bound(listener, connections, 0, n.Log)
	listener = n.atDoor
	if !n.hooks.Plain {
		n.Address = "https://" + address
		n.Fingerprint, _ = n.certificate.shown()
		listener = tls.NewListener(listener, n.certificate.config())
	}
	if n.Advertise == "" {
		n.Advertise = n.Address
	}
	n.run(n.Door, listener)
	if n.Admin == "" {
		return nil
	}
	admin, err := n.hooks.Listen("tcp", n.Admin)
	if err != nil {
		return fmt.Errorf("node: the operators' page: %w; see --admin", err)
	}
	n.Page = "http://" + admin.Addr().String()
	n.run(page.New(page.Options{
		Federations: shows{n},
		Tokens:      n.tokens,
		Operators:   n.Operators,
		Open:        n.Open,
		Patience:    n.hooks.Patience,
		Known:       known,
		Log:         n.Log,
		Counts:      &n.Door.Counts,
	}), bound(admin, pageConnections, 0, n.Log))
	return nil
}

// run serves on a listener. Handlers set the deadlines of bodies.
func (n *Node) run(h http.Handler, l net.Listener) {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: n.hooks.Patience,
		IdleTimeout:       idle,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(n.Log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return n.ctx },
		ConnContext:       withConnection,
		ConnState:         stateOf,
	}
	n.servers = append(n.servers, s)
	n.group.Add(1)
	go func() {
		defer n.group.Done()
		_ = s.Serve(l)
	}()
}

// damaged fails with [record.ErrDamaged] if this node, which is alone, had to begin an empty
// record, and with [record.ErrRecord] if a recorded federation cannot be read.
func (n *Node) damaged() error {
	if n.alone && n.embedded != nil {
		if whole := n.embedded.Aside(); len(whole) > 0 {
			return &record.Damage{What: "JetStream did not start on the files that are in " +
				strings.Join(whole, ", ") + ", and this node has begun an empty record",
				Advice: "restore a backup, then move them elsewhere"}
		}
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, id := range slices.Sorted(maps.Keys(n.unread)) {
		if errors.Is(n.unread[id], record.ErrRecord) {
			return n.unread[id]
		}
	}
	return nil
}

// ready reports whether the record takes decisions, is whole, and every federation has a leader.
func (n *Node) ready() error {
	if err := n.health.ready(); err != nil {
		return err
	}
	if !n.conn.IsConnected() {
		return fmt.Errorf("%w: there is no connection to it", record.ErrUnavailable)
	}
	if err := n.damaged(); err != nil {
		return err
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if !n.looked {
		return errors.New("node: it is starting")
	}
	for _, e := range (*federations)(n).sorted() {
		if e.runner == nil && (e.leader.Claiming || time.Since(e.heard) > n.Silence) {
			if e.unopened != "" {
				return fmt.Errorf("node: nobody leads %s: %s", e.federation.Job.Name, e.unopened)
			}
			return fmt.Errorf("node: nobody leads %s", e.federation.Job.Name)
		}
	}
	return nil
}

// Close saves the messages that the node holds, hands over its federations and stops the node.
func (n *Node) Close() {
	n.cancel()
	for _, s := range n.servers {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
		cancel()
	}
	n.group.Wait()
	if n.records != nil {
		if err := n.records.Close(); err != nil {
			n.Log.Warn("files of decisions were not closed", "error", err.Error())
		}
	}
	switch {
	case n.embedded != nil:
		n.embedded.Close()
	case n.conn != nil:
		n.conn.Close()
	}
	if n.lock != nil {
		_ = n.lock.Close()
	}
}

// Create declares a federation, and returns once all nodes that are here know of it.
func (n *Node) Create(
	ctx context.Context, files federation.Files,
) (*federation.Federation, error) {
	return n.create(ctx, files, "")
}

// begins fails with [record.ErrRecord] if a declaration could begin anew what this record has had:
// an answer that it has no such federation counts for nothing then. A federation whose definition
// alone is lost gets it back by a declaration of the same files.
func (n *Node) begins(id string) error {
	err := n.damaged()
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if errors.Is(n.unread[id], record.ErrDamaged) {
		return nil
	}
	return err
}

// create declares a federation and writes a note into the audit log.
func (n *Node) create(
	ctx context.Context, files federation.Files, note string,
) (*federation.Federation, error) {
	f, err := federation.New(files)
	if err == nil {
		err = n.begins(f.ID)
	}
	if err == nil {
		err = n.succeeds(ctx, f, files)
	}
	if err != nil {
		return nil, err
	}
	d := record.Definition{ID: f.ID, Text: f.Text, Roster: files.Roster, Committee: files.Committee,
		Succession: files.Succession, Created: time.Now().UTC()}
	err = n.records.Create(ctx, d, files.Model, files.Before, record.Line{Time: d.Created,
		Node: n.Name, Event: record.EventCreated, Digest: f.ID, Note: note})
	if errors.Is(err, record.ErrExists) {
		return nil, fmt.Errorf("%w: %s was declared by the same file, lists and model; for another, "+
			"change its name", err, f.Job.Name)
	}
	if err != nil {
		return nil, err
	}
	if f.Key, err = n.records.Public(ctx, f.ID); err != nil {
		return nil, err
	}
	n.knows(f, files)
	n.shared(ctx, f.ID)
	return f, nil
}

// federations is the node as its door sees it.
type federations Node

// Find finds a federation by its identifier.
func (f *federations) Find(id string) (door.Known, bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	e := f.entries[id]
	if e == nil {
		return door.Known{Forgotten: f.forgotten[id] != nil}, f.forgotten[id] != nil
	}
	return f.entry(e), true
}

func (f *federations) entry(e *entry) door.Known {
	out := door.Known{
		Federation: e.federation,
		Files:      e.files,
	}
	// A node that cannot decide sends parties on: another may lead already.
	if !(*Node)(f).cutOff() {
		out.Runner = e.runner
	}
	if e.forward != nil && !e.leader.Claiming && time.Since(e.heard) < f.Silence {
		out.Forward = e.forward
	}
	return out
}

// Entries returns all federations, sorted by name.
func (f *federations) Entries() []door.Known {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var out []door.Known
	for _, e := range f.sorted() {
		out = append(out, f.entry(e))
	}
	return out
}

// sorted returns all federations, by name. The caller holds the mutex.
func (f *federations) sorted() []*entry {
	return slices.SortedFunc(maps.Values(f.entries), func(x, y *entry) int {
		return strings.Compare(x.federation.Job.Name, y.federation.Job.Name)
	})
}

// newName makes a name for a node.
func newName() (string, error) {
	var b [6]byte
	_, err := rand.Read(b[:])
	return "node-" + hex.EncodeToString(b[:]), err
}
