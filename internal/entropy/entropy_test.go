package entropy

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestRead(t *testing.T) {
	want := []byte("0123456789abcdef")
	for _, c := range []struct {
		name   string
		reader io.Reader
	}{
		{"whole", bytes.NewReader(want)},
		{"byte by byte", iotest.OneByteReader(bytes.NewReader(want))},
		{"error with the last bytes", iotest.DataErrReader(bytes.NewReader(want))},
	} {
		b := make([]byte, len(want))
		if err := Read("test", c.reader, b); err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s: %q, %v", c.name, b, err)
		}
	}
	one, two := make([]byte, 32), make([]byte, 32)
	if err := errors.Join(Read("test", nil, one), Read("test", nil, two)); err != nil ||
		bytes.Equal(one, two) {
		t.Errorf("two draws from nil: %x, %x, %v", one, two, err)
	}
	if err := Read("test", iotest.ErrReader(io.ErrClosedPipe), nil); err != nil {
		t.Errorf("nothing to read: %v", err)
	}
}

func TestReadErrors(t *testing.T) {
	own := errors.New("own")
	for _, c := range []struct {
		name   string
		reader io.Reader
		want   error
	}{
		{"empty", bytes.NewReader(nil), io.EOF},
		{"short", bytes.NewReader(make([]byte, 15)), io.ErrUnexpectedEOF},
		{"failing", iotest.ErrReader(own), own},
		{"failing late", io.MultiReader(bytes.NewReader(make([]byte, 15)), iotest.ErrReader(own)), own},
		{"idle", readerFunc(func([]byte) (int, error) { return 0, nil }), io.ErrNoProgress},
		{"beyond the end", readerFunc(func(b []byte) (int, error) { return len(b) + 1, nil }), nil},
		{"negative", readerFunc(func([]byte) (int, error) { return -1, nil }), nil},
	} {
		b := bytes.Repeat([]byte{7}, 16)
		err := Read("test", c.reader, b)
		if !errors.Is(err, Err) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if !bytes.Equal(b, make([]byte, 16)) {
			t.Errorf("%s: %x is left", c.name, b)
		}
	}
}
