package runner

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/receipt"
)

// This file has what parties' receipts are made from, and makes them.

const (
	// mostReceipts is how many rounds a runner has receipts of, and of rosters larger than fewReceipts
	// it has those of one.
	mostReceipts = 16
	fewReceipts  = 10_000
	// mostListed is the largest sum whose receipts list who is in it.
	mostListed = 1000

	saltPurpose = "leaves of receipts"
)

// ErrNoReceipt: there is no receipt of the round for the party, or no longer.
var ErrNoReceipt = errors.New("runner: there is no receipt of this round for this party")

// receipts has what the receipts of the last rounds are made from. The runner's lock guards it.
type receipts struct {
	secret []byte // of the salts; nil: the names are erased, and there are no receipts
	open   map[int]chain.Hash
	made   []*papers // of the last rounds, in order
}

// receiptsState has the part of them that a state keeps.
type receiptsState struct {
	Open    []int  // parties that have submitted, rising
	Digests []byte // of what, one after another
	Last    *papers
}

// papers has what the receipts of one round are made from.
type papers struct {
	Round, Session uint64
	Parties        []int
	Digests        []byte // of their submissions, one after another
	Released       chain.Hash
	Spent          []string // different ones
	SpentOf        []int    // of each party, its place in Spent

	mutex  sync.Mutex
	tree   *chain.Tree
	proved *receipt.Receipt // what all parties' have in common; nil: not yet
}

// digestAt returns one of digests that stand one after another, zero if it is not there.
func digestAt(all []byte, k int) (h chain.Hash) {
	if from := k * len(h); from < len(all) {
		copy(h[:], all[from:])
	}
	return h
}

// submitted notes the digest of a submission that was taken.
func (r *receipts) submitted(party int, digest [32]byte) {
	if r.open == nil {
		r.open = make(map[int]chain.Hash)
	}
	r.open[party] = digest
}

func (r *receipts) state() *receiptsState {
	out := &receiptsState{Open: slices.Sorted(maps.Keys(r.open))}
	for _, i := range out.Open {
		digest := r.open[i]
		out.Digests = append(out.Digests, digest[:]...)
	}
	if n := len(r.made); n > 0 {
		out.Last = r.made[n-1]
	}
	return out
}

func (r *receipts) load(in *receiptsState) {
	r.open, r.made = nil, nil
	if in == nil {
		return
	}
	for k, i := range in.Open {
		r.submitted(i, digestAt(in.Digests, k))
	}
	if in.Last != nil {
		r.made = []*papers{in.Last}
	}
}

// survivors returns what the entry of a sum names of the parties in it, and keeps what their
// receipts are made from; nil if it cannot.
func (r *Runner) survivors(n drive.Notice) *chain.Commitment {
	if had := r.receipts.made; len(had) > 0 {
		if p := had[len(had)-1]; p.Round == n.Round && p.Session == n.Session { // it is recorded again
			_, out, _ := r.leavesOf(p)
			return out
		}
	}
	p := &papers{Round: n.Round, Session: n.Session, Parties: slices.Sorted(slices.Values(n.Parties)),
		Released: r.made.released}
	if err := r.fill(p); err != nil {
		r.Log.Error("a round has no receipts", "round", n.Round, "error", err.Error())
		return nil
	}
	_, out, err := r.leavesOf(p)
	if err != nil {
		r.Log.Error("a round has no receipts", "round", n.Round, "error", err.Error())
		return nil
	}
	for _, i := range p.Parties {
		delete(r.receipts.open, i)
	}
	most := mostReceipts
	if len(r.names) > fewReceipts {
		most = 1
	}
	r.receipts.made = append(r.receipts.made, p)
	if more := len(r.receipts.made) - most; more > 0 {
		r.receipts.made = slices.Delete(r.receipts.made, 0, more)
	}
	return out
}

// fill adds what each party has submitted and spent.
func (r *Runner) fill(p *papers) error {
	var names []string
	for _, i := range p.Parties {
		digest := r.receipts.open[i]
		p.Digests = append(p.Digests, digest[:]...)
		names = append(names, r.names[i])
	}
	ledger := r.drive.Ledger()
	if ledger == nil {
		return nil
	}
	spent, err := ledger.SpentBy(names...)
	if err != nil {
		return err
	}
	of := make(map[string]int)
	for k, claim := range spent {
		text := fmt.Sprintf("epsilon %s of %g %s", claim.Most(),
			ledger.Budget(names[k]).Target().Epsilon, claim.About())
		at, found := of[text]
		if !found {
			at = len(p.Spent)
			of[text], p.Spent = at, append(p.Spent, text)
		}
		p.SpentOf = append(p.SpentOf, at)
	}
	return nil
}

// statement returns what a round's receipt says of the party at a place.
func (r *Runner) statement(p *papers, place int) receipt.Statement {
	job := r.Federation.Job
	s := receipt.Statement{
		Federation: r.Federation.ID,
		Job:        r.Federation.JobDigest,
		Party:      uint64(p.Parties[place]),
		Round:      p.Round,
		Rounds:     uint64(r.Federation.Settled.Rounds()),
		Session:    p.Session,
		Submission: digestAt(p.Digests, place),
		Count:      uint64(len(p.Parties)),
		Released:   p.Released,
	}
	if p.SpentOf != nil {
		s.Spent = p.Spent[p.SpentOf[place]]
	}
	if job.Parties.Hidden > 0 || job.Sum.Covered || len(p.Parties) > mostListed {
		return s
	}
	for _, i := range p.Parties {
		s.Parties = append(s.Parties, uint64(i))
	}
	return s
}

// leavesOf makes the tree of a round's leaves.
func (r *Runner) leavesOf(p *papers) (*chain.Tree, *chain.Commitment, error) {
	secret := r.receipts.secret
	if secret == nil { // the leaves say nothing to anyone
		secret = make([]byte, 32)
		if _, err := rand.Read(secret); err != nil {
			return nil, nil, err
		}
	}
	leaves := make([]chain.Hash, len(p.Parties))
	for k, i := range p.Parties {
		s := r.statement(p, k)
		var err error
		if leaves[k], err = s.Leaf(receipt.SaltOf(secret, p.Round, uint64(i))); err != nil {
			return nil, nil, err
		}
	}
	return receipt.Tree(leaves)
}

// Receipt returns a party's receipt of a round. It fails with [ErrNoReceipt], with [ErrStopped] and
// with errors of the record.
func (r *Runner) Receipt(ctx context.Context, party, round int) ([]byte, error) {
	var p *papers
	err := r.host.With(ctx, Peer{Index: party}, func(drive.Lead, drive.Time) error {
		r.heard(Peer{Index: party})
		for _, made := range r.receipts.made {
			if int(made.Round) == round {
				p = made
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p == nil || r.receipts.secret == nil {
		return nil, ErrNoReceipt
	}
	place, found := slices.BinarySearch(p.Parties, party)
	if !found {
		return nil, ErrNoReceipt
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.proved == nil {
		if p.proved, p.tree, err = r.prove(p); err != nil {
			return nil, err
		}
	}
	out := *p.proved
	out.Statement, out.Place = r.statement(p, place), uint64(place)
	out.Salt = receipt.SaltOf(r.receipts.secret, p.Round, uint64(party))
	if out.Path, err = p.tree.Inclusion(out.Place, out.Count); err != nil {
		return nil, err
	}
	return out.MarshalText()
}

// prove finds the entry of a round's sum, and proves that it is in the chain of decisions.
func (r *Runner) prove(p *papers) (*receipt.Receipt, *chain.Tree, error) {
	leaves, commitment, err := r.leavesOf(p)
	if err != nil {
		return nil, nil, err
	}
	h := &r.heads
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.head == nil || len(r.Federation.Key) != ed25519.PublicKeySize {
		return nil, nil, ErrNoReceipt
	}
	segment, first, err := h.chain.Tree()
	if err != nil {
		return nil, nil, err
	}
	out := &receipt.Receipt{Key: chain.Hash(r.Federation.Key), Head: h.note}
	for n := h.chain.Last().Number; n > first && out.Entry == nil; n-- {
		e := h.chain.Entry(n)
		if e.Kind == chain.Sum && e.Survivors != nil && *e.Survivors == *commitment {
			out.Index, out.Entry = n-first, h.chain.Line(n)
		}
	}
	if out.Entry == nil { // not recorded yet, or of an earlier segment
		return nil, nil, ErrNoReceipt
	}
	out.Proof, err = segment.Inclusion(out.Index, h.head.Size)
	return out, leaves, err
}
