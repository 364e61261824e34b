package learning

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hushsum/hushsum/internal/fault"
)

// Element types of an idx file, the third byte of its magic number.
const (
	idxByte  = 0x08
	idxInt32 = 0x0c
)

// parseIDX reads a whole idx file whose elements have the given type and whose
// sizes are exactly the given ones, and returns the elements as they are in the
// file, big-endian. (The format is described on the page of the MNIST database:
// two zero bytes, type, number of dimensions, a 32-bit size for each, data.)
//
// Sizes are those that the caller expects, so a hostile header cannot ask for
// memory. Another header or bytes after the data give ErrMalformed, a file that
// ends early gives ErrIncomplete.
func parseIDX(r io.Reader, kind byte, sizes ...int) ([]byte, error) {
	want := []byte{0, 0, kind, byte(len(sizes))}
	total := 1
	if kind == idxInt32 {
		total = 4
	}
	for _, n := range sizes {
		want = binary.BigEndian.AppendUint32(want, uint32(n))
		total *= n
	}
	header := make([]byte, len(want))
	if n, err := io.ReadFull(r, header); err != nil {
		return nil, readError(err, "the header of %d bytes ends after %d", len(want), n)
	}
	if !bytes.Equal(header, want) {
		return nil, fault.New(ErrMalformed, "",
			"header %x, want %x (type and %d sizes, %v)", header, want, len(sizes), sizes)
	}
	data := make([]byte, total)
	if n, err := io.ReadFull(r, data); err != nil {
		return nil, readError(err, "%d of %d bytes of data", n, total)
	}
	// Reading to the end also makes gzip compare its checksum.
	switch _, err := io.ReadFull(r, header[:1]); {
	case err == io.EOF:
		return data, nil
	case err != nil:
		return nil, readError(err, "the end of the file is damaged")
	}
	return nil, fault.New(ErrMalformed, "", "bytes follow the data")
}

// Advice about a file that differs from the published one.
const (
	fetchFile  = "fetch the file again"
	fetchFiles = "fetch the files again"
)

// readError classifies an error of the reader below a parser.
func readError(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return &fault.Error{Kind: ErrIncomplete, Reason: what}
	}
	return &fault.Error{Kind: ErrMalformed, Reason: fmt.Sprintf("%s: %v", what, err), Err: err}
}

// readGzip opens dir/name, which is compressed, and lets parse read it. source
// says where to get the file.
func readGzip(dir, name, source string, parse func(io.Reader) error) error {
	path := filepath.Join(dir, name)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("learning: %w; put the files of %s there", err, source)
	}
	if err != nil {
		return fmt.Errorf("learning: %w", err)
	}
	defer file.Close()
	zr, err := gzip.NewReader(file)
	if err != nil {
		return fault.At(path, readError(err, "no gzip header"), fetchFile)
	}
	if err := parse(zr); err != nil {
		return fault.At(path, err, fetchFile)
	}
	return nil
}
