package crowd

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// Crowd is the parties after set-up. It is not safe for concurrent use.
type Crowd struct {
	options    Options
	identities []ed25519.PrivateKey
	session    [32]byte
	round      uint64
	counts     Counts

	// The pairs of party i and a higher party are first[i] to first[i+1]−1; higher says
	// which party, and is nil on the complete graph.
	first  []int
	higher []int32
	chains []keyexchange.Chain

	workers []worker
}

// worker holds what one goroutine needs, made once.
type worker struct {
	submitted []uint64 // what it has of all submissions, Parties × Length
	input     []uint64
	mask      []uint64
	room      *masking.Vector
	unmask    []unmask
	seeds     []masking.Seed // of self masks
	counts    Counts
	err       error
}

// unmask is a mask between one who dropped out and one who did not.
type unmask struct {
	seed  masking.Seed
	added bool // by the one who submitted
}

// New sets a crowd up: keys of all parties, signed and checked, and the chains of
// all pairs. It fails with [ErrConfig], and with the error of ctx when that ends.
func New(ctx context.Context, o Options) (*Crowd, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	c := &Crowd{options: o, workers: make([]worker, o.Workers)}
	for w := range c.workers {
		room, err := masking.NewVector(o.layout())
		if err != nil {
			return nil, err
		}
		c.workers[w].room, c.workers[w].mask = room, make([]uint64, o.Length)
		c.workers[w].input = make([]uint64, o.Length)
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.agree(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// connect lists the pairs.
func (c *Crowd) connect() error {
	n := c.options.Parties
	c.first = make([]int, n+1)
	if c.options.Degree == 0 || c.options.Degree == n-1 {
		for i := range n {
			c.first[i+1] = c.first[i] + n - 1 - i
		}
	} else {
		members := make([]int, n)
		for i := range members {
			members[i] = i
		}
		g, err := graph.NewGraph(members, c.options.Degree, graph.Seed(c.options.Seed))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
		c.higher = make([]int32, 0, n*c.options.Degree/2)
		for i := range n {
			for _, j := range g.Neighbours(i) {
				if j > i {
					c.higher = append(c.higher, int32(j))
				}
			}
			c.first[i+1] = len(c.higher)
		}
	}
	c.counts.Pairs = c.first[n]
	c.chains = make([]keyexchange.Chain, c.first[n])
	return nil
}

// peer is the higher party of a pair of i.
func (c *Crowd) peer(i, pair int) int {
	if c.higher == nil {
		return i + 1 + pair - c.first[i]
	}
	return int(c.higher[pair])
}

// degree returns how many neighbours a party has.
func (c *Crowd) degree() int {
	if c.higher == nil {
		return c.options.Parties - 1
	}
	return c.options.Degree
}

// agree makes all keys and chains.
func (c *Crowd) agree(ctx context.Context) error {
	n, hybrid := c.options.Parties, !c.options.Classical
	private := make([]*keyexchange.PrivateKey, n)
	public := make([]keyexchange.PublicKey, n)
	encapsulation := make([]*keyexchange.EncapsulationKey, n)
	members := make([]keyexchange.Entry, n)
	statements := make([][]byte, n)
	signatures := make([][ed25519.SignatureSize]byte, n)
	c.identities = make([]ed25519.PrivateKey, n)
	err := c.parallel(ctx, -1, func(w *worker, i int) (err error) {
		if c.identities[i], err = keyexchange.GenerateIdentity(nil); err != nil {
			return err
		}
		members[i] = keyexchange.Entry{
			Name: "party-" + strconv.Itoa(i+1),
			Key:  c.identities[i].Public().(ed25519.PublicKey),
		}
		if private[i], err = keyexchange.GenerateKey(nil); err != nil {
			return err
		}
		if public[i], err = private[i].Public(); err != nil {
			return err
		}
		statements[i] = public[i][:]
		if hybrid {
			key, err := keyexchange.GenerateDecapsulationKey(nil)
			if err != nil {
				return err
			}
			defer key.Erase() // nobody decapsulates
			text, err := key.Public()
			if err != nil {
				return err
			}
			if encapsulation[i], err = keyexchange.ParseEncapsulationKey(text); err != nil {
				return err
			}
			digest := keyexchange.EncapsulationDigest(text)
			statements[i] = append(public[i][:], digest[:]...)
		}
		signatures[i], err = keyexchange.Sign(c.identities[i], labels.CrowdSession, statements[i])
		return err
	})
	if err != nil {
		return err
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return err
	}
	said := func(i int) []byte { return statements[i] }
	if err = c.check(ctx, labels.CrowdSession, said, signatures, nil); err != nil {
		return err
	}
	digest := sha256.New()
	digest.Write([]byte(labels.CrowdSession))
	for i := range n {
		digest.Write(statements[i])
	}
	c.session = [32]byte(digest.Sum(nil))
	err = c.parallel(ctx, 0, func(w *worker, i int) error {
		for pair := c.first[i]; pair < c.first[i+1]; pair++ {
			j := c.peer(i, pair)
			agreed, err := private[i].Agree(public[j])
			if err != nil {
				return err
			}
			if hybrid {
				if _, err := agreed.Encapsulate(encapsulation[j], nil); err != nil {
					return err
				}
			}
			c.chains[pair] = *agreed.Chain(c.session, roster, i, j)
			agreed.Erase()
		}
		return ctx.Err()
	})
	for _, key := range private {
		key.Erase()
	}
	pairs := c.counts.Pairs
	c.counts.Agreements, c.counts.AgreementsApart = pairs, 2*pairs
	if hybrid {
		c.counts.Encapsulations, c.counts.EncapsulationsApart = pairs, 2*pairs
	}
	c.counts.Chains, c.counts.ChainsApart = pairs, 2*pairs
	return err
}

// Counts returns what was done so far.
func (c *Crowd) Counts() Counts { return c.counts }

// Round takes one sum. input writes the party's submission before masks, Length
// numbers below 2^Bits, to dst; it is called for every party that absent does not
// name, by several goroutines. absent, nil or one for each party, says who drops out
// after the round began, which takes SelfMasks. It returns the sum in the ring.
func (c *Crowd) Round(
	ctx context.Context, broadcast []byte, absent []bool, input func(party int, dst []uint64) error,
) ([]uint64, error) {
	n, d := c.options.Parties, c.options.Length
	if absent != nil && (len(absent) != n || !c.options.SelfMasks) {
		return nil, fmt.Errorf("%w: who drops out takes SelfMasks and one entry a party", ErrConfig)
	}
	gone := func(i int) bool { return absent != nil && absent[i] }
	c.round++
	seen := sha256.Sum256(broadcast)
	agreed := sha256.New()
	agreed.Write([]byte(labels.CrowdContext))
	agreed.Write(c.session[:])
	agreed.Write(binary.BigEndian.AppendUint64(nil, c.round))
	agreed.Write(seen[:])
	digest := [32]byte(agreed.Sum(nil))
	for w := range c.workers {
		work := &c.workers[w]
		if work.submitted == nil {
			work.submitted = make([]uint64, n*d)
		}
		clear(work.submitted)
		work.unmask, work.seeds = work.unmask[:0], work.seeds[:0]
	}
	err := c.parallel(ctx, int(c.round), func(w *worker, i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		own := w.submitted[i*d : (i+1)*d]
		if !gone(i) {
			if err := input(i, w.input); err != nil {
				return err
			}
			addTo(own, w.input)
			if c.options.SelfMasks {
				if err := w.maskSelf(own); err != nil {
					return err
				}
			}
		}
		for pair := c.first[i]; pair < c.first[i+1]; pair++ {
			j := c.peer(i, pair)
			secret := c.chains[pair].Next()
			w.counts.Steps++
			if gone(i) && gone(j) {
				continue
			}
			seed := masking.Seed(secret.MaskSeed(digest))
			if err := w.expand(&seed); err != nil {
				return err
			}
			if !gone(i) {
				addTo(own, w.mask)
			}
			if !gone(j) {
				subFrom(w.submitted[j*d:(j+1)*d], w.mask)
			}
			if gone(i) != gone(j) {
				w.unmask = append(w.unmask, unmask{seed, gone(j)})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c.options.SelfMasks {
		if err := c.signSurvivors(ctx, digest, absent); err != nil {
			return nil, err
		}
	}
	sum, err := c.unmask(gone)
	present := n
	for i := range n {
		if gone(i) {
			present--
		}
	}
	c.tally(present)
	return sum, err
}

// unmask is the server's part: it adds what was submitted and takes the masks off
// that are left.
func (c *Crowd) unmask(gone func(i int) bool) ([]uint64, error) {
	n, d := c.options.Parties, c.options.Length
	sum := make([]uint64, d)
	for w := range c.workers {
		for i := range n {
			if !gone(i) {
				addTo(sum, c.workers[w].submitted[i*d:(i+1)*d])
			}
		}
	}
	for w := range c.workers {
		work := &c.workers[w]
		for i := range work.seeds {
			if err := work.expand(&work.seeds[i]); err != nil {
				return nil, err
			}
			subFrom(sum, work.mask)
		}
		for _, u := range work.unmask {
			if err := work.expand(&u.seed); err != nil {
				return nil, err
			}
			if u.added {
				subFrom(sum, work.mask)
			} else {
				addTo(sum, work.mask)
			}
		}
	}
	for k := range sum {
		sum[k] &= ^uint64(0) >> (64 - c.options.Bits)
	}
	return sum, nil
}

// tally adds up what workers have counted in a round of the given number of submissions.
func (c *Crowd) tally(present int) {
	c.counts.MasksApart += present * c.degree()
	c.counts.StepsApart += c.options.Parties * c.degree()
	for w := range c.workers {
		got := &c.workers[w].counts
		c.counts.Steps += got.Steps
		c.counts.Masks += got.Masks
		*got = Counts{}
	}
	if c.options.SelfMasks {
		c.counts.MasksApart += 2 * present // by the party, and by the server
	}
}

// expand writes the mask of a seed to w.mask.
func (w *worker) expand(seed *masking.Seed) error {
	w.room.Erase()
	w.room.AddMask(seed)
	w.counts.Masks++
	return w.room.Load(w.mask, 0, 0)
}

func addTo(sum, v []uint64) {
	_ = sum[len(v)-1]
	for k, x := range v {
		sum[k] += x
	}
}

func subFrom(sum, v []uint64) {
	_ = sum[len(v)-1]
	for k, x := range v {
		sum[k] -= x
	}
}

// parallel has the workers take the parties one by one.
func (c *Crowd) parallel(
	ctx context.Context, round int, work func(w *worker, party int) error,
) error {
	n := c.options.Parties
	var next, done atomic.Int64
	var wg sync.WaitGroup
	for k := range c.workers {
		w := &c.workers[k]
		w.err = nil
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				if w.err = work(w, i); w.err != nil {
					next.Store(int64(n))
					return
				}
				if finished := int(done.Add(1)); c.options.Progress != nil && round >= 0 {
					c.options.Progress(round, finished, n)
				}
			}
		})
	}
	wg.Wait()
	for k := range c.workers {
		if err := c.workers[k].err; err != nil {
			return err
		}
	}
	return ctx.Err()
}
