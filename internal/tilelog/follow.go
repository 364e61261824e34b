package tilelog

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/hushsum/hushsum/internal/durable"
)

// Seen is the newest state of a log that a follower has accepted. Its text has three lines: key,
// size and root.
type Seen struct {
	Key  string // as package note writes it
	tree tlog.Tree
}

// Size returns the number of leaves.
func (s *Seen) Size() int64 { return s.tree.N }

// MarshalText writes the state.
func (s *Seen) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%s\n%d\n%v\n", s.Key, s.tree.N, s.tree.Hash), nil
}

// UnmarshalText reads the state. It fails with [ErrLog].
func (s *Seen) UnmarshalText(b []byte) error {
	lines := strings.Split(string(b), "\n")
	if len(lines) != 4 || lines[3] != "" {
		return ErrLog
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	root, failed := tlog.ParseHash(lines[2])
	if errors.Join(err, failed) != nil || size < 0 {
		return ErrLog
	}
	*s = Seen{lines[0], tlog.Tree{N: size, Hash: root}}
	return nil
}

// Follow takes a checkpoint of a log whose files read reads, by their names with slashes. It fails
// with [ErrHistory], and takes nothing, unless the checkpoint's log continues what was accepted.
func (s *Seen) Follow(checkpoint []byte, read func(name string) ([]byte, error)) error {
	tree, err := OpenCheckpoint(checkpoint, s.Key)
	switch {
	case err != nil:
		return err
	case tree.N < s.tree.N || tree.N == s.tree.N && tree.Hash != s.tree.Hash && tree.N > 0:
		return ErrHistory
	case s.tree.N > 0 && tree.N > s.tree.N:
		proof, err := tlog.ProveTree(tree.N, s.tree.N, tlog.TileHashReader(tree, tiles{read}))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrLog, err)
		}
		if err := tlog.CheckTree(proof, tree.N, tree.Hash, s.tree.N, s.tree.Hash); err != nil {
			return fmt.Errorf("%w: %w", ErrHistory, err)
		}
	}
	s.tree = tree
	return nil
}

// tiles reads tiles as package tlog asks for them.
type tiles struct {
	read func(name string) ([]byte, error)
}

func (t tiles) Height() int { return height }

func (t tiles) ReadTiles(all []tlog.Tile) (data [][]byte, err error) {
	for _, tile := range all {
		b, err := t.read(name(tile.L, tile.N, tile.W))
		if err != nil {
			return nil, err
		}
		data = append(data, b)
	}
	return data, nil
}

func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}

// mostCosigners is how many witnesses a checkpoint has.
const mostCosigners = 32

// AddCosignature adds a witness's cosignature to the checkpoint in a log's folder: one of each
// witness, and of so many. It fails with [ErrCosignature] if it is of another checkpoint.
func AddCosignature(folder string, w *Witness, line string) error {
	file := filepath.Join(folder, fileCheckpoint)
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err := w.Check(b, line); err != nil {
		return err
	}
	if Cosigners(b, w) > 0 {
		return nil
	}
	_, signatures, _ := strings.Cut(string(b), "\n\n")
	if strings.Count(signatures, "\n") > mostCosigners {
		return fmt.Errorf("%w: it has %d already", ErrCosignature, mostCosigners)
	}
	line = strings.TrimSuffix(line, "\n") + "\n"
	return durable.Write(file, bytes.NewReader(append(b, line...)))
}

// ParseWitness reads a witness's key as Public writes it.
func ParseWitness(public string) (*Witness, error) {
	parts := strings.SplitN(public, "+", 3)
	if len(parts) != 3 {
		return nil, ErrCosignature
	}
	key, err := base64.StdEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(key) == 0 || key[0] != algCosignature {
		return nil, ErrCosignature
	}
	w, err := NewWitness(parts[0], key[1:])
	if err != nil || w.Public() != public {
		return nil, ErrCosignature
	}
	return w, nil
}
