package record

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
)

// This file defines the format of a backup: a line that names it, a random number, frames, a length
// of 0 and the SHA-256 of all before it. A frame is the length of a box and the box, sealed under
// the key of the record for its place in this file. The last frame is marked as the last: so no
// frame can be left out, moved, or taken from another file. The digest has no secret: it
// distinguishes a file that was cut or damaged from one of another key, even for those who have no
// key.

// Errors of a backup's file.
var (
	// ErrCut: the file is incomplete.
	ErrCut = errors.New("record: the backup is truncated; copy it again")
	// ErrAltered: the file differs from the file that was written.
	ErrAltered = errors.New("record: the backup was altered or damaged; use another copy")
	// ErrOtherKey: the file is whole, but none of the keys opens it.
	ErrOtherKey = errors.New("record: the backup is sealed under another key; start the node with " +
		"the seal key of the cluster that made it")
	// ErrNoBackup: the file is something else, or from a later program.
	ErrNoBackup = errors.New("record: the file is not a backup that this program reads")
)

const (
	backupMagic = labels.Backup + "\n"
	mostFrame   = partSize + 64<<10 // bytes of a box
)

// Kinds of frames.
const (
	frameHead       = 'h'
	frameDefinition = 'd' // begins a federation
	frameObject     = 'o'
	frameEntry      = 'e' // of the federation's chain
	frameLog        = 'l' // the key of the public log, sealed as it is stored
	frameEnd        = 'z'
)

// frame is a piece of a backup.
type frame struct {
	kind byte
	name string // of an object
	body []byte

	definition *Definition // of that kind
}

// backupHead is the content of the first frame.
type backupHead struct {
	Created time.Time `json:"created"`
}

type backupWriter struct {
	w      io.Writer // to the file and to the digest
	file   io.Writer
	key    *keyexchange.SealKey
	digest hash.Hash
	number [16]byte
	next   uint64
}

func newBackupWriter(w io.Writer, key *keyexchange.SealKey) (*backupWriter, error) {
	b := &backupWriter{file: w, key: key, digest: sha256.New()}
	b.w = io.MultiWriter(w, b.digest)
	if _, err := rand.Read(b.number[:]); err != nil {
		return nil, err
	}
	if _, err := b.w.Write(append([]byte(backupMagic), b.number[:]...)); err != nil {
		return nil, err
	}
	return b, b.json(frameHead, backupHead{Created: time.Now().UTC()})
}

func placeOf(number [16]byte, place uint64) []byte {
	return fmt.Appendf(nil, labels.PartBackup+"\n%x\n%d", number, place)
}

func (b *backupWriter) json(kind byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.frame(kind, "", body)
}

// frame writes one frame.
func (b *backupWriter) frame(kind byte, name string, body []byte) error {
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return err
	}
	plain := append([]byte{kind, byte(len(name))}, name...)
	box, err := keyexchange.Seal(&nonce, b.key, append(plain, body...), placeOf(b.number, b.next))
	if err != nil {
		return err
	}
	b.next++
	if len(name) > 255 || len(box) > mostFrame {
		return fmt.Errorf("%w: %.80s is too long for a backup", ErrRecord, name)
	}
	if err := binary.Write(b.w, binary.BigEndian, uint32(len(box))); err != nil {
		return err
	}
	_, err = b.w.Write(box)
	return err
}

func (b *backupWriter) end() error {
	if err := b.frame(frameEnd, "", nil); err != nil {
		return err
	}
	if err := binary.Write(b.w, binary.BigEndian, uint32(0)); err != nil {
		return err
	}
	_, err := b.file.Write(b.digest.Sum(nil))
	return err
}

// ReadBackup reads a file that should be a backup to its end, without a key. It fails with
// [ErrNoBackup], [ErrCut] or [ErrAltered].
func ReadBackup(file io.Reader) error {
	_, err := readBackup(file, nil, nil)
	return err
}

// readBackup reads a backup and returns when it was made. Each frame is shown once it has opened,
// before it is known whether the rest is whole: read twice. Without a key no frame is opened.
func readBackup(file io.Reader, keys *Keys, show func(*frame) error,
) (made time.Time, err error) {
	digest := sha256.New()
	buffered := bufio.NewReaderSize(file, 1<<16)
	in := io.TeeReader(buffered, digest)
	var start [len(backupMagic) + 16]byte
	if n, err := io.ReadFull(in, start[:]); err != nil && strings.HasPrefix(backupMagic,
		string(start[:min(n, len(backupMagic))])) {
		return made, cut(err)
	}
	if string(start[:len(backupMagic)]) != backupMagic {
		return made, ErrNoBackup
	}
	number := [16]byte(start[len(backupMagic):])
	kind := byte(0)
	var wrong error // why frames are no longer opened: the digest tells the cause
	for place := uint64(0); ; place++ {
		var size uint32
		if err := binary.Read(in, binary.BigEndian, &size); err != nil {
			return made, cut(err)
		}
		if size == 0 {
			break
		}
		if size > mostFrame {
			return made, ErrAltered
		}
		var box bytes.Buffer // it grows with the bytes that arrive
		if _, err := io.CopyN(&box, in, int64(size)); err != nil {
			return made, cut(err)
		}
		if keys == nil || wrong != nil {
			continue
		}
		f, err := openFrame(keys, box.Bytes(), placeOf(number, place))
		switch {
		case err != nil && place == 0:
			wrong = ErrOtherKey
			continue
		case err != nil, kind == frameEnd, (place == 0) != (f.kind == frameHead):
			wrong = ErrAltered
			continue
		}
		if kind = f.kind; kind == frameHead {
			var head backupHead
			err = json.Unmarshal(f.body, &head)
			made = head.Created
		} else if kind != frameEnd {
			err = show(f)
		}
		if err != nil {
			return made, err
		}
	}
	want := digest.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(buffered, got); err != nil {
		return made, cut(err)
	}
	_, err = buffered.ReadByte()
	switch {
	case !bytes.Equal(got, want), err == nil:
		return made, ErrAltered
	case wrong != nil:
		return made, wrong
	case keys != nil && kind != frameEnd:
		return made, ErrAltered
	case err != io.EOF:
		return made, err
	}
	return made, nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

func openFrame(keys *Keys, box, place []byte) (*frame, error) {
	plain, err := keys.Open(box, place)
	if err != nil || len(plain) < 2 || len(plain) < 2+int(plain[1]) {
		return nil, ErrAltered
	}
	end := 2 + int(plain[1])
	f := &frame{kind: plain[0], name: string(plain[2:end]), body: plain[end:]}
	if f.kind != frameDefinition {
		return f, nil
	}
	f.definition = new(Definition)
	if err := json.Unmarshal(f.body, f.definition); err != nil {
		return nil, ErrAltered
	}
	return f, nil
}

// check fails with [ErrRecord] if this program cannot restore a frame.
func (f *frame) check() error {
	switch f.kind {
	case frameDefinition:
		if len(f.definition.ID) != 2*sha256.Size {
			return fmt.Errorf("%w: the definition of %.80q", ErrRecord, f.definition.ID)
		}
		return readable("definition", f.definition.ID, f.definition.Format)
	case frameEntry:
		if _, err := chain.Parse(f.body); err != nil {
			return fmt.Errorf("%w: %w", ErrRecord, err)
		}
		return nil
	case frameObject, frameLog:
		return nil
	}
	return fmt.Errorf("%w: a frame of kind %q", ErrNoBackup, f.kind)
}
