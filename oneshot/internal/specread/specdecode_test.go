package specread

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"math/bits"
	"os"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
)

type octets []byte

func (o *octets) UnmarshalText(b []byte) (err error) {
	*o, err = hex.DecodeString(string(b))
	return err
}

type person struct {
	Name   string `json:"name"`
	Public octets `json:"identity_key"`
	Secret octets `json:"private_key"`
}

type file struct {
	Config struct {
		Label         string `json:"label"`
		Length        int    `json:"length"`
		Bits          int    `json:"bits"`
		Noise         string `json:"noise"`
		MinSurvivors  int    `json:"min_survivors"`
		Colluders     int    `json:"colluders"`
		Faults        int    `json:"faults"`
		Disputes      int    `json:"disputes"`
		PerPolynomial int    `json:"per_polynomial"`
		Covered       bool   `json:"covered"`
		KEM           int    `json:"kem"`
		Stale         int    `json:"stale"`
	} `json:"config"`
	Figures struct {
		Modulus     uint64 `json:"modulus"`
		Scale       int64  `json:"scale"`
		Spare       int    `json:"spare"`
		Polynomials int    `json:"polynomials"`
		Quorum      int    `json:"quorum"`
	} `json:"figures"`
	Parties         []person `json:"parties"`
	Members         []person `json:"members"`
	RosterDigest    octets   `json:"roster_digest"`
	CommitteeDigest octets   `json:"committee_digest"`
	ConfigDigest    octets   `json:"config_digest"`
	Round           uint64   `json:"round"`
	Broadcast       octets   `json:"broadcast"`
	Context         octets   `json:"context"`
	Dealings        []struct {
		Party     int      `json:"party"`
		Made      uint64   `json:"made"`
		Values    []int64  `json:"values"`
		Key       octets   `json:"key"`
		Noise     []int64  `json:"noise"`
		Masked    octets   `json:"masked"`
		Plain     []octets `json:"plain"`
		Root      octets   `json:"root"`
		Statement octets   `json:"statement"`
	} `json:"dealings"`
	Messages []struct {
		From    string `json:"from"`
		To      string `json:"to"`
		Type    int    `json:"type"`
		Message octets `json:"message"`
	} `json:"messages"`
	Included []int   `json:"included"`
	Chain    octets  `json:"chain"`
	Sum      []int64 `json:"sum"`
}

func h(label string, parts ...[]byte) []byte {
	d := sha256.Sum256(append([]byte(label), slices.Concat(parts...)...))
	return d[:]
}

func u32(x int) []byte    { return binary.BigEndian.AppendUint32(nil, uint32(x)) }
func u64(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }

const degree = 2048

var order, _ = new(big.Int).
	SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

// check holds a file with what is derived of it.
type check struct {
	*testing.T
	file
	k      int      // bits of a coefficient
	n      int      // coefficients of y
	psi    []uint64 // powers of ψ
	nodes  int      // leaves of the tree
	bodies map[string][]byte
}

func (c *check) want(what string, got, want []byte) {
	c.Helper()
	if !bytes.Equal(got, want) {
		c.Fatalf("%s: %x, want %x", what, got, want)
	}
}

func mulMod(a, b, q uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, r := bits.Div64(hi, lo, q)
	return r
}

func powMod(a, e, q uint64) uint64 {
	x := uint64(1)
	for ; e > 0; e >>= 1 {
		if e&1 == 1 {
			x = mulMod(x, a, q)
		}
		a = mulMod(a, a, q)
	}
	return x
}

// roots fills in the powers of ψ (§4.1).
func (c *check) roots() {
	q := c.Figures.Modulus
	for g := uint64(2); ; g++ {
		psi := powMod(g, (q-1)/(2*degree), q)
		if powMod(psi, degree, q) != q-1 {
			continue
		}
		c.psi = []uint64{1}
		for range 2*degree - 1 {
			c.psi = append(c.psi, mulMod(c.psi[len(c.psi)-1], psi, q))
		}
		return
	}
}

// element returns the coefficients of a_j (§4.1).
func (c *check) element(j int) []uint64 {
	q := c.Figures.Modulus
	block, _ := aes.NewCipher(h(labels.OneshotRing, c.Context))
	stream := make([]byte, 8*4*degree)
	cipher.NewCTR(block, append(u64(uint64(j)), make([]byte, 8)...)).XORKeyStream(stream, stream)
	values := make([]uint64, 0, degree)
	for ; len(values) < degree; stream = stream[8:] {
		if x := binary.LittleEndian.Uint64(stream) & (1<<c.k - 1); x < q {
			values = append(values, x)
		}
	}
	inverse := powMod(degree, q-2, q)
	out := make([]uint64, degree)
	for t := range out {
		var sum uint64
		for i, v := range values {
			power := (2*int(bits.Reverse16(uint16(i))>>5) + 1) * t % (2 * degree)
			sum = (sum + mulMod(v, c.psi[(2*degree-power)%(2*degree)], q)) % q
		}
		out[t] = mulMod(sum, inverse, q)
	}
	return out
}

// unpack reads packed coefficients (§4.2).
func (c *check) unpack(b []byte) []uint64 {
	le := slices.Clone(b)
	slices.Reverse(le)
	number, mask := new(big.Int).SetBytes(le), new(big.Int).SetUint64(1<<c.k-1)
	out := make([]uint64, c.n)
	for i := range out {
		out[i] = new(big.Int).And(number, mask).Uint64()
		number.Rsh(number, uint(c.k))
		if out[i] >= c.Figures.Modulus {
			c.Fatal("a coefficient is not reduced")
		}
	}
	if number.Sign() != 0 {
		c.Fatal("padding")
	}
	return out
}

// times returns coefficient i of a·s modulo X^N + 1 and q.
func (c *check) times(a []uint64, s []int64, i int) uint64 {
	q := int64(c.Figures.Modulus)
	var sum uint64
	for j, x := range s {
		at, sign := i-j, int64(1)
		if at < 0 {
			at, sign = at+degree, -1
		}
		sum = (sum + mulMod(a[at], uint64(((sign*x)%q+q)%q), uint64(q))) % uint64(q)
	}
	return sum
}

func (c *check) scalar(b []byte) *big.Int {
	le := slices.Clone(b)
	slices.Reverse(le)
	x := new(big.Int).SetBytes(le)
	if x.Cmp(order) >= 0 {
		c.Fatal("a scalar is not reduced")
	}
	return x
}

// scalars packs the key (§5.1).
func scalars(key []int64) []*big.Int {
	var out []*big.Int
	for lanes := range slices.Chunk(key, 13) {
		x := new(big.Int)
		for l := len(lanes) - 1; l >= 0; l-- {
			x.Lsh(x, 19).Add(x, big.NewInt(lanes[l]))
		}
		out = append(out, x.Mod(x, order))
	}
	return out
}

// solve returns the coefficients of the polynomial through the points, by Gauss.
func solve(xs []int64, ys []*big.Int) []*big.Int {
	n := len(xs)
	rows := make([][]*big.Int, n)
	for i, x := range xs {
		for j := range n {
			rows[i] = append(rows[i], new(big.Int).Exp(big.NewInt(x), big.NewInt(int64(j)), order))
		}
		rows[i] = append(rows[i], new(big.Int).Set(ys[i]))
	}
	for i := range n {
		// minors of a Vandermonde matrix are not zero
		inverse := new(big.Int).ModInverse(rows[i][i], order)
		for j := i; j <= n; j++ {
			rows[i][j].Mul(rows[i][j], inverse).Mod(rows[i][j], order)
		}
		for k := range n {
			if k == i {
				continue
			}
			factor := new(big.Int).Set(rows[k][i])
			for j := i; j <= n; j++ {
				rows[k][j].Sub(rows[k][j], new(big.Int).Mul(factor, rows[i][j])).Mod(rows[k][j], order)
			}
		}
	}
	out := make([]*big.Int, n)
	for i := range out {
		out[i] = rows[i][n]
	}
	return out
}

func TestVectors(t *testing.T) {
	for _, name := range []string{"round.json", "covered.json", "stale.json"} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile("../../testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			c := &check{T: t, bodies: make(map[string][]byte)}
			if err := json.Unmarshal(b, &c.file); err != nil {
				t.Fatal(err)
			}
			c.k = bits.Len64(c.Figures.Modulus)
			c.n = c.Config.Length + c.Figures.Spare
			c.nodes = 1 << bits.Len(uint(len(c.Members)-1))
			c.roots()
			c.configuration()
			c.headers()
			c.opening()
			c.dealings()
			c.rest()
		})
	}
}

// configuration checks §2.
func (c *check) configuration() {
	roster := func(list []person) []byte {
		parts := [][]byte{u32(len(list))}
		for _, p := range list {
			parts = append(parts, []byte{byte(len(p.Name))}, []byte(p.Name), p.Public)
		}
		return h(labels.Roster, parts...)
	}
	c.want("roster", c.RosterDigest, roster(c.Parties))
	c.want("committee", c.CommitteeDigest, roster(c.Members))
	f := &c.Config
	covered := byte(0)
	if f.Covered {
		covered = 1
	}
	var stale []byte
	if f.Stale > 0 {
		stale = u32(f.Stale)
	}
	c.want("configuration", c.ConfigDigest,
		h(labels.OneshotConfig, []byte{byte(len(f.Label))}, []byte(f.Label),
			c.RosterDigest, c.CommitteeDigest, u32(f.Length), u32(f.Bits), u32(f.MinSurvivors),
			u32(f.Colluders), u32(f.Faults), u32(f.Disputes), u32(f.PerPolynomial),
			[]byte{byte(len(f.Noise))}, []byte(f.Noise), []byte{covered, byte(f.KEM)}, stale))
}

// headers checks §6 and keeps the bodies by sender and type.
func (c *check) headers() {
	for _, m := range c.Messages {
		session, sender := []byte(c.Context), bytes.Repeat([]byte{0xff}, 4)
		if m.Type <= 66 {
			session = c.ConfigDigest
		}
		var i int
		if _, err := fmt.Sscanf(m.From, "party %d", &i); err == nil {
			sender = u32(i)
		} else if _, err := fmt.Sscanf(m.From, "member %d", &i); err == nil {
			sender = binary.BigEndian.AppendUint32(nil, 1<<31+uint32(i))
		}
		header := slices.Concat([]byte{1, byte(m.Type)}, session, u64(c.Round), sender)
		c.want("header", m.Message[:len(header)], header)
		key := fmt.Sprintf("%s %d", m.From, m.Type)
		if m.Type == 68 {
			key = fmt.Sprintf("%s %d", m.To, m.Type)
		}
		c.bodies[key] = m.Message[len(header):]
	}
}

func (c *check) signed(key []byte, label string, statement, signature []byte) {
	c.Helper()
	if !ed25519.Verify(key, slices.Concat([]byte{byte(len(label))}, []byte(label), statement),
		signature) {
		c.Fatalf("a signature of kind %q does not verify", label)
	}
}

// present is how many members have keys: all but the last.
func (c *check) present() int { return len(c.Members) - 1 }

// opening checks keys and the context (§6).
func (c *check) opening() {
	body := c.bodies["server 66"]
	c.want("broadcast", body[:32], h(labels.OneshotBroadcast, c.Broadcast))
	c.want("members", body[32:33], []byte{1<<c.present() - 1})
	rest := body[33:]
	parts := [][]byte{c.ConfigDigest, u64(c.Round), body[:33]}
	for k := range c.present() {
		c.want("key", rest[:96], c.bodies[fmt.Sprintf("member %d 65", k)])
		c.signed(c.Members[k].Public, labels.OneshotKey,
			slices.Concat(c.ConfigDigest, u64(c.Round), u32(k), rest[:32]), rest[32:96])
		parts = append(parts, rest[:32])
		rest = rest[96:]
	}
	c.want("context", c.Context, h(labels.OneshotContext, parts...))
}

// dealings checks what each party made (§§4, 5).
func (c *check) dealings() {
	f, q := &c.Config, c.Figures.Modulus
	a := c.element(0)
	kem := hpke.DHKEM(ecdh.X25519())
	r := f.Faults + f.PerPolynomial
	for i, d := range c.Dealings {
		key := make([]int64, degree)
		for j, b := range d.Key {
			key[j] = int64(int8(b))
		}
		for j, y := range c.unpack(d.Masked) {
			plain := c.Figures.Scale * d.Noise[j]
			if j < f.Length {
				plain += d.Values[j]
			}
			if want := (c.times(a, key, j) + uint64((plain%int64(q)+int64(q))%int64(q))) % q; y != want {
				c.Fatalf("party %d, coefficient %d: %d, want %d", i, j, y, want)
			}
		}
		body := c.bodies[fmt.Sprintf("party %d 67", i)]
		masked, body := body[:len(d.Masked)], body[len(d.Masked):]
		var commitment []byte
		if f.Covered {
			commitment, body = body[:32], body[32:]
			c.cover(i, d.Plain, masked, d.Masked, commitment)
		} else {
			c.want("y", masked, d.Masked)
		}
		label, made := labels.OneshotParty, []byte(nil)
		if f.Stale > 0 {
			label, made, body = labels.OneshotStale, body[:8], body[8:]
			c.want("made", made, u64(d.Made))
			if d.Made == 0 || d.Made > c.Round || c.Round-d.Made > uint64(f.Stale) {
				c.Fatalf("made in round %d", d.Made)
			}
		}
		level := make([][]byte, c.nodes)
		for k := range level {
			level[k] = make([]byte, 32)
			if k < c.present() {
				level[k] = h(labels.OneshotLeaf, c.Context, u32(i), u32(k), d.Plain[k])
				c.want("leaf", body[32*k:][:32], level[k])
			}
		}
		for len(level) > 1 {
			var up [][]byte
			for k := 0; k < len(level); k += 2 {
				up = append(up, h(labels.OneshotNode, level[k], level[k+1]))
			}
			level = up
		}
		c.want("root", level[0], d.Root)
		statement := slices.Concat(c.Context, u32(i), d.Root, h(labels.OneshotMasked, masked),
			commitment, made)
		c.want("statement", d.Statement, statement)
		body = body[32*c.present():]
		size := 32 + len(d.Plain[0]) + 16
		for k := range c.present() {
			private, err := kem.NewPrivateKey(c.Members[k].Secret)
			if err != nil {
				c.Fatal(err)
			}
			info := slices.Concat([]byte(labels.OneshotBox), c.Context, u32(i), u32(k))
			plain, err := hpke.Open(private, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), info, body[:size])
			if err != nil {
				c.Fatal(err)
			}
			c.want("box", plain, d.Plain[k])
			body = body[size:]
		}
		c.signed(c.Parties[i].Public, label, statement, body)

		// The polynomials through the first r members have the packed key below.
		secrets := scalars(key)
		for p := range c.Figures.Polynomials {
			var xs []int64
			var ys []*big.Int
			for k := range c.present() {
				xs, ys = append(xs, int64(k+1)), append(ys, c.scalar(d.Plain[k][32*p:][:32]))
			}
			coefficients := solve(xs, ys)
			for j, x := range coefficients {
				want := new(big.Int)
				switch at := p*f.PerPolynomial + j; {
				case j < f.PerPolynomial && at < len(secrets):
					want = secrets[at]
				case j >= f.PerPolynomial && j < r:
					continue // uniform
				}
				if x.Cmp(want) != 0 {
					c.Fatalf("party %d, polynomial %d, coefficient %d", i, p, j)
				}
			}
		}
	}
}

// cover checks §4.4: f + 1 values of the cover's polynomial give its key.
func (c *check) cover(party int, plain []octets, covered, masked, commitment []byte) {
	var xs []int64
	var ys []*big.Int
	for k := range c.present() {
		xs, ys = append(xs, int64(k+1)), append(ys, c.scalar(plain[k][32*c.Figures.Polynomials:][:32]))
	}
	coefficients := solve(xs, ys)
	for _, x := range coefficients[c.Config.Faults+1:] {
		if x.Sign() != 0 {
			c.Fatal("the cover's polynomial has too high a degree")
		}
	}
	key := coefficients[0].FillBytes(make([]byte, 32))
	slices.Reverse(key)
	c.want("commitment", commitment, h(labels.OneshotCommitment, c.Context, u32(party), key))
	stream, err := hkdf.Key(sha256.New, key, nil, labels.OneshotCoverKey, 32)
	if err != nil {
		c.Fatal(err)
	}
	block, _ := aes.NewCipher(stream)
	out := slices.Clone(covered)
	cipher.NewCTR(block, make([]byte, 16)).XORKeyStream(out, out)
	c.want("covered y", out, masked)
}

// rest checks batches, the chain, certificate, parts and the sum (§7).
func (c *check) rest() {
	chain := []byte(c.Context)
	for _, i := range c.Included {
		chain = h(labels.OneshotChain, chain, c.Dealings[i].Statement)
	}
	c.want("chain", c.Chain, chain)
	c.want("closing", c.bodies["server 71"], slices.Concat(u32(1), u32(len(c.Included)), chain))
	certificate := c.bodies["server 73"]
	if len(certificate)/68 < c.Figures.Quorum {
		c.Fatal("too few signatures")
	}
	for one := range slices.Chunk(certificate, 68) {
		k := binary.BigEndian.Uint32(one)
		c.signed(c.Members[k].Public, labels.OneshotClosing,
			slices.Concat(c.Context, chain, u32(len(c.Included))), one[4:])
	}
	bitset := byte(0)
	for i := range c.Parties {
		if slices.Contains(c.Included, i) {
			bitset |= 1 << i
		}
	}
	c.want("settled", c.bodies["server 70"], append(u32(1), bitset))
	for k := range c.present() {
		batch := c.bodies[fmt.Sprintf("member %d 68", k)]
		c.want("batch", batch[:4], u32(1))
		size := (len(batch) - 4) / len(c.Parties)
		box := 32 + len(c.Dealings[0].Plain[0]) + 16
		for i := range c.Parties {
			one := batch[4+i*size:][:size]
			c.want("entry", one[:4], u32(i))
			submission := c.bodies[fmt.Sprintf("party %d 67", i)]
			c.want("signature", one[4:68], submission[len(submission)-64:])
			c.want("masked", one[68:100], c.Dealings[i].Statement[68:100])
			at := 100
			if c.Config.Covered {
				at += 32
			}
			if c.Config.Stale > 0 {
				at += 8
			}
			c.want("commitment and round", one[100:at], c.Dealings[i].Statement[100:at])
			node := h(labels.OneshotLeaf, c.Context, u32(i), u32(k), c.Dealings[i].Plain[k])
			place := k
			for ; at < size-box; at += 32 {
				if place%2 == 0 {
					node = h(labels.OneshotNode, node, one[at:at+32])
				} else {
					node = h(labels.OneshotNode, one[at:at+32], node)
				}
				place /= 2
			}
			c.want("path", node, c.Dealings[i].Root)
			c.want("box", one[at:], submission[len(submission)-64-(c.present()-k)*box:][:box])
		}
		part := c.bodies[fmt.Sprintf("member %d 74", k)]
		for p := range c.Figures.Polynomials {
			sum := new(big.Int)
			for _, i := range c.Included {
				sum.Add(sum, c.scalar(c.Dealings[i].Plain[k][32*p:][:32]))
			}
			if c.scalar(part[32*p:][:32]).Cmp(sum.Mod(sum, order)) != 0 {
				c.Fatalf("member %d, polynomial %d: wrong part", k, p)
			}
		}
		for j, i := range c.Included {
			if c.Config.Covered {
				c.want("cover", part[32*(c.Figures.Polynomials+j):][:32],
					c.Dealings[i].Plain[k][32*c.Figures.Polynomials:][:32])
			}
		}
	}
	for j, got := range c.Sum {
		want := int64(0)
		for _, i := range c.Included {
			want += c.Dealings[i].Values[j]
			if c.Config.Noise != "" {
				want += c.Dealings[i].Noise[j]
			}
		}
		if got != want {
			c.Fatalf("sum %d is %d, want %d", j, got, want)
		}
	}
}
