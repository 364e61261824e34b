package party

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/receipt"
	"github.com/hushsum/hushsum/service/exchange"
)

// papersOf returns what gets the receipts of the first party of a federation, and a function that
// has a leader make one of a round, under a key, at a node, with what the party has submitted.
func papersOf(t *testing.T) (p *papers,
	made func(round uint64, key ed25519.PrivateKey, node string, submission chain.Hash) []byte,
) {
	t.Helper()
	f := few(t)
	p = (&Party{Federation: f, Identity: seedOf(0), Folder: t.TempDir()}).papers(
		slog.New(slog.DiscardHandler), nil)
	secret := bytes.Repeat([]byte{1}, 32)
	return p, func(round uint64, key ed25519.PrivateKey, node string, submission chain.Hash) []byte {
		public := key.Public().(ed25519.PublicKey)
		signed := func(e *chain.Entry) []byte {
			e.Node, e.Time = node, time.Unix(int64(e.Number), 0).UTC()
			line, err := chain.Sign(e, key)
			if err != nil {
				t.Fatal(err)
			}
			return line
		}
		all, err := chain.Union(f.ID, public, signed(chain.NewBirth(f.ID, public)))
		if err != nil {
			t.Fatal(err)
		}
		s := receipt.Statement{Federation: f.ID, Job: f.JobDigest, Party: p.party, Round: round,
			Rounds: 3, Submission: submission, Count: 1}
		salt := receipt.SaltOf(secret, round, p.party)
		leaf, err := s.Leaf(salt)
		if err != nil {
			t.Fatal(err)
		}
		leaves, commitment, err := receipt.Tree([]chain.Hash{leaf})
		if err != nil {
			t.Fatal(err)
		}
		e := all.Next(chain.Sum, 0, false)
		e.Round, e.Survivors = round, commitment
		line := signed(e)
		if err := all.Append(line); err != nil {
			t.Fatal(err)
		}
		head, err := all.Head()
		if err != nil {
			t.Fatal(err)
		}
		tree, _, _ := all.Tree()
		r := receipt.Receipt{Statement: s, Salt: salt, Key: chain.Hash(public), Index: 1, Entry: line}
		r.Path, _ = leaves.Inclusion(0, 1)
		r.Proof, _ = tree.Inclusion(1, head.Size)
		if r.Head, err = chain.SignHead(head, key); err != nil {
			t.Fatal(err)
		}
		b, err := r.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// A party keeps the receipts that are its own, under the federation's key, refuses the rest by name
// and keeps them too, and has evidence once two contradict each other.
func TestPapers(t *testing.T) {
	p, made := papersOf(t)
	key, other := ed25519.NewKeyFromSeed(make([]byte, 32)), seedOf(5)
	p.heads = &heads{has: accepted{Key: key.Public().(ed25519.PublicKey)}}
	digest := chain.HashOf([]byte("submission"))
	give := func(round uint64, b []byte, err error) {
		p.fetch = func(context.Context, int) ([]byte, error) { return b, err }
		p.sent, p.last = digest, 0
		p.submitted(round)
		p.ends(t.Context())
	}
	has := func(name string, want bool) {
		t.Helper()
		_, err := os.Stat(filepath.Join(p.folder, name))
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	give(1, made(1, key, "a", digest), nil)
	has("1.receipt", true)
	give(2, made(2, other, "a", digest), nil) // under another key
	has("2.receipt", false)
	has("2.refused", true)
	give(2, made(2, key, "a", chain.HashOf(nil)), nil) // another submission
	has("2.receipt", false)
	give(2, made(1, key, "a", digest), nil) // another round
	has("2.receipt", false)
	give(2, []byte("nonsense"), nil)
	has("2.receipt", false)
	give(2, nil, &RefusalError{Status: 404, Kind: "receipt"})
	has("2.receipt", false)
	has("2.evidence", false)
	give(2, made(2, key, "b", digest), nil) // its chain has another entry 0
	has("2.receipt", true)
	has("2.evidence", true)
	b, err := os.ReadFile(filepath.Join(p.folder, "2.evidence"))
	if err != nil {
		t.Fatal(err)
	}
	if e, err := receipt.ParseEvidence(b); err != nil || e.Verify() != nil {
		t.Errorf("%v, %v", e, err)
	}
	p.submitted(2) // it has that one
	p.fetch = func(context.Context, int) ([]byte, error) {
		t.Error("it asks again")
		return nil, errors.New("no")
	}
	p.ends(t.Context())
}

// A receipt is asked for once the next round begins, and of a party alone.
func TestPapersInTime(t *testing.T) {
	p, _ := papersOf(t)
	asked := make(chan int, 9)
	p.fetch = func(_ context.Context, round int) ([]byte, error) {
		asked <- round
		return nil, &RefusalError{Status: 404, Kind: exchange.ProblemPrefix}
	}
	p.submitted(3)
	p.begins(t.Context(), 3)
	p.going.Wait()
	p.begins(t.Context(), 4)
	p.going.Wait()
	p.begins(t.Context(), 5)
	p.ends(t.Context())
	if len(asked) != 1 || <-asked != 3 {
		t.Errorf("%d questions more", len(asked))
	}
	if (&Party{Federation: few(t), Identity: seedOf(200)}).papers(nil, nil) != nil {
		t.Error("somebody who is in no roster gets receipts")
	}
	var none *papers // of a member
	none.submitted(1)
	none.sends(nil)
	none.begins(t.Context(), 2)
	none.ends(t.Context())
}
