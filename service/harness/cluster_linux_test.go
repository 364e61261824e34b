package harness

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/signature"
)

const (
	parties = 5
	length  = 8
	silence = 2 * time.Second
)

// cluster is a federation of real nodes in processes, with parties, a reader and an operator.
type cluster struct {
	*testing.T
	folder   string
	random   *mathrand.Rand
	fed      *federation.Federation
	nodes    []*process
	setups   []setup
	nats     []*process // an operator's, if there are any
	disks    []string   // of nodes, that can be filled; nil where none may be mounted
	between  [][]*Proxy // of each node, to the others, or to NATS
	ways     [][]*Proxy // of each party, to the nodes
	takes    []*taking
	operator ed25519.PrivateKey
	life     context.Context
	cancel   context.CancelFunc
	group    sync.WaitGroup
	witness

	submitted map[[2]int][][]uint64 // by round and party
	// thawed has nodes that were frozen while they led, until they name another leader: for a moment
	// such a node shows what it knew. docs/record-tests.md says so.
	thawed map[int]bool
	last   runner.Status // that was read
}

// kind says which servers have a federation's record.
type kind struct {
	nodes int
	nats  int // servers of the operator's; 0: the nodes' own JetStream
	room  int // for nodes that are added later, which the others do not name as peers
}

func (k kind) String() string {
	if k.nats > 0 {
		return fmt.Sprintf("%d nodes on %d of NATS", k.nodes, k.nats)
	}
	return fmt.Sprintf("%d nodes with JetStream", k.nodes)
}

// newCluster starts everything, and waits for a sum.
func newCluster(t *testing.T, k kind, random *mathrand.Rand) *cluster {
	t.Helper()
	c := &cluster{T: t, folder: t.TempDir(), random: random,
		witness:   witness{models: make(map[int][32]byte)},
		submitted: make(map[[2]int][][]uint64), thawed: make(map[int]bool)}
	if err := os.Mkdir(filepath.Join(c.folder, fileSums), 0o700); err != nil {
		t.Fatal(err)
	}
	identities := c.declare()
	var err error
	if _, c.operator, err = ed25519.GenerateKey(nil); err != nil {
		t.Fatal(err)
	}
	c.write("operators.txt", "operate ann "+hex.EncodeToString(c.operator[32:])+"\n")
	c.makeRoutes()
	at := c.startNATS(k.nats)
	c.configure(k, at)
	for i, p := range c.nodes {
		if i < k.nodes {
			p.start(t)
		}
		t.Cleanup(p.kill)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.life, c.cancel = ctx, cancel
	for i, identity := range identities {
		c.takes = append(c.takes, &taking{index: i, identity: identity,
			folder: filepath.Join(c.folder, fmt.Sprint("party-", i))})
		if err := os.Mkdir(c.takes[i].folder, 0o700); err != nil {
			c.Fatal(err)
		}
		c.joins(ctx, c.takes[i])
	}
	c.group.Go(func() { c.reads(ctx) })
	t.Cleanup(func() { cancel(); c.group.Wait() })
	c.await(0, 2*time.Minute)
	return c
}

func (c *cluster) write(name, text string) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.folder, name), []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// declare writes the federation's files, and returns the parties' identities.
func (c *cluster) declare() (identities []ed25519.PrivateKey) {
	c.Helper()
	var entries []keyexchange.Entry
	for i := range parties {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			c.Fatal(err)
		}
		identities = append(identities, identity)
		entries = append(entries, keyexchange.Entry{Name: fmt.Sprint("party-", i),
			Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(entries)
	if err != nil {
		c.Fatal(err)
	}
	text, err := roster.MarshalText()
	if err != nil {
		c.Fatal(err)
	}
	c.write("roster.txt", string(text))
	c.write("federation.toml", fmt.Sprintf(`name = "vector"
rounds = 5000
model.length = %d
parties.roster = "roster.txt"
parties.drop_out = 0.3
time.step_time = "10s"
time.pace = "200ms"
[privacy]
clip = 1.0
noise = "discrete-gaussian"
epsilon = 5000
`, length))
	if c.fed, err = federation.Read(filepath.Join(c.folder, "federation.toml")); err != nil {
		c.Fatal(err)
	}
	return identities
}

// makeRoutes makes the certificate that nodes of a cluster know each other by.
func (c *cluster) makeRoutes() {
	c.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "r"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		c.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.Fatal(err)
	}
	c.write(routesPEM, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))+
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// ports are those that were given.
var ports sync.Map

// free finds an address of loopback that nobody has, below the ports that the system gives to
// whoever asks for any.
func (c *cluster) free() string {
	c.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20_000+mathrand.IntN(12_000)))
		if err != nil {
			continue
		}
		defer l.Close()
		if _, given := ports.LoadOrStore(l.Addr().String(), true); !given {
			return l.Addr().String()
		}
	}
	c.Fatal("no port is free")
	return ""
}

// configure writes the nodes' setups.
func (c *cluster) configure(k kind, nats []string) {
	c.Helper()
	var listens, routes []string
	for range k.nodes + k.room {
		listens, routes = append(listens, c.free()), append(routes, c.free())
	}
	for range parties {
		var ways []*Proxy
		for _, at := range listens {
			ways = append(ways, NewProxy(c, at))
		}
		c.ways = append(c.ways, ways)
	}
	for i := range k.nodes + k.room {
		s := setup{Name: fmt.Sprint("node-", i), Listen: listens[i], Admin: c.free(), Silence: silence,
			Federation: filepath.Join(c.folder, "federation.toml")}
		var between []*Proxy
		switch {
		case k.nats > 0:
			var all []string
			for j := range nats {
				p := NewProxy(c, nats[(i+j)%len(nats)])
				between, all = append(between, p), append(all, "nats://"+p.Address())
			}
			s.NATS, s.Replicas = strings.Join(all, ","), k.nats
		case k.nodes > 1:
			s.Route = routes[i]
			for j, route := range routes {
				switch {
				case j >= k.nodes && j != i:
					continue
				case j != i:
					p := NewProxy(c, route)
					between, route = append(between, p), p.Address()
				}
				s.Peers = append(s.Peers, route)
			}
		}
		folder := filepath.Join(c.folder, s.Name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			c.Fatal(err)
		}
		if err := save(filepath.Join(folder, fileSetup), s); err != nil {
			c.Fatal(err)
		}
		c.setups, c.between = append(c.setups, s), append(c.between, between)
		c.nodes = append(c.nodes, &process{folder: folder})
		if at := disk40(c, filepath.Join(folder, "node")); at != "" {
			c.disks = append(c.disks, at)
		}
	}
}

// client asks pages.
var client = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{
	DisableKeepAlives: true}}

// status reads the federation's status at a node, nil if that does not know it.
func (c *cluster) status(node int) *runner.Status {
	answer, err := client.Get("http://" + c.setups[node].Admin + "/v1/federations/" + c.fed.ID)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	s := new(runner.Status)
	if answer.StatusCode != 200 || json.NewDecoder(answer.Body).Decode(s) != nil || !s.Known() {
		return nil
	}
	return s
}

// shownBy returns what a status shows.
func shownBy(s *runner.Status) (out shown) {
	out.round = s.Round
	if s.Spent != nil {
		out.spent = s.Spent.Bare().Upper
	}
	_, _ = fmt.Sscan(s.Orders, &out.orders)
	return out
}

// reads reads the status again and again, at any node.
func (c *cluster) reads(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		began, at := time.Now(), mathrand.IntN(len(c.setups))
		s := c.status(at)
		if s == nil {
			continue
		}
		c.mutex.Lock()
		if s.Round >= c.last.Round {
			c.last = *s
		}
		if s.Leader != "" && s.Leader != c.setups[at].Name {
			delete(c.thawed, at)
		}
		old := s.Leader == ""
		for node := range c.thawed {
			old = old || s.Leader == c.setups[node].Name
		}
		c.mutex.Unlock()
		if old { // it says that it may be
			continue
		}
		what := fmt.Sprintf("at node %d: %s of %s", at, s.State, s.Leader)
		c.saw(parties, shows{"read", what}, began, saw{shown: shownBy(s)})
	}
}

// orders has the operator order something, until a node confirms it.
func (c *cluster) orders(what string) {
	c.Helper()
	said := c.order(what)
	for deadline := time.Now().Add(30 * time.Second); said != ""; said = c.order(what) {
		if time.Now().After(deadline) {
			c.Fatalf("no node confirms %s: %s", what, said)
		}
		time.Sleep(silence / 4)
	}
}

// order has the operator order something at any node, and returns what stands against it.
func (c *cluster) order(what string) string {
	at := mathrand.IntN(len(c.setups))
	seen := c.status(at)
	if seen == nil || seen.Leader == "" {
		return "nobody leads"
	}
	if (seen.State == "paused") == (what == "pause") { // by an order whose answer was lost
		return ""
	}
	began, out := time.Now(), saw{unknown: true}
	defer func() { c.saw(parties+1, shows{"order", what}, began, out) }()
	r, err := http.NewRequest(http.MethodPost, "http://"+c.setups[at].Admin+"/v1/federations/"+
		c.fed.ID+"/"+what, nil)
	if err == nil {
		r.Header.Set("If-Match", strconv.Quote(seen.Orders))
		err = signature.Sign(r, nil, c.operator, time.Now())
	}
	if err != nil {
		c.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	_, _ = b.ReadFrom(answer.Body)
	s := new(runner.Status)
	if answer.StatusCode != 200 || json.Unmarshal(b.Bytes(), s) != nil {
		return b.String()
	}
	out = saw{shown: shownBy(s)}
	return ""
}

// now returns the status that was read last.
func (c *cluster) now() runner.Status {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.last
}

// leader returns the node that led last.
func (c *cluster) leader() (which int) {
	_, _ = fmt.Sscanf(c.now().Leader, "node-%d", &which)
	return min(which, len(c.nodes)-1)
}

// ready returns what a node's door says.
func (c *cluster) ready(node int) string {
	answer, err := client.Get("http://" + c.setups[node].Listen + "/readyz")
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	_, _ = b.ReadFrom(answer.Body)
	return b.String()
}

// await waits for the sum of a round after another, or for a door that names damage, which it
// returns.
func (c *cluster) await(round int, limit time.Duration) (damage string) {
	c.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		for i, p := range c.nodes {
			if over, why := p.ended(); over { // as a supervisor does
				c.Logf("node %d ends by itself: %s", i, why)
				p.start(c.T)
			}
			if said := c.ready(i); strings.Contains(said, "damaged") {
				damage = said
			}
		}
		if s := c.now(); s.Round-s.Lost > round && lastSum(c.sums()) > round {
			return ""
		}
		if damage != "" {
			return damage
		}
		time.Sleep(50 * time.Millisecond)
	}
	var said []string
	for i := range c.nodes {
		said = append(said, c.ready(i))
	}
	c.Fatalf("no sum after round %d in %v, and no damage is named: %q, %+v", round, limit, said,
		c.now())
	return ""
}

// sums reads what nodes have left.
func (c *cluster) sums() (all []sumOf) {
	names, _ := filepath.Glob(filepath.Join(c.folder, fileSums, "*"))
	for _, name := range names {
		var s sumOf
		if load(name, &s) == nil { // not of one that was killed while it wrote
			all = append(all, s)
		}
	}
	return all
}

func lastSum(all []sumOf) (round int) {
	for _, s := range all {
		round = max(round, s.Round)
	}
	return round
}

// finish ends all, and compares what everybody saw.
func (c *cluster) finish() (rounds, ops int) {
	c.Helper()
	c.cancel()
	c.group.Wait()
	for _, p := range c.nodes {
		p.kill()
	}
	if s := c.now(); s.Outages > 0 {
		c.Errorf("%d rounds were lost in outages", s.Outages)
	}
	seen := make(map[int]sumOf)
	for _, s := range c.sums() {
		if had, is := seen[s.Round]; is && (!slices.Equal(had.Parties, s.Parties) ||
			!slices.EqualFunc(had.Sum, s.Sum, slices.Equal)) {
			c.Errorf("round %d has two sums", s.Round)
		}
		seen[s.Round] = s
		c.exact(s)
	}
	return len(seen), c.check(c.T)
}

// exact compares a sum with the submissions in it.
func (c *cluster) exact(s sumOf) {
	c.Helper()
	for l, lane := range c.fed.Settled.Layout() {
		want := make([]uint64, len(s.Sum[l]))
		for _, i := range s.Parties {
			values := c.submitted[[2]int{s.Round, i}]
			if values == nil {
				c.Errorf("party %d is in the sum of round %d, and has submitted nothing", i, s.Round)
				return
			}
			for k, x := range values[l] {
				want[k] += x
			}
		}
		for k, x := range want {
			if (x-s.Sum[l][k])<<(64-lane.Bits) != 0 {
				c.Errorf("the sum of round %d is not that of parties %v", s.Round, s.Parties)
				return
			}
		}
	}
}
