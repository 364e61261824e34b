package party

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/internal/tilelog"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
)

// This file has a party cosign the checkpoints of the server's public log. The party's key for that
// is another one than its identity, so that the log does not say who is in a roster.

// Files of a witness, in its folder.
const (
	fileWitness = "witness.pem"      // its key
	fileSeen    = "witness.seen"     // of the log, the newest that it has accepted
	fileDenied  = "witness.evidence" // the checkpoint that does not continue that
)

const mostLogFile = 1 << 20 // bytes

// witness cosigns the public log of a party's server.
type witness struct {
	server *Server
	id     string
	folder string
	log    *slog.Logger
	told   bool // that it cannot

	mutex sync.Mutex // one checkpoint after another
}

// witness returns the witness that the party is, nil if it is none.
func (p *Party) witness(log *slog.Logger) *witness {
	if !p.Witness {
		return nil
	}
	return &witness{server: p.Server, id: p.Federation.ID, folder: p.Folder, log: log}
}

// cosign cosigns the newest checkpoint, if it continues what was accepted.
func (w *witness) cosign(ctx context.Context) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	err := w.try(ctx)
	var refusal *RefusalError
	switch {
	case err == nil:
		w.told = false
	case ctx.Err() != nil, w.told:
	case errors.As(err, &refusal) && refusal.Kind == "message": // the log has grown
	default:
		w.told = true
		w.log.Warn("this party cosigns no public log", "error", err.Error())
	}
}

func (w *witness) try(ctx context.Context) error {
	read := func(name string) ([]byte, error) {
		b, _, err := w.server.read(ctx, "/log/"+name, mostLogFile)
		return b, err
	}
	checkpoint, err := read("checkpoint")
	if err != nil {
		return err
	}
	seen, err := w.seen(read)
	if err != nil {
		return err
	}
	before := seen.Size()
	if err = seen.Follow(checkpoint, read); errors.Is(err, tilelog.ErrHistory) {
		name := filepath.Join(w.folder, fileDenied)
		w.log.Error("the server's public log does not continue what this party has seen of it",
			"file", name, "leaves", before)
		return errors.Join(err, durable.Write(name, bytes.NewReader(checkpoint)))
	}
	if err != nil {
		return err
	}
	b, err := seen.MarshalText()
	if err != nil {
		return err
	}
	// Before anything is signed: a witness signs no two histories.
	if err := durable.Write(filepath.Join(w.folder, fileSeen), bytes.NewReader(b)); err != nil {
		return err
	}
	key, err := w.key()
	if err != nil {
		return err
	}
	defer clear(key)
	public := key.Public().(ed25519.PublicKey)
	digest := sha256.Sum256(public)
	by, err := tilelog.NewWitness(fmt.Sprintf("witness-%x", digest[:8]), public)
	if err != nil || tilelog.Cosigners(checkpoint, by) > 0 {
		return err
	}
	// The log has no time finer than a day, and so says nothing of when rounds end.
	line, err := by.Cosign(checkpoint, key, time.Now().UTC().Truncate(24*time.Hour))
	if err != nil {
		return err
	}
	_, err = w.server.post(ctx, partyPath(w.id)+"/cosignatures", []byte(by.Public()+"\n"+line))
	return err
}

// seen returns what was accepted, or nothing of the log that the server names.
func (w *witness) seen(read func(name string) ([]byte, error)) (*tilelog.Seen, error) {
	name := filepath.Join(w.folder, fileSeen)
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := read("key")
		return &tilelog.Seen{Key: strings.TrimSuffix(string(key), "\n")}, err
	}
	if err != nil {
		return nil, err
	}
	out := new(tilelog.Seen)
	if err := out.UnmarshalText(b); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// key returns the witness's key, which is made once.
func (w *witness) key() (ed25519.PrivateKey, error) {
	name := filepath.Join(w.folder, fileWitness)
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		if _, err := keyfile.NewIdentity(name, nil); err != nil {
			return nil, err
		}
	}
	return keyfile.ReadIdentity(name)
}
