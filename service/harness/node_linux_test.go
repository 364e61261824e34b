package harness

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/store"
)

// This file has a node in a process of its own, and what strikes it from outside.

// setup tells a node's process what to be, in a file of its folder.
type setup struct {
	Name, Listen, Advertise, Admin string
	Route                          string   // of a cluster
	Peers                          []string // as this node reaches them
	NATS                           string
	Replicas                       int
	Silence                        time.Duration
	Federation                     string // its file
}

// fault has a node struck in one of the steps of its decisions.
type fault struct {
	After  int // steps
	Signal syscall.Signal
}

// Files of a node's folder, above those that are the node's own.
const (
	fileSetup = "setup.json"
	fileClock = "clock" // by how much it is off
	fileFault = "fault"
	fileSums  = "sums"
	routesPEM = "routes.pem" // in the folder of all
)

// sumOf is a sum, as a node leaves it.
type sumOf struct {
	Round   int
	Parties []int
	Sum     [][]uint64
}

func save(name string, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		err = store.FileStore(name).Save(b)
	}
	return err
}

func load(name string, into any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// orEnd ends a node's process for an error.
func orEnd(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(3)
	}
}

// beNode is a node's process.
func beNode(folder string) {
	var s setup
	orEnd(load(filepath.Join(folder, fileSetup), &s))
	operators, err := page.OpenOperators(filepath.Join(folder, "..", "operators.txt"), nil)
	orEnd(err)
	log, err := os.OpenFile(filepath.Join(folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	orEnd(err)
	c := node.Options{
		Folder:    filepath.Join(folder, "node"),
		Name:      s.Name,
		Listen:    s.Listen,
		Advertise: s.Advertise,
		Admin:     s.Admin,
		Open:      true,
		Operators: operators,
		NATS:      s.NATS,
		Replicas:  s.Replicas,
		Cluster:   s.Route,
		Peers:     s.Peers,
		Silence:   s.Silence,
		PerSecond: 10_000,
		Log:       slog.New(slog.NewJSONHandler(log, nil)),
		Summed: func(round int, parties []int, sum [][]uint64) {
			name := fmt.Sprintf("%d-%s-%d", round, s.Name, time.Now().UnixNano())
			name = filepath.Join(folder, "..", fileSums, name)
			err := save(name, sumOf{round, parties, sum})
			for errors.Is(err, syscall.EMFILE) { // while a nemesis takes the files away
				time.Sleep(10 * time.Millisecond)
				err = save(name, sumOf{round, parties, sum})
			}
			orEnd(err)
		},
	}
	key := sealed
	var mutex sync.Mutex
	*c.Hooks() = node.Hooks{
		Plain: true,
		Key:   &key,
		Grace: 700 * time.Millisecond,
		Probe: 500 * time.Millisecond,
		Now: func() time.Time {
			var off time.Duration
			_ = load(filepath.Join(folder, fileClock), &off) // mostly there is none
			return time.Now().Add(off)
		},
		Fault: func(string) {
			mutex.Lock()
			defer mutex.Unlock()
			struckIn(filepath.Join(folder, fileFault))
		},
	}
	if s.Route != "" {
		c.ClusterTLS = routes(filepath.Join(folder, "..", routesPEM))
	}
	n, err := node.Start(context.Background(), c)
	orEnd(err)
	_, files, err := federation.ReadFiles(s.Federation)
	orEnd(err)
	for {
		_, err := n.Create(context.Background(), *files)
		if err == nil || errors.Is(err, record.ErrExists) || errors.Is(err, record.ErrDamaged) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	select {
	case err := <-n.Hangs:
		orEnd(err)
	case err := <-n.Removed:
		n.Close()
		orEnd(err)
	case <-stop:
		n.Close()
	}
}

// struckIn strikes this process in a step of a decision, if a file says so.
func struckIn(name string) {
	var f fault
	if load(name, &f) != nil {
		return
	}
	if f.After--; f.After > 0 {
		orEnd(save(name, f))
		return
	}
	_ = os.Remove(name)
	_ = syscall.Kill(os.Getpid(), f.Signal)
	time.Sleep(time.Second) // the signal may take a moment
}

// routes reads how nodes of a cluster speak to each other.
func routes(name string) *tls.Config {
	text, err := os.ReadFile(name)
	orEnd(err)
	pair, err := tls.X509KeyPair(text, text)
	orEnd(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

// process is a node, or a server of NATS, that is started again after each kill.
type process struct {
	folder  string
	program []string // empty: this test's binary, as a node

	mutex   sync.Mutex
	command *exec.Cmd
	died    chan error
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	args := p.program
	if len(args) == 0 {
		args = []string{os.Args[0]}
	}
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), roleVariable+"=node", folderVariable+"="+p.folder, "GOMAXPROCS=2")
	said, err := os.OpenFile(filepath.Join(p.folder, "output"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	died := make(chan error, 1)
	go func() { died <- c.Wait() }()
	p.command, p.died = c, died
}

// kill kills the process, if it is alive.
func (p *process) kill() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return
	}
	_ = p.command.Process.Kill()
	<-p.died
	p.command = nil
}

// signal sends a signal to the process.
func (p *process) signal(s syscall.Signal) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return os.ErrProcessDone
	}
	return p.command.Process.Signal(s)
}

// ended reports whether the process has ended by itself, and why.
func (p *process) ended() (bool, string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return false, ""
	}
	select {
	case err := <-p.died:
		p.command = nil
		text, _ := os.ReadFile(filepath.Join(p.folder, "output"))
		return true, fmt.Sprintf("%v: %s", err, text[max(0, len(text)-1000):])
	default:
		return false, ""
	}
}

// strike has the process struck in a step of one of its next decisions.
func (p *process) strike(f fault) error {
	return save(filepath.Join(p.folder, fileFault), cmp.Or(f, fault{1, syscall.SIGKILL}))
}
