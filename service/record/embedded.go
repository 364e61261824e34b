package record

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Embedded is a JetStream in this process.
type Embedded struct {
	options *server.Options
	Conn    *nats.Conn
	JS      jetstream.JetStream
	system  *nats.Conn // to the account of the system, nil for a node alone
	secret  string     // of its user
	// Moved lists folders with damaged files, which were moved out of that of the record at its start.
	Moved []string

	mutex  sync.Mutex
	server *server.Server
}

// EmbeddedOptions configure an embedded JetStream.
type EmbeddedOptions struct {
	Folder string // where it stores
	Name   string // of this node, one of its own in a cluster
	// Listen is the host and port for other nodes, and Peers those of all nodes; empty for a node
	// alone. TLS secures routes between nodes and is required with them.
	Listen string
	Peers  []string
	TLS    *tls.Config
}

// Subfolder is the folder within [EmbeddedOptions].Folder that has the record.
const Subfolder = server.JetStreamStoreDir

const (
	clusterName = "hushsum"
	userNode    = "node" // for a cluster's own client port, with a fresh random password
	userSystem  = "system"
	// A route to a node that is frozen is closed after three of these times at most: until then
	// JetStream sends it a part of what others would answer.
	routePing = 2 * time.Second
)

// StartEmbedded starts a JetStream in this process that accepts connections only from this process
// and, in a cluster, from the other nodes. Every write is synced to the disk before it is
// acknowledged. It fails with [ErrDamaged] if JetStream does not start on its files, which it has
// moved aside then: the process has to be started again, since JetStream may count on in it.
func StartEmbedded(ctx context.Context, o EmbeddedOptions) (*Embedded, error) {
	options := &server.Options{
		ServerName: o.Name,
		DontListen: true,
		JetStream:  true,
		StoreDir:   o.Folder,
		SyncAlways: true,
		// JetStream then also frees space: until then deleted data stays on the disk, 8 MB at a
		// time, where anything older still exists, such as a first model.
		SyncInterval: 2 * time.Second,
		NoSigs:       true,
		NoLog:        true,
	}
	if len(o.Peers) > 0 {
		if o.TLS == nil {
			return nil, errors.New("record: nodes of a cluster need certificates")
		}
		host, port, err := hostPort(o.Listen)
		if err != nil {
			return nil, err
		}
		// Without a client port a server opens no routes; this one is on loopback and requires a
		// password that nobody is told.
		options.DontListen = false
		options.Host, options.Port = "127.0.0.1", server.RANDOM_PORT
		options.Cluster = server.ClusterOpts{
			Name:       clusterName,
			Host:       host,
			Port:       port,
			TLSConfig:  o.TLS,
			TLSTimeout: 5,
			PoolSize:   -1,

			PingInterval: routePing,
			MaxPingsOut:  2,
		}
		for _, peer := range o.Peers {
			if peer == o.Listen {
				continue
			}
			options.Routes = append(options.Routes, &url.URL{Scheme: "nats-route", Host: peer})
		}
	}
	e := &Embedded{options: options}
	if len(o.Peers) > 0 {
		e.secret = nats.NewInbox() + nats.NewInbox()
	}
	if err := e.start(); errors.Is(err, errHung) {
		return nil, setAside(o.Folder, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	connect := []nats.Option{nats.InProcessServer(current{e}), nats.MaxReconnects(-1),
		nats.Name(o.Name), nats.ErrorHandler(quiet)}
	as := func(user string) (*nats.Conn, error) {
		options := connect
		if e.secret != "" {
			options = append(slices.Clone(connect), nats.UserInfo(user, e.secret))
		}
		return nats.Connect("", options...)
	}
	var err error
	e.Conn, err = as(userNode)
	if err == nil && e.secret != "" {
		e.system, err = as(userSystem)
	}
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if e.JS, err = JetStream(e.Conn); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// start starts a server. The caller holds the mutex, or is alone.
func (e *Embedded) start() error {
	options := e.options.Clone()
	if e.secret != "" {
		system := server.NewAccount(server.DEFAULT_SYSTEM_ACCOUNT)
		options.Accounts, options.SystemAccount = []*server.Account{system}, system.Name
		options.Users = []*server.User{
			{Username: userNode, Password: e.secret},
			{Username: userSystem, Password: e.secret, Account: system},
		}
	}
	moved, err := withoutBroken(options.StoreDir, len(options.Routes) == 0)
	if err != nil {
		return err
	}
	e.Moved = append(e.Moved, moved...)
	if len(options.Routes) > 0 {
		if err := forgetIndexes(filepath.Join(options.StoreDir, Subfolder)); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	s, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	e.server = s
	if err := begin(s, options.StoreDir); err != nil {
		// One that counts holds what it would be stopped by.
		stopped := make(chan struct{})
		go func() {
			e.stop()
			close(stopped)
		}()
		select {
		case <-stopped:
		case <-time.After(attemptTime):
		}
		return err
	}
	return nil
}

func (e *Embedded) stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// quiet suppresses errors between calls: the calls fail too.
func quiet(*nats.Conn, *nats.Subscription, error) {}

// current connects to the present server, and again after a restart.
type current struct{ *Embedded }

func (c current) InProcessConn() (net.Conn, error) {
	c.mutex.Lock()
	s := c.server
	c.mutex.Unlock()
	return s.InProcessConn()
}

// Enabled reports whether JetStream is still on: the server switches it off when it meets a disk
// error that it cannot repair.
func (e *Embedded) Enabled() bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.server.JetStreamEnabled()
}

// Restart restarts the server on its files. Conn, JS and everything made from them go on: calls
// that are under way meanwhile fail or take longer.
func (e *Embedded) Restart() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.stop()
	return e.start()
}

func hostPort(s string) (host string, port int, err error) {
	u, err := url.Parse("nats-route://" + s)
	if err == nil {
		_, err = fmt.Sscan(u.Port(), &port)
	}
	if err != nil || u.Hostname() == "" {
		return "", 0, fmt.Errorf("record: %q is not host:port", s)
	}
	return u.Hostname(), port, nil
}

// Close stops the server, gracefully.
func (e *Embedded) Close() {
	for _, conn := range []*nats.Conn{e.Conn, e.system} {
		if conn != nil {
			conn.Close()
		}
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.stop()
}
