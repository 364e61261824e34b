package door

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"
)

// Waiting is how many bytes the bodies have that are being read or taken.
func Waiting(d *Door) int64 { return d.inFlight.Load() }

// Store stores a body in a file, and returns the file's bytes and a reader of the body.
func Store(t *testing.T, d *Door, sent []byte) (stored []byte, reader io.Reader) {
	t.Helper()
	b, err := d.newBody(int64(len(sent)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if _, err := b.readFrom(bytes.NewReader(sent)); err != nil {
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

// Addresses is how many addresses a door may remember.
const Addresses = maxLimiters

// Swept returns when a door last looked for addresses to forget.
func Swept(d *Door) time.Time { return d.strangers.swept }

// PatientAt is Patient by another clock.
func PatientAt(next http.Handler, now func() time.Time) http.Handler {
	return newPatient(next, 0, now)
}
