package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
)

func serve(ctx context.Context, args []string, std streams) error {
	f := flags("serve", "serve [flags]", `
It runs a node of the server: the parties' door, the operators' page, and the record on NATS
JetStream. By default, JetStream runs in this process and its folder; with --cluster and --peers
three nodes form a cluster; with --nats it is your own. A node may be stopped, upgraded or killed at
any moment: decisions are recorded before they are sent.

At its first start it writes two operators' tokens to a file in its folder, and keeps their hashes.
At each start it prints the fingerprint of the door's certificate, which parties pin.

If OTEL_EXPORTER_OTLP_ENDPOINT names an OpenTelemetry collector, it receives the spans of rounds
over HTTP.`, std)
	var c node.Options
	var operators, log, peers, clusterCA, clusterCert, clusterKey string
	var external natsFlags
	var declared files
	f.StringVar(&c.Folder, "folder", "hushsum", "`folder` of this node's keys and record")
	f.StringVar(&c.Name, "name", "", "this node's `name`; chosen at the first start")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:8443", "`host:port` of the parties' door")
	f.StringVar(&c.Advertise, "advertise", "", "`https://host:port` at which other nodes reach the "+
		"door")
	f.StringVar(&c.Admin, "admin", "127.0.0.1:8080", "`host:port` of the page; keep it on loopback")
	f.StringVar(&operators, "operators", "", "`file` of operators' keys: lines of operate|read NAME KEY")
	f.StringVar(&c.CertificateFile, "cert", "",
		"PEM `file` of the door's certificate; default: its own; FILE.next holds the next one")
	f.StringVar(&c.CertificateKey, "cert-key", "", "PEM `file` of its key")
	f.DurationVar(&c.Overlap, "cert-overlap", 7*24*time.Hour,
		"time that a certificate is announced before it is used")
	f.StringVar(&c.KeyFile, "key", "", "`file` with the keys that seal records, the same on all nodes: the "+
		"first seals, all open; it may change while the node runs")
	f.StringVar(&external.address, "nats", "",
		"`URL` of an external NATS with JetStream; @FILE reads it from a file")
	f.StringVar(&external.ca, "nats-ca", "", "PEM `file` of the authority of its certificate")
	f.StringVar(&external.certificate, "nats-cert", "", "PEM `file` of this node's certificate for it")
	f.StringVar(&external.key, "nats-key", "", "PEM `file` of the certificate's key")
	f.StringVar(&external.credentials, "nats-creds", "", "credentials `file` for it")
	f.StringVar(&external.seed, "nats-nkey", "", "`file` with the seed of an nkey for it")
	f.IntVar(&c.Replicas, "replicas", 1, "copies that an external JetStream keeps, 1 or 3")
	f.StringVar(&c.Cluster, "cluster", "", "`host:port` for the other nodes of a cluster")
	f.StringVar(&peers, "peers", "", "`host:port,…` of all its nodes, this one included")
	f.StringVar(&clusterCA, "cluster-ca", "", "PEM `file` of the authority of the nodes' certificates")
	f.StringVar(&clusterCert, "cluster-cert", "", "PEM `file` of this node's certificate")
	f.StringVar(&clusterKey, "cluster-key", "", "PEM `file` of its key")
	f.DurationVar(&c.Silence, "silence", 10*time.Second, "time without a leader after which another "+
		"node takes over")
	f.Float64Var(&c.PerSecond, "rate", 50, "requests a second from a party, or from an address")
	f.StringVar(&c.PublicLog, "public-log", "", "publish the log of this `name`, such as "+
		"sums.example.org/log, under /log/ at the door; the same on all nodes")
	f.BoolVar(&c.LogRounds, "public-log-rounds", false, "have it say how far each federation has "+
		"come at once, and not once a day")
	f.Var(&declared, "federation", "`file` of a federation to create if it does not exist; repeatable")
	f.StringVar(&log, "log", "info", "lowest `level` that is logged")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	var err error
	if c.NATS, c.NATSOptions, err = external.read(); err != nil {
		return err
	}
	if c.Log, err = logger(std.err, log); err != nil {
		return err
	}
	switch {
	case (c.CertificateFile == "") != (c.CertificateKey == ""):
		return misuse("--cert and --cert-key go together")
	case (c.Cluster == "") != (peers == ""):
		return misuse("--cluster and --peers go together")
	case c.Cluster != "" && c.NATS != "":
		return misuse("--cluster and --nats exclude each other")
	case (c.Cluster != "" || c.NATS != "") && c.KeyFile == "":
		return misuse("several nodes need one --key; make it with: (umask 077; openssl rand -hex 32 > " +
			"seal.key)")
	case c.Cluster != "" && strings.Count(peers, ",") < 2:
		return misuse("--peers names all nodes of the cluster, three or more; two cannot continue " +
			"without each other")
	case c.LogRounds && c.PublicLog == "":
		return misuse("--public-log-rounds goes with --public-log")
	case strings.ContainsAny(c.PublicLog, " +\t\n") || len(c.PublicLog) > 200:
		return misuse("--public-log takes a name without spaces and +, such as sums.example.org/log")
	case c.Overlap <= 0:
		return misuse("--cert-overlap must be a time above 0, such as 168h")
	case !(c.PerSecond > 0):
		return misuse("--rate must be a number above 0")
	case c.Silence < 3*time.Second:
		return misuse("--silence must be 3s or more: a leader announces itself every second")
	case c.Replicas != 1 && c.Replicas != 3:
		return misuse("--replicas must be 1 or 3")
	}
	if operators != "" {
		if c.Operators, err = page.OpenOperators(operators, c.Log); err != nil {
			return err
		}
	}
	for _, name := range []string{c.CertificateKey, clusterKey} {
		if name != "" {
			if err := keyfile.Private(name); err != nil {
				return err
			}
		}
	}
	if c.Cluster != "" {
		c.Peers = strings.Split(peers, ",")
		if c.ClusterTLS, err = clusterTLS(clusterCA, clusterCert, clusterKey); err != nil {
			return err
		}
	}
	var sent func()
	if c.Traces, sent, err = traces(ctx, c.Log); err != nil {
		return err
	}
	defer sent()
	n, err := node.Start(ctx, c)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w, since another program uses that port", err)
	}
	if err != nil {
		return err
	}
	hangs := false // and closing would wait too
	defer func() {
		if !hangs {
			n.Close()
		}
	}()
	fmt.Fprintf(std.out, "door         %s\nfingerprint  %s\npage         %s\n", n.Address,
		n.Fingerprint, n.Page)
	if n.TokensFile != "" {
		fmt.Fprintf(std.out, "tokens       %s  (to read and to operate; delete it once you have them)\n",
			n.TokensFile)
	}
	for _, file := range declared {
		f, read, err := federation.ReadFiles(file)
		if err != nil {
			return inFile(file, err)
		}
		for _, note := range notes(f) {
			c.Log.Warn(note)
		}
		made, err := n.Create(ctx, *read)
		if errors.Is(err, record.ErrDamaged) { // a backup can be restored to a node that runs
			c.Log.Error("a federation is not declared", "federation", f.Job.Name, "error", err.Error())
			continue
		}
		if err != nil && !errors.Is(err, record.ErrExists) {
			return err
		}
		if made != nil {
			fmt.Fprintf(std.out, "federation   %s  %s\n", made.Job.Name, made.ID)
		}
	}
	if err := started(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(std.out, "stopping: recording what is held")
		return nil
	case err := <-n.Removed: // it hands over, and ends
		return err
	case err := <-n.Hangs:
		hangs = true
		return err
	}
}

// files is a flag that may be given more than once.
type files []string

func (l *files) String() string { return strings.Join(*l, " ") }

func (l *files) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// clusterTLS has nodes show each other certificates of one authority.
func clusterTLS(ca, certificate, key string) (*tls.Config, error) {
	if ca == "" || certificate == "" || key == "" {
		return nil, misuse("a cluster needs --cluster-ca, --cluster-cert and --cluster-key")
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", ca)
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}
