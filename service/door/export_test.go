package door

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"
)

// Waiting is how many bytes the bodies have that are being read or taken.
func Waiting(d *Door) int64 { return d.inFlight.Load() }

// Room is how many bytes of these are held in memory.
func Room(d *Door) int64 { return d.inMemory.Load() }

// Store stores a body in a file, and returns the file's bytes and a reader of the body.
func Store(t *testing.T, d *Door, sent []byte) (stored []byte, reader io.Reader) {
	t.Helper()
	b, err := d.newBody(int64(len(sent)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.readFrom(bytes.NewReader(sent), b.size); err != nil {
		t.Fatal(err)
	}
	stored = make([]byte, len(sent))
	if _, err := b.file.ReadAt(stored, 0); err != nil {
		t.Fatal(err)
	}
	if reader, err = b.reader(); err != nil {
		t.Fatal(err)
	}
	return stored, reader
}

// Held stores bodies of this many bytes, closes them, and returns the room in memory that is taken
// after each of these.
func Held(t *testing.T, d *Door, sizes ...int64) (held []int64) {
	t.Helper()
	var bodies []*body
	for _, size := range sizes {
		b, err := d.newBody(size)
		if err != nil {
			t.Fatal(err)
		}
		bodies, held = append(bodies, b), append(held, Room(d))
	}
	for _, b := range bodies {
		b.Close()
		held = append(held, Room(d))
	}
	return held
}

// Closed stores a body in a file, closes it, and reports whether the file is closed.
func Closed(t *testing.T, d *Door) bool {
	t.Helper()
	b, err := d.newBody(d.Memory + 1)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	_, err = b.file.Stat()
	return errors.Is(err, os.ErrClosed)
}

// Addresses is how many addresses a door may remember.
const Addresses = maxLimiters

// Swept returns when a door last looked for addresses to forget.
func Swept(d *Door) time.Time { return d.strangers.swept }

// PatientAt is Patient by another clock.
func PatientAt(next http.Handler, now func() time.Time) http.Handler {
	return newPatient(next, 0, now)
}
