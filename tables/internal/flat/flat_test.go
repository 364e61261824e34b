package flat

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// record writes a structure of Thrift's compact protocol.
type record struct {
	b    []byte
	last int
}

func (r *record) head(id int, kind byte) {
	r.b = append(r.b, byte(id-r.last)<<4|kind)
	r.last = id
}

func (r *record) number(id int, x int64) *record {
	r.head(id, kindInt64)
	r.b = binary.AppendVarint(r.b, x)
	return r
}

func (r *record) text(id int, text string) *record {
	r.head(id, kindBinary)
	r.b = append(binary.AppendUvarint(r.b, uint64(len(text))), text...)
	return r
}

func (r *record) inner(id int, in *record) *record {
	r.head(id, kindStruct)
	r.b = append(r.b, in.end()...)
	return r
}

func (r *record) list(id int, kind byte, elements ...[]byte) *record {
	r.head(id, kindList)
	r.b = append(r.b, byte(len(elements))<<4|kind)
	r.b = append(r.b, bytes.Join(elements, nil)...)
	return r
}

func (r *record) end() []byte { return append(r.b, 0) }

func short(text string) []byte { return append([]byte{byte(len(text))}, text...) }

// page is a page of version 1 or 2 of an optional column of 32 bits, whose levels say that the
// values are there, or that none is.
type page struct {
	version            int
	codec              int64
	rows, nulls        int64
	body               []byte // as stored, without levels of version 2
	size               int64  // of it, without compression
	levels             []byte // of version 2
	encoding, levelsIn int64
	sum                *int64
}

// made returns a file of one page.
func made(p page, change func(chunk, group, footer *record)) []byte {
	head := new(record)
	stored := append(bytes.Clone(p.levels), p.body...)
	head.number(1, map[int]int64{1: dataPage, 2: dataPage2}[p.version])
	head.number(2, p.size+int64(len(p.levels))).number(3, int64(len(stored)))
	if p.sum != nil {
		head.number(4, *p.sum)
	}
	if p.version == 1 {
		head.inner(5, new(record).number(1, p.rows).number(2, p.encoding).number(3, p.levelsIn).
			number(4, runs))
	} else {
		head.inner(8, new(record).number(1, p.rows).number(2, p.nulls).number(3, p.rows).
			number(4, p.encoding).number(5, int64(len(p.levels))).number(6, 0))
	}
	file := append([]byte(magic), append(head.end(), stored...)...)
	meta := new(record).number(1, int64(Int32)).list(2, kindInt32).
		list(3, kindBinary, short("x")).number(4, p.codec).number(5, p.rows).number(6, 0).
		number(7, 0)
	chunk, group, footer := new(record), new(record), new(record)
	footer.number(1, 2).list(2, kindStruct, new(record).text(4, "root").number(5, 1).end(),
		new(record).number(1, int64(Int32)).number(3, 1).text(4, "x").end()).number(3, p.rows)
	if change != nil {
		change(meta, chunk, footer)
	}
	meta.number(9, int64(len(magic)))
	if chunk.last < 3 {
		chunk.number(2, 0).inner(3, meta)
	}
	group.list(1, kindStruct, chunk.end()).number(2, 0).number(3, p.rows)
	if footer.last < 4 {
		footer.list(4, kindStruct, group.end())
	}
	text := footer.end()
	file = append(file, text...)
	return append(binary.LittleEndian.AppendUint32(file, uint32(len(text))), magic...)
}

// read returns the rows of a file's only column.
func read(file []byte) (rows []any, err error) {
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	convert := func(bits uint64, _ []byte) (any, error) { return int32(bits), nil }
	failed := f.Rows([]Wanted{{Column: &f.Columns[0], Convert: convert}},
		func(_ int, wrong error) error {
			err = wrong
			return nil
		}, func(row []any) bool {
			rows = append(rows, row[0])
			return len(rows) < 1000
		})
	return rows, cmp.Or(err, failed)
}

// three are the levels and the values of a page of version 1: 7, none, 9.
var three = []byte{2, 0, 0, 0, 1<<1 | 1, 0b101, 7, 0, 0, 0, 9, 0, 0, 0}

// squeezed returns three in blocks of LZ4, with Hadoop's lengths or without.
func squeezed(t *testing.T, hadoop bool, parts ...int) (b []byte) {
	t.Helper()
	from := three
	for _, n := range append(parts, len(three)) {
		n = min(n, len(from))
		block := append([]byte{byte(n) << 4}, from[:n]...) // a block of literals alone
		if check := make([]byte, n); n < 15 {
			if k, err := lz4.UncompressBlock(block, check); err != nil || k != n {
				t.Fatal(err)
			}
		}
		from = from[n:]
		if hadoop && n > 0 {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
			b = binary.BigEndian.AppendUint32(b, uint32(len(block)))
		}
		if n > 0 {
			b = append(b, block...)
		}
	}
	return b
}

// What libraries refuse, or read as something else, is read.
func TestReads(t *testing.T) {
	plain1 := page{version: 1, rows: 3, body: three, size: int64(len(three)), levelsIn: runs}
	with := func(p page, codec int64, body []byte) page {
		p.codec, p.body = codec, body
		return p
	}
	sum := int64(int32(crc32.ChecksumIEEE(three)))
	summed := plain1
	summed.sum = &sum
	const want = "[7 <nil> 9]"
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"plain":            {made(plain1, nil), want},
		"checksum":         {made(summed, nil), want},
		"LZ4_RAW":          {made(with(plain1, codecLZ4Raw, squeezed(t, false)), nil), want},
		"LZ4":              {made(with(plain1, codecLZ4, squeezed(t, false)), nil), want},
		"LZ4 of Hadoop":    {made(with(plain1, codecLZ4, squeezed(t, true)), nil), want},
		"blocks of Hadoop": {made(with(plain1, codecLZ4, squeezed(t, true, 5, 3)), nil), want},
		"no value": {made(page{version: 2, codec: codecSnappy, rows: 3, nulls: 3,
			levels: []byte{3 << 1, 0}}, nil), "[<nil> <nil> <nil>]"},
		"a pair without a value": {made(plain1, func(chunk, _, _ *record) {
			chunk.list(8, kindStruct, new(record).text(1, "key").end())
		}), want},
	} {
		if rows, err := read(c.file); err != nil || fmt.Sprint(rows) != c.want {
			t.Errorf("%s: %v %v, want %s", name, rows, err, c.want)
		}
	}
}

// What is not read is refused by name, and a file that contradicts itself as invalid.
func TestRefuses(t *testing.T) {
	good := page{version: 1, rows: 3, body: three, size: int64(len(three)), levelsIn: runs}
	with := func(change func(*page)) []byte {
		p := good
		change(&p)
		return made(p, nil)
	}
	wrong := int64(1)
	for want, c := range map[string]struct {
		file []byte
		kind error
	}{
		"the codec LZO":                 {with(func(p *page) { p.codec = 3 }), ErrUnread},
		"the codec of number 9":         {with(func(p *page) { p.codec = 9 }), ErrUnread},
		"levels in the encoding BIT_PA": {with(func(p *page) { p.levelsIn = 4 }), ErrUnread},
		"the encoding BIT_PACKED of a":  {with(func(p *page) { p.encoding = 4 }), ErrUnread},
		"a column in another file": {made(good, func(_, chunk, _ *record) {
			chunk.text(1, "other")
		}), ErrUnread},
		"it is encrypted": {made(good, func(meta, chunk, _ *record) {
			chunk.number(2, 0).inner(3, meta.number(9, 4)).inner(8, new(record))
		}), ErrUnread},
		"a page of 256 MiB":      {with(func(p *page) { p.codec, p.size = codecZstd, 1<<28 }), ErrUnread},
		"the checksum":           {with(func(p *page) { p.sum = &wrong }), ErrFormat},
		"cannot be decompressed": {with(func(p *page) { p.codec = codecZstd }), ErrFormat},
		"more values than it": {with(func(p *page) {
			p.body, p.size = append(bytes.Clone(three), 1, 0, 0, 0), p.size+4
		}), ErrFormat},
		"fewer values than": {with(func(p *page) {
			p.body, p.size = three[:10], 10
		}), ErrFormat},
		"that its dictionary": {with(func(p *page) {
			p.encoding, p.size = runsDictionary, 9
			p.body = append(bytes.Clone(three[:6]), 1, 2<<1, 1)
		}), ErrFormat},
	} {
		rows, err := read(c.file)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v, want %q", rows, err, want)
		}
	}
	file := made(good, nil)
	for n := range file {
		if _, err := read(file[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A file takes no more memory than its pages have, whatever lengths and numbers it announces.
func TestAnnounces(t *testing.T) {
	good := page{version: 1, rows: 3, body: three, size: int64(len(three)), levelsIn: runs}
	delta := good
	// 2^31 differences of no bits after 7, in blocks of 2^30.
	delta.body = append(bytes.Clone(three[:6]), 0x80, 0x80, 0x80, 0x80, 0x04, 1, 0x80, 0x80, 0x80,
		0x80, 0x08, 14, 0, 0)
	delta.size, delta.encoding = int64(len(delta.body)), deltaBinary
	long := page{version: 1, rows: math.MaxInt32, levelsIn: runs,
		body: append([]byte{6, 0, 0, 0}, binary.AppendUvarint(nil, math.MaxInt32<<1)...)}
	long.body = append(long.body, 0) // no row has a value
	long.size = int64(len(long.body))
	for name, file := range map[string][]byte{"a run": made(long, nil),
		"differences": made(delta, nil)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = read(file)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
			t.Errorf("%s: a file of %d bytes takes %d", name, len(file), allocated)
		}
	}
	if rows, err := read(made(long, nil)); err != nil || len(rows) != 1000 {
		t.Errorf("a run: %d rows, %v", len(rows), err)
	}
}

// Every number of 16 bits has a value, and the next one is greater.
func TestHalf(t *testing.T) {
	at := func(x uint16) float64 { return Half(binary.LittleEndian.AppendUint16(nil, x)) }
	for x := range uint16(0x7c00) {
		if at(x+1) <= at(x) || at(x|0x8000) != -at(x) {
			t.Fatalf("%x: %v %v", x, at(x), at(x+1))
		}
	}
	for x, want := range map[uint16]float64{0: 0, 1: 0x1p-24, 0x3ff: 1023 * 0x1p-24, 0x400: 0x1p-14,
		0x3c00: 1, 0x3555: 0x1.554p-2, 0x7bff: 65504, 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1)} {
		if at(x) != want {
			t.Errorf("%x: %v, want %v", x, at(x), want)
		}
	}
	if !math.IsNaN(at(0x7e00)) || !math.Signbit(at(0x8000)) {
		t.Error("not a number, or zero")
	}
}
