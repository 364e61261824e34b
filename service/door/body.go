package door

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"time"
)

// A body waits until it is whole, so that a party whose connection is slow or breaks off keeps no
// other party waiting. Many wait at once: a body for which memory has no room goes to a file
// without a name, under a key that only this process has, so that no submission can be found on a
// disk, masked as it is.

const (
	defaultMemory = 64 << 20
	readSize      = 16 << 10
)

// errFull: the bodies that are being read have no room for another.
var errFull = errors.New("door: too many bytes are being read")

// body is a body that is being received. Close it.
type body struct {
	door   *Door
	size   int64
	came   int64
	digest hash.Hash // of the bytes received
	data   []byte    // in memory
	file   *os.File  // or here, encrypted
	block  cipher.Block
	to     cipher.StreamWriter // to the file
}

// newBody makes room for a body, in memory or in a file. It fails with errFull while others take up
// all the room.
func (d *Door) newBody(size int64) (b *body, err error) {
	if d.inFlight.Add(size) > d.InFlight {
		d.inFlight.Add(-size)
		return nil, errFull
	}
	defer func() {
		if err != nil {
			d.inFlight.Add(-size)
		}
	}()
	b = &body{door: d, size: size, digest: sha256.New()}
	if d.inMemory.Add(size) <= d.Memory {
		b.data = make([]byte, 0, size)
		return b, nil
	}
	d.inMemory.Add(-size)
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	if b.block, err = aes.NewCipher(key[:]); err != nil {
		return nil, err
	}
	if b.file, err = os.CreateTemp(d.Folder, "body-*"); err != nil {
		return nil, err
	}
	b.to = cipher.StreamWriter{S: b.stream(), W: b.file}
	_ = os.Remove(b.file.Name()) // where open files cannot be, Close does
	return b, nil
}

// stream is the file's keystream from its beginning: the key is this body's alone.
func (b *body) stream() cipher.Stream {
	return cipher.NewCTR(b.block, make([]byte, aes.BlockSize))
}

// readFrom reads the next n bytes of the body, which has that many. It keeps what was received even
// if it fails, except after an os.PathError: then the body is lost.
func (b *body) readFrom(from io.Reader, n int64) error {
	from = io.TeeReader(io.LimitReader(from, n), b.digest)
	end := b.came + n
	var err error
	if b.file == nil {
		for err == nil && b.came < end {
			var k int
			k, err = from.Read(b.data[b.came:min(b.came+readSize, end)])
			b.came += int64(k)
			b.data = b.data[:b.came]
		}
	} else {
		n, err = io.CopyBuffer(b.to, from, make([]byte, readSize))
		b.came += n
	}
	switch {
	case b.came == end:
		return nil
	case err == nil || err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// reader reads the body from its beginning.
func (b *body) reader() (io.Reader, error) {
	if b.file == nil {
		return bytes.NewReader(b.data), nil
	}
	if _, err := b.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return cipher.StreamReader{S: b.stream(), R: b.file}, nil
}

// Close releases the room.
func (b *body) Close() {
	b.door.inFlight.Add(-b.size)
	if b.file == nil {
		b.data = nil
		b.door.inMemory.Add(-b.size)
		return
	}
	_ = b.file.Close()
	_ = os.Remove(b.file.Name())
}

// transferTime is how long bytes may take to arrive or leave at an acceptable speed.
func transferTime(n int) time.Duration {
	return DefaultPatience + bytesTime(int64(n))
}
