package party

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/receipt"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/service/federation"
)

// This file gets a party's receipts: one of each round that it was in, once that is over.

const (
	folderReceipts = "receipts"
	suffixReceipt  = ".receipt"
	suffixRefused  = ".refused"
	suffixEvidence = ".evidence"

	receiptTries = 4 // the first may come before the sum is recorded everywhere
	receiptWait  = 500 * time.Millisecond
)

// Receipt returns the party's receipt of a round, as the server has it.
func (s *Server) Receipt(ctx context.Context, id string, round int) ([]byte, error) {
	path := partyPath(id) + "/rounds/" + strconv.Itoa(round) + "/receipt"
	b, _, err := s.read(ctx, path, receipt.Most)
	return b, err
}

// papers gets receipts while the party goes on.
type papers struct {
	federation *federation.Federation
	fetch      func(ctx context.Context, round int) ([]byte, error)
	folder     string
	heads      *heads // nil: the key that signs decisions is not known
	party      uint64
	log        *slog.Logger
	witness    *witness // nil: the party is none

	last  uint64 // round that was noted
	going sync.WaitGroup
	one   sync.Mutex // gets receipts, one after another

	mutex sync.Mutex
	sent  chain.Hash      // of the last submission; zero: unknown
	due   map[uint64]bool // rounds without a receipt yet
}

// papers returns what gets the party's receipts; nil for a member.
func (p *Party) papers(log *slog.Logger, h *heads) *papers {
	key, _ := p.Identity.Public().(ed25519.PublicKey)
	party, found := p.Federation.Settled.Roster().Index(key)
	if !found {
		return nil
	}
	folder := filepath.Join(p.Folder, folderReceipts)
	if p.Receipts != "" {
		folder = filepath.Join(p.Receipts, fmt.Sprintf("%.16s", p.Federation.ID))
	}
	return &papers{
		federation: p.Federation,
		fetch: func(ctx context.Context, round int) ([]byte, error) {
			return p.Server.Receipt(ctx, p.Federation.ID, round)
		},
		folder: folder,
		heads:  h,
		party:  uint64(party),
		log:    log,

		witness: p.witness(log),
		due:     make(map[uint64]bool),
	}
}

// sends notes a message that is sent, if it has a submission. Where rounds take a given number of
// submissions one may be for a later round than the party has in mind.
func (p *papers) sends(message []byte) {
	if p == nil || p.federation.Settled.Buffer() > 0 || p.federation.Settled.Oneshot() == nil &&
		(len(message) < 2 || wire.Type(message[1]) != wire.TypeMasked) {
		return
	}
	digest := sha256.Sum256(message)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.sent = digest
}

// submitted notes the last round that the party may have submitted in. A party that had no update,
// and submitted zeros with noise, asks like any other.
func (p *papers) submitted(round uint64) {
	if p == nil || round <= p.last {
		return
	}
	p.last = round
	if _, err := os.Lstat(p.file(round, suffixReceipt)); err == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.due[round] = true
}

func (p *papers) file(round uint64, suffix string) string {
	return filepath.Join(p.folder, strconv.FormatUint(round, 10)+suffix)
}

// begins gets, in the background, the receipts of the rounds before one that begins.
func (p *papers) begins(ctx context.Context, round uint64) {
	if p == nil || round == 0 {
		return
	}
	if over := p.over(round); len(over) > 0 {
		p.going.Go(func() {
			p.get(ctx, over)
			p.witness.cosign(ctx)
		})
	}
}

// ends gets the receipts of all rounds, and returns when it has them or cannot have them.
func (p *papers) ends(ctx context.Context) {
	if p == nil {
		return
	}
	over := p.over(^uint64(0))
	p.get(ctx, over)
	p.witness.cosign(ctx)
	p.going.Wait()
}

// paper is a round whose receipt is due.
type paper struct {
	round uint64
	sent  chain.Hash
}

// over takes the rounds before one from those that are due.
func (p *papers) over(before uint64) (all []paper) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for round := range p.due {
		if round < before {
			all = append(all, paper{round: round})
			delete(p.due, round)
		}
	}
	slices.SortFunc(all, func(a, b paper) int { return cmp.Compare(a.round, b.round) })
	if len(all) > 0 { // the last submission was for the last of them
		all[len(all)-1].sent, p.sent = p.sent, chain.Hash{}
	}
	return all
}

// get gets receipts, and logs why it cannot.
func (p *papers) get(ctx context.Context, over []paper) {
	p.one.Lock()
	defer p.one.Unlock()
	for _, o := range over {
		b, err := p.ask(ctx, o.round)
		var refusal *RefusalError
		switch {
		case errors.As(err, &refusal) && refusal.Status == http.StatusNotFound:
			p.log.Debug("no receipt", "round", o.round, "error", err.Error())
			continue
		case ctx.Err() != nil:
			return
		case err == nil:
			err = p.keep(o, b)
		}
		if err != nil {
			p.log.Warn("no receipt", "round", o.round, "error", err.Error())
		}
	}
}

// ask asks for a receipt, a few times: a sum is recorded before the next round begins, and may
// not be everywhere.
func (p *papers) ask(ctx context.Context, round uint64) (b []byte, err error) {
	for try := range receiptTries {
		if try > 0 {
			if err := sleep(ctx, receiptWait<<try); err != nil {
				return nil, err
			}
		}
		var refusal *RefusalError
		b, err = p.fetch(ctx, int(round))
		final := errors.As(err, &refusal) && refusal.Status < http.StatusInternalServerError
		if err == nil || final {
			return b, err
		}
	}
	return b, err
}

// errPaper: a receipt is not the one that the party is owed.
var errPaper = errors.New("party: the receipt that the server gave does not verify; it is kept, " +
	"ask its operator, and compare receipts with the other parties'")

// keep checks a receipt, and writes it into the folder.
func (p *papers) keep(o paper, b []byte) error {
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return err
	}
	r, err := p.check(o, b)
	if err != nil {
		return errors.Join(err, p.write(o.round, suffixRefused, b))
	}
	return errors.Join(p.compare(r), p.write(o.round, suffixReceipt, b))
}

// check fails with errPaper unless a receipt is the party's own of the round.
func (p *papers) check(o paper, b []byte) (*receipt.Receipt, error) {
	r, err := receipt.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPaper, err)
	}
	if _, err := r.Verify(p.heads.key()); err != nil {
		return nil, fmt.Errorf("%w: %w", errPaper, err)
	}
	var none chain.Hash
	switch f := p.federation; {
	case r.Federation != f.ID || r.Job != f.JobDigest || r.Party != p.party || r.Round != o.round:
		return nil, fmt.Errorf("%w: it is of another round, party or federation", errPaper)
	case o.sent != none && r.Submission != none && r.Submission != o.sent:
		return nil, fmt.Errorf("%w: it names another submission", errPaper)
	}
	return r, nil
}

// compare compares a receipt with the decisions that the party has accepted, and with the receipt
// before, and keeps evidence if they contradict each other.
func (p *papers) compare(r *receipt.Receipt) error {
	if e := p.heads.contradicts(r.Head); e != nil {
		return p.convict(r, e)
	}
	for round := r.Round - 1; round > 0 && round+mostBefore > r.Round; round-- {
		b, err := os.ReadFile(p.file(round, suffixReceipt))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		before, err := receipt.Parse(b)
		if err != nil {
			return fmt.Errorf("%s: %w", p.file(round, suffixReceipt), err)
		}
		e, err := receipt.Contradict(before, r, nil)
		if errors.Is(err, receipt.ErrConsistent) {
			return nil
		}
		if err != nil {
			return err
		}
		return p.convict(r, e)
	}
	return nil
}

// convict keeps evidence.
func (p *papers) convict(r *receipt.Receipt, e *receipt.Evidence) error {
	b, err := e.MarshalText()
	if err != nil {
		return err
	}
	p.log.Error("the federation's key has signed two histories: show the evidence to the others",
		"round", r.Round, "file", p.file(r.Round, suffixEvidence))
	return p.write(r.Round, suffixEvidence, b)
}

// mostBefore is how many rounds back a party looks for a receipt to compare with.
const mostBefore = 100

// write writes a file that can be had again: it is whole, or not there.
func (p *papers) write(round uint64, suffix string, b []byte) error {
	name := p.file(round, suffix)
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
