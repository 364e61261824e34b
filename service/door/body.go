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
	"net/http"
	"os"
	"time"
)

// A body waits until it is whole, so that a party whose connection is slow, or breaks off,
// keeps nobody else waiting. Many wait at once: what finds no room in memory goes to a file
// without a name, under a key that only this process has, so that no submission can be
// found on a disk, masked as it is.

const (
	defaultMemory = 64 << 20
	pieceSize     = 16 << 10
)

// body is one that has come. Close it.
type body struct {
	door   *Door
	size   int64
	digest hash.Hash
	data   []byte   // in memory
	file   *os.File // or here, encrypted
	block  cipher.Block
}

// newBody makes room for a body, in memory or in a file.
func (d *Door) newBody(size int64) (*body, error) {
	b := &body{door: d, size: size, digest: sha256.New()}
	if d.inMemory.Add(size) <= d.Memory {
		b.data = make([]byte, 0, size)
		return b, nil
	}
	d.inMemory.Add(-size)
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(d.Folder, "body-*")
	if err != nil {
		return nil, err
	}
	b.block, b.file = block, file
	_ = os.Remove(file.Name()) // where open files cannot be, Close does
	return b, nil
}

// stream is the file's keystream from its beginning: the key is this body's alone.
func (b *body) stream() cipher.Stream {
	return cipher.NewCTR(b.block, make([]byte, aes.BlockSize))
}

// readFrom reads the body.
func (b *body) readFrom(from io.Reader) (n int64, err error) {
	from = io.TeeReader(io.LimitReader(from, b.size), b.digest)
	if b.file == nil {
		for err == nil && int64(len(b.data)) < b.size {
			var k int
			k, err = from.Read(b.data[len(b.data):min(int64(len(b.data)+pieceSize), b.size)])
			b.data = b.data[:len(b.data)+k]
		}
		return int64(len(b.data)), short(int64(len(b.data)), b.size, err)
	}
	to := cipher.StreamWriter{S: b.stream(), W: b.file}
	n, err = io.CopyBuffer(to, from, make([]byte, pieceSize))
	return n, short(n, b.size, err)
}

func short(n, size int64, err error) error {
	switch {
	case n == size:
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

// Close gives the room free.
func (b *body) Close() {
	if b.file == nil {
		b.data = nil
		b.door.inMemory.Add(-b.size)
		return
	}
	_ = b.file.Close()
	_ = os.Remove(b.file.Name())
}

// read reads a body of the length that was told, while the bytes of all bodies have room.
// The caller closes it, and takes its length off the bytes in flight.
func (d *Door) read(w http.ResponseWriter, r *http.Request) (b *body, ok bool) {
	n := r.ContentLength
	if d.inFlight.Add(n) > d.InFlight {
		d.inFlight.Add(-n)
		d.refuse(w, "full", "ask again")
		return nil, false
	}
	b, err := d.newBody(n)
	if err == nil {
		var came int64
		if came, err = b.readFrom(r.Body); err == nil {
			return b, true
		}
		b.Close()
		if failed := new(os.PathError); !errors.As(err, &failed) {
			d.inFlight.Add(-n)
			d.refuse(w, "slow", "%d of %d bytes came, and then nothing, or too little", came, n)
			return nil, false
		}
	}
	d.inFlight.Add(-n)
	d.Log.Error("there is no room for a body on the disk", "error", err.Error())
	d.refuse(w, "full", "ask again")
	return nil, false
}

// transferTime is how long bytes may take that come or go at a bearable speed.
func transferTime(n int) time.Duration {
	return DefaultPatience + bytesTime(int64(n))
}
