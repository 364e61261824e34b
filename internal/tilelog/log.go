package tilelog

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/hushsum/hushsum/internal/durable"
)

// Errors of logs.
var (
	// ErrLog: the files are no log as this package writes it, or were changed.
	ErrLog = errors.New("tilelog: the files of the log do not fit each other; copy them again")
	// ErrHistory: the log does not continue what was published.
	ErrHistory = errors.New("tilelog: the log does not continue the checkpoint that was published; " +
		"keep both, and publish no more")
)

const (
	height = 8 // of tiles
	wide   = 1 << height
	// Files of a log's folder.
	fileCheckpoint = "checkpoint"
	fileKey        = "key" // verifies checkpoints, as package note writes it

	mostFile  = 1 << 26 // bytes
	mostLeafs = 1 << 24
)

// Log holds a log in memory. The zero value is empty. It is not safe for concurrent use.
type Log struct {
	leaves [][]byte
	stored hashes
}

type hashes []tlog.Hash

func (h hashes) ReadHashes(at []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(at))
	for k, i := range at {
		if i < 0 || i >= int64(len(h)) {
			return nil, fmt.Errorf("%w: there is no hash %d", ErrLog, i)
		}
		out[k] = h[i]
	}
	return out, nil
}

// Append adds a leaf's bytes.
func (l *Log) Append(leaf []byte) error {
	if len(leaf) == 0 || len(leaf) > mostLeaf || len(l.leaves) == mostLeafs {
		return ErrLeaf
	}
	more, err := tlog.StoredHashes(l.Size(), leaf, l.stored)
	if err != nil {
		return err
	}
	l.leaves, l.stored = append(l.leaves, bytes.Clone(leaf)), append(l.stored, more...)
	return nil
}

// Size returns the number of leaves.
func (l *Log) Size() int64 { return int64(len(l.leaves)) }

// Leaf returns the bytes of a leaf.
func (l *Log) Leaf(index int64) []byte { return l.leaves[index] }

// root returns the root over the first leaves.
func (l *Log) root(size int64) (tlog.Hash, error) {
	if size > l.Size() {
		return tlog.Hash{}, ErrHistory
	}
	return tlog.TreeHash(size, l.stored)
}

// name returns the path of a tile in a log's folder, with slashes, as tlog-tiles has it. Level -1
// is that of entries.
func name(level int, n int64, width int) string {
	path := fmt.Sprintf("%03d", n%1000)
	for n >= 1000 {
		n /= 1000
		path = fmt.Sprintf("x%03d/%s", n%1000, path)
	}
	kind := "entries"
	if level >= 0 {
		kind = strconv.Itoa(level)
	}
	path = "tile/" + kind + "/" + path
	if width < wide {
		path += fmt.Sprintf(".p/%d", width)
	}
	return path
}

// Signer signs checkpoints of the log of a name.
type Signer struct {
	name   string
	key    ed25519.PrivateKey
	public string // as package note writes it
}

// NewSigner returns the signer of a log's key. A name looks like sums.example.org/log: it has no
// spaces and no plus signs.
func NewSigner(name string, key ed25519.PrivateKey) (*Signer, error) {
	public, err := note.NewEd25519VerifierKey(name, key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, fmt.Errorf("tilelog: %q names no log: %w", name, err)
	}
	return &Signer{name, key, public}, nil
}

// Public returns the key that verifies checkpoints, as package note writes it.
func (s *Signer) Public() string { return s.public }

// Name is a method of [note.Signer].
func (s *Signer) Name() string { return s.name }

// KeyHash is a method of [note.Signer].
func (s *Signer) KeyHash() uint32 {
	v, err := note.NewVerifier(s.public)
	if err != nil {
		return 0 // NewSigner has made it
	}
	return v.KeyHash()
}

// Sign is a method of [note.Signer].
func (s *Signer) Sign(text []byte) ([]byte, error) { return ed25519.Sign(s.key, text), nil }

// checkpoint returns the signed checkpoint.
func (l *Log) checkpoint(s *Signer) ([]byte, error) {
	root, err := l.root(l.Size())
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("%s\n%d\n%s\n", s.name, l.Size(), base64.StdEncoding.EncodeToString(root[:]))
	return note.Sign(&note.Note{Text: text}, s)
}

// Publish writes the files of the log into a folder, the checkpoint last, unless they are there. It
// fails with [ErrHistory], and writes nothing, if the log does not continue the folder's.
func (l *Log) Publish(folder string, s *Signer) error {
	published := int64(0)
	b, err := os.ReadFile(filepath.Join(folder, fileCheckpoint))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		tree, err := OpenCheckpoint(b, s.public)
		if err != nil {
			return err
		}
		if root, err := l.root(tree.N); err != nil || root != tree.Hash {
			return errors.Join(ErrHistory, err)
		}
		if published = tree.N; published == l.Size() {
			return nil
		}
	}
	if l.Size() == 0 {
		return nil
	}
	write := func(name string, b []byte) error {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return durable.Write(file, bytes.NewReader(b))
	}
	for _, tile := range tlog.NewTiles(height, published, l.Size()) {
		data, err := tlog.ReadTileData(tile, l.stored)
		if err == nil {
			err = write(name(tile.L, tile.N, tile.W), data)
		}
		if err == nil && tile.L == 0 {
			first := tile.N * wide
			err = write(name(-1, tile.N, tile.W), bundle(l.leaves[first:first+int64(tile.W)]))
		}
		if err != nil {
			return err
		}
	}
	if b, err = l.checkpoint(s); err != nil {
		return err
	}
	return errors.Join(write(fileKey, []byte(s.public+"\n")), write(fileCheckpoint, b))
}

// bundle writes leaves as tlog-tiles has them.
func bundle(leaves [][]byte) (b []byte) {
	for _, leaf := range leaves {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(leaf))), leaf...)
	}
	return b
}

// OpenCheckpoint reads a checkpoint that a key, as package note writes it, has signed, and perhaps
// others. It fails with [ErrLog].
func OpenCheckpoint(b []byte, key string) (tlog.Tree, error) {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return tlog.Tree{}, fmt.Errorf("%w: %w", ErrLog, err)
	}
	signed, err := note.Open(b, note.VerifierList(verifier))
	if err != nil {
		return tlog.Tree{}, fmt.Errorf("%w: %w", ErrLog, err)
	}
	lines := strings.SplitN(signed.Text, "\n", 4)
	if len(lines) != 4 || lines[0] != verifier.Name() {
		return tlog.Tree{}, ErrLog
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	root, failed := tlog.ParseHash(lines[2])
	if errors.Join(err, failed) != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return tlog.Tree{}, ErrLog
	}
	return tlog.Tree{N: size, Hash: root}, nil
}

// Open reads a log from a folder's files, and checks that its leaves are those of the checkpoint.
// key verifies that; empty: the folder's own, which the caller compares. It fails with [ErrLog].
func Open(folder, key string) (l *Log, by string, err error) {
	read := func(name string) ([]byte, error) {
		file := filepath.Join(folder, filepath.FromSlash(name))
		info, err := os.Stat(file)
		if err == nil && info.Size() > mostFile {
			err = ErrLog
		}
		if err != nil {
			return nil, err
		}
		return os.ReadFile(file)
	}
	if key == "" {
		b, err := read(fileKey)
		if err != nil {
			return nil, "", err
		}
		key = strings.TrimSuffix(string(b), "\n")
	}
	b, err := read(fileCheckpoint)
	if err != nil {
		return nil, "", err
	}
	tree, err := OpenCheckpoint(b, key)
	if err != nil {
		return nil, "", err
	}
	l = new(Log)
	for first := int64(0); first < min(tree.N, mostLeafs); first += wide {
		width := int(min(wide, tree.N-first))
		b, err := read(name(-1, first/wide, width))
		if err != nil {
			return nil, "", err
		}
		for range width {
			if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
				return nil, "", ErrLog
			}
			end := 2 + int(binary.BigEndian.Uint16(b))
			if err := l.Append(b[2:end]); err != nil {
				return nil, "", errors.Join(ErrLog, err)
			}
			b = b[end:]
		}
		if len(b) > 0 {
			return nil, "", ErrLog
		}
	}
	if root, err := l.root(l.Size()); err != nil || root != tree.Hash || l.Size() != tree.N {
		return nil, "", errors.Join(ErrLog, err)
	}
	return l, key, nil
}
