package otherlogs

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/transparency-dev/formats/log"
	theirs "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/tilelog"
)

const (
	origin = "sums.example.org/log"
	size   = 1000
	among  = 2 // workers of fsck: with one it hangs where a tile differs
)

// published is a log of ours in a folder.
type published struct {
	folder     string
	key        string
	verifier   note.Verifier
	leaves     [][]byte
	checkpoint []byte
}

// publish writes a log of 1,000 leaves in steps, as a server does.
func publish(t *testing.T) *published {
	t.Helper()
	s, err := tilelog.NewSigner(origin, ed25519.NewKeyFromSeed(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	p := &published{folder: t.TempDir(), key: s.Public()}
	if p.verifier, err = note.NewVerifier(p.key); err != nil {
		t.Fatal(err)
	}
	l := new(tilelog.Log)
	for n := range uint64(size) {
		leaf := &tilelog.Leaf{Kind: tilelog.Head, Day: "2026-01-02", Key: chain.HashOf([]byte{7}),
			Size: n + 1, Root: chain.HashOf(binary.BigEndian.AppendUint64(nil, n))}
		b, err := leaf.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(b); err != nil {
			t.Fatal(err)
		}
		p.leaves = append(p.leaves, b)
		if n%300 == 0 || n == size-1 {
			if err := l.Publish(p.folder, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p.checkpoint, err = os.ReadFile(filepath.Join(p.folder, "checkpoint")); err != nil {
		t.Fatal(err)
	}
	return p
}

// hashes are those of a bundle's leaves, as Tessera asks for them.
func hashes(b []byte) (out [][]byte, err error) {
	for len(b) >= 2 {
		end := 2 + int(binary.BigEndian.Uint16(b))
		if end > len(b) {
			return nil, os.ErrInvalid
		}
		out = append(out, rfc6962.DefaultHasher.HashLeaf(b[2:end]))
		b = b[end:]
	}
	return out, nil
}

func (p *published) fsck(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fetch := &client.FileFetcher{Root: p.folder}
	return fsck.New(origin, p.verifier, fetch, hashes, fsck.Opts{N: among}).Check(ctx)
}

// Tessera finds nothing wrong with a log of ours, and proves of each leaf that it is there.
func TestTessera(t *testing.T) {
	p := publish(t)
	if err := p.fsck(t); err != nil {
		t.Fatal(err)
	}
	checkpoint, _, _, err := log.ParseCheckpoint(p.checkpoint, origin, p.verifier)
	if err != nil || checkpoint.Size != size {
		t.Fatalf("%+v, %v", checkpoint, err)
	}
	fetch := &client.FileFetcher{Root: p.folder}
	builder, err := client.NewProofBuilder(t.Context(), checkpoint.Size, fetch.ReadTile)
	if err != nil {
		t.Fatal(err)
	}
	for index, leaf := range p.leaves {
		path, err := builder.InclusionProof(t.Context(), uint64(index))
		if err != nil {
			t.Fatal(err)
		}
		err = proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(index), size,
			rfc6962.DefaultHasher.HashLeaf(leaf), path, checkpoint.Hash)
		if err != nil {
			t.Errorf("leaf %d: %v", index, err)
		}
	}
}

// Its fsck finds a flipped bit of each kind of file.
func TestTesseraFlips(t *testing.T) {
	p := publish(t)
	for _, name := range []string{"checkpoint", "tile/entries/001", "tile/entries/003.p/232",
		"tile/0/002", "tile/1/000.p/3"} {
		file := filepath.Join(p.folder, filepath.FromSlash(name))
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		flipped := bytes.Clone(b)
		flipped[len(b)/2] ^= 1
		if err := os.WriteFile(file, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.fsck(t); err == nil {
			t.Errorf("a flipped bit of %s", name)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.fsck(t); err != nil {
		t.Error(err)
	}
}

// A cosignature of ours verifies by transparency-dev's formats, and theirs by ours.
func TestCosignatures(t *testing.T) {
	p := publish(t)
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{5}, 32))
	w, err := tilelog.NewWitness("party-4", key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	line, err := w.Cosign(p.checkpoint, key, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := theirs.NewVerifierForCosignatureV1(w.Public())
	if err != nil {
		t.Fatal(err)
	}
	both := append(bytes.Clone(p.checkpoint), line...)
	_, _, signed, err := log.ParseCheckpoint(both, origin, p.verifier, verifier)
	if err != nil || len(signed.Sigs) != 2 {
		t.Fatalf("%+v, %v", signed, err)
	}
	if at, err := theirs.CoSigV1Timestamp(signed.Sigs[1]); err != nil || at.Unix() != 1_700_000_000 {
		t.Errorf("%v, %v", at, err)
	}

	secret, public, err := note.GenerateKey(rand.Reader, "party-3")
	if err != nil {
		t.Fatal(err)
	}
	their, err := theirs.NewSignerForCosignatureV1(secret)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := note.Open(p.checkpoint, note.VerifierList(p.verifier))
	if err != nil {
		t.Fatal(err)
	}
	if both, err = note.Sign(opened, their); err != nil {
		t.Fatal(err)
	}
	encoded, err := base64.StdEncoding.DecodeString(strings.SplitN(public, "+", 3)[2])
	if err != nil {
		t.Fatal(err)
	}
	ours, err := tilelog.NewWitness("party-3", encoded[1:])
	if err != nil {
		t.Fatal(err)
	}
	if n := tilelog.Cosigners(both, w, ours); n != 1 {
		t.Errorf("%d cosigners of %s", n, both)
	}
}
