package flat

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The codecs, as the format numbers them.
const (
	uncompressed = 0
	codecSnappy  = 1
	codecGzip    = 2
	codecBrotli  = 4
	codecLZ4     = 5
	codecZstd    = 6
	codecLZ4Raw  = 7
)

var codecs = []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}

// decompress returns the bytes that a codec has made smaller, size of them: data itself, or into,
// which has room for them.
func decompress(codec int32, into, data []byte, size int) ([]byte, error) {
	if codec == uncompressed {
		if len(data) != size {
			return nil, invalid("a page has %d bytes and not %d", len(data), size)
		}
		return data, nil
	}
	if int(codec) >= len(codecs) || codec < 0 || codecs[codec] == "LZO" {
		return nil, unread("it has the codec %s", named(codecs, codec, "of number"))
	}
	if len(data) == 0 && size == 0 {
		return nil, nil // some writers compress nothing for a page without a value
	}
	into = into[:size]
	var n int
	var err error
	switch codec {
	case codecSnappy:
		n, err = snappy.DecodedLen(data)
		if err == nil && n == size {
			_, err = snappy.Decode(into, data)
		}
	case codecGzip:
		var from io.Reader
		if from, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			n, err = stream{from}.full(into)
		}
	case codecBrotli:
		n, err = stream{brotli.NewReader(bytes.NewReader(data))}.full(into)
	case codecZstd:
		var from *zstd.Decoder
		from, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(mostPage), zstd.WithDecoderLowmem(true))
		if err == nil {
			n, err = stream{from}.full(into)
			from.Close()
		}
	case codecLZ4Raw:
		n, err = block(data, into)
	case codecLZ4:
		// Hadoop writes the lengths of blocks before them, others a block alone. The first byte
		// tells: a block has a literal first, so that 16 or more is there, and the length of a page
		// is less.
		if data[0] >= mostPage>>24+1 {
			n, err = block(data, into)
		} else {
			n, err = hadoop(data, into)
		}
	}
	if err != nil || n != size {
		return nil, invalid("a page cannot be decompressed (%s)", codecs[codec])
	}
	return into, nil
}

// stream reads what was compressed.
type stream struct{ io.Reader }

// full reads all, which must not be more than there is room for.
func (s stream) full(into []byte) (int, error) {
	n, err := io.ReadFull(s, into)
	if err != nil {
		return n, err
	}
	more, err := io.Copy(io.Discard, io.LimitReader(s, 1))
	return n + int(more), err
}

// block reads a block of LZ4.
func block(data, into []byte) (int, error) {
	if len(into) == 0 {
		if len(data) == 1 && data[0] == 0 {
			return 0, nil
		}
		return 1, nil
	}
	return lz4.UncompressBlock(data, into)
}

// hadoop reads blocks of LZ4, each after its length without and with compression.
func hadoop(data, into []byte) (n int, err error) {
	for len(data) > 0 {
		if len(data) < 8 {
			return 0, errEnds
		}
		size, length := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
		data = data[8:]
		if uint64(length) > uint64(len(data)) || uint64(size) > uint64(len(into)-n) {
			return 0, errEnds
		}
		k, err := block(data[:length], into[n:n+int(size)])
		if err != nil || k != int(size) {
			return 0, errEnds
		}
		n, data = n+k, data[length:]
	}
	return n, nil
}
