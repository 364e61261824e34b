package flat

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
)

const (
	// mostPage is the most bytes of a page, before and after compression.
	mostPage = 1<<28 - 1
	// mostRoom is the most bytes of pages that are held at a time.
	mostRoom = 1 << 30
	// mostKept is the most values of a dictionary that are kept as they are converted.
	mostKept = 1 << 20
)

// Wanted is a column that is to be read.
type Wanted struct {
	*Column
	// Convert makes a value of the bits of a number, or of bytes, which it must not keep.
	Convert func(bits uint64, bytes []byte) (any, error)
	Refused error // why the column is not read, or nil: those within others and lists must have one
}

// Rows reads the rows of columns. It calls yield with the values of each row, in the order of the
// columns; nil is no value. It uses the slice again. It ends early when yield returns false.
//
// A column that cannot be read does not end the rows: what refuse returns stands once in the place
// of its value, and nil in later rows. The rows end when no column is left, with what refuse
// returns for the first, or when there is no row in which an error could stand.
func (f *File) Rows(
	wanted []Wanted, refuse func(column int, err error) error, yield func([]any) bool,
) error {
	if len(wanted) == 0 {
		return nil
	}
	row := make([]any, len(wanted))
	readers := make([]*reader, len(wanted))
	for i, w := range wanted {
		readers[i] = &reader{Column: w.Column, file: f, convert: w.Convert, failed: w.Refused}
	}
	refused := 0
	for i := range f.groups {
		g := &f.groups[i]
		for _, r := range readers {
			if r.failed == nil {
				r.fail(r.begin(g))
			}
		}
		for n := range g.rows {
			for k, r := range readers {
				var err error
				if row[k], err = r.value(n+1 == g.rows); err != nil {
					row[k] = refuse(k, err)
					refused++
				}
			}
			if !yield(row) {
				return nil
			}
			if refused == len(readers) {
				return refuse(0, readers[0].failed)
			}
		}
	}
	for k, r := range readers {
		if r.failed != nil && !r.told {
			return refuse(k, r.failed)
		}
	}
	return nil
}

// reader reads the values of a column, one group of rows after the other.
type reader struct {
	*Column
	file    *File
	convert func(bits uint64, bytes []byte) (any, error)
	failed  error // why the column cannot be read
	told    bool  // a row has the error

	chunk  *chunk
	from   thrift // the pages that are to come
	left   int64  // values of the group, beyond this page
	inPage int64  // values of this page to come

	levels  *hybrid // 1 for a value, 0 for none; nil: all have one
	values  decoder // nil: by the dictionary
	indices hybrid

	compressed, page   []byte   // room for a page as it is stored, and for that without compression
	dictionaryBuffer   []byte   // room for the dictionary
	dictionary         []byte   // its page
	starts             []uint32 // of its values, and its end, if they differ in length
	kept               []any    // its values, converted; empty: there are too many
	size               int      // of it, in values
	nulls, wantedNulls int64    // in this page; -1: it does not say
}

// fail notes why the column cannot be read, if there is an error, and leaves the room of its pages
// to others.
func (r *reader) fail(err error) {
	if err == nil {
		return
	}
	r.file.room -= cap(r.compressed) + cap(r.page) + cap(r.dictionaryBuffer)
	*r = reader{Column: r.Column, file: r.file, failed: err}
}

// value returns the next value, the last of a group or not, or once the error.
func (r *reader) value(last bool) (x any, err error) {
	if r.failed == nil {
		x, err = r.next()
		if err == nil && last {
			err = r.ended()
		}
		r.fail(err)
	}
	if r.failed == nil || r.told {
		return x, nil
	}
	r.told = true
	return nil, r.failed
}

// begin goes to a group.
func (r *reader) begin(g *group) error {
	c := &g.chunks[r.leaf]
	switch {
	case c.encrypted:
		return unread("it is encrypted")
	case c.elsewhere:
		return unread("it has a column in another file")
	case c.kind != r.Type:
		return invalid("it is of type %s in a group", c.kind)
	case c.values != g.rows:
		return invalid("it has %d values for %d rows", c.values, g.rows)
	}
	start := c.data
	if c.dictionary > 0 && c.dictionary < start {
		start = c.dictionary
	}
	if c.values > 0 && (start < int64(len(magic)) || start > r.file.end) {
		return invalid("its pages are not within the file")
	}
	section := io.NewSectionReader(r.file.from, start, r.file.end-start)
	if r.from.Reader == nil {
		r.from.Reader = bufio.NewReaderSize(section, 1<<15)
	}
	r.from.Reset(section)
	r.chunk, r.left, r.inPage, r.size, r.values = c, c.values, 0, 0, nil
	return nil
}

// ended compares a group that was read with its pages.
func (r *reader) ended() error {
	if r.left > 0 || r.inPage > 0 {
		return invalid("it has more values than rows")
	}
	return r.pageEnded()
}

// pageEnded fails if a page has more than was read of it.
func (r *reader) pageEnded() error {
	if r.wantedNulls >= 0 && r.nulls != r.wantedNulls || r.values != nil && r.values.rest() {
		return invalid("a page has more values than it says")
	}
	return nil
}

// next returns the next value.
func (r *reader) next() (any, error) {
	for r.inPage == 0 {
		if r.left == 0 {
			return nil, errValues
		}
		if err := r.turn(); err != nil {
			return nil, err
		}
	}
	r.inPage--
	if r.levels != nil {
		level, err := r.levels.next()
		if err != nil {
			return nil, err
		}
		if level == 0 {
			r.nulls++
			return nil, nil
		}
	}
	if r.values != nil {
		v, err := r.values.next()
		if err != nil {
			return nil, err
		}
		return r.convert(v.bits, v.bytes)
	}
	k, err := r.indices.next()
	if err != nil {
		return nil, err
	}
	if k >= uint64(r.size) {
		return nil, invalid("it has a value that its dictionary lacks")
	}
	if len(r.kept) > 0 {
		return r.kept[k], nil
	}
	v := r.word(int(k))
	return r.convert(v.bits, v.bytes)
}

// header is the head of a page.
type header struct {
	kind               int32
	size, compressed   int32
	sum                int32
	summed             bool
	values, nulls      int32
	encoding, levels   int32
	defBytes, repBytes int32
	squeezed           bool // of version 2: the values are compressed
}

// The kinds of pages.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPage2      = 3
)

func (t *thrift) header() header {
	h := header{nulls: -1, squeezed: true, levels: runs}
	found, inner := 0, 0
	t.structure(func(id int, kind byte) {
		found |= 1 << (id & 15)
		switch id {
		case 1:
			h.kind = t.int32(kind)
		case 2:
			h.size = t.int32(kind)
		case 3:
			h.compressed = t.int32(kind)
		case 4:
			h.sum, h.summed = t.int32(kind), true
		case 5, 7, 8:
			t.inner(kind, func(field int, kind byte) {
				inner |= 1 << (field & 15)
				switch {
				case field == 1:
					h.values = t.int32(kind)
				case field == 2 && id != 8, field == 4 && id == 8:
					h.encoding = t.int32(kind)
				case field == 3 && id == 5:
					h.levels = t.int32(kind)
				case field == 2 && id == 8:
					h.nulls = t.int32(kind)
				case field == 5 && id == 8:
					h.defBytes = t.int32(kind)
				case field == 6 && id == 8:
					h.repBytes = t.int32(kind)
				case field == 7 && id == 8:
					h.squeezed = kind == kindTrue
				default:
					t.skip(kind, 0)
				}
			})
		default:
			t.skip(kind, 0)
		}
	})
	at, needed := 0, 0 // the fields that a page of the kind has, and those of its own structure
	switch h.kind {
	case dataPage:
		at, needed = 5, 1<<1|1<<2|1<<3
	case dictionaryPage:
		at, needed = 7, 1<<1|1<<2
	case dataPage2:
		at, needed = 8, 1<<1|1<<2|1<<4|1<<5|1<<6
	}
	if found&(1<<1|1<<2|1<<3) != 1<<1|1<<2|1<<3 || at > 0 && found&(1<<at) == 0 ||
		inner&needed != needed {
		t.fail(invalid("the head of a page lacks a field"))
	}
	return h
}

// turn reads the next page of values, and a dictionary before it.
func (r *reader) turn() error {
	if err := r.pageEnded(); err != nil {
		return err
	}
	h := r.from.header()
	if r.from.err != nil {
		return r.from.err
	}
	if h.size < 0 || h.compressed < 0 || h.values < 0 || h.defBytes < 0 || h.repBytes < 0 {
		return invalid("the head of a page is not valid")
	}
	if h.size > mostPage || h.compressed > mostPage {
		return unread("it has a page of 256 MiB or more")
	}
	body, err := r.body(&h)
	if err != nil {
		return err
	}
	switch h.kind {
	case indexPage:
		return nil
	case dictionaryPage:
		return r.learn(&h, body)
	case dataPage, dataPage2:
		if int64(h.values) > r.left {
			return invalid("it has more values than rows")
		}
		r.left -= int64(h.values)
		r.inPage, r.nulls, r.wantedNulls = int64(h.values), 0, int64(h.nulls)
		if h.kind == dataPage {
			return r.first(&h, body)
		}
		return r.second(&h, body)
	}
	return unread("it has a page of kind %d", h.kind)
}

// room makes room for a page, of all columns no more than mostRoom.
func (r *reader) room(buffer *[]byte, size int) error {
	if cap(*buffer) >= size {
		return nil
	}
	if r.file.room += size - cap(*buffer); r.file.room > mostRoom {
		return unread("it has pages of more than %d MiB at a time", mostRoom>>20)
	}
	*buffer = make([]byte, size)
	return nil
}

// body reads the bytes of a page as they are stored.
func (r *reader) body(h *header) ([]byte, error) {
	size := int(h.compressed)
	if int64(size) > r.file.end {
		return nil, errEnds
	}
	if err := r.room(&r.compressed, size); err != nil {
		return nil, err
	}
	body := r.compressed[:size]
	if _, err := io.ReadFull(r.from.Reader, body); err != nil {
		return nil, errEnds
	}
	if h.summed && crc32.ChecksumIEEE(body) != uint32(h.sum) {
		return nil, invalid("the checksum of a page is wrong")
	}
	return body, nil
}

// first takes a page of version 1, whose levels are compressed with its values.
func (r *reader) first(h *header, body []byte) error {
	data, err := r.plain(r.chunk.codec, &r.page, body, int(h.size))
	if err != nil {
		return err
	}
	r.levels = nil
	if r.optional {
		if h.levels != runs {
			return unread("it has levels in the encoding %s", named(encodings, h.levels, "of number"))
		}
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			return errValues
		}
		n := binary.LittleEndian.Uint32(data)
		r.levels = &hybrid{data: data[4 : 4+n], width: 1}
		data = data[4+n:]
	}
	return r.encoded(h, data)
}

// second takes a page of version 2, whose levels are not compressed.
func (r *reader) second(h *header, body []byte) error {
	// Some writers say of each value that it is the first of its row, which all are.
	before := int64(h.repBytes) + int64(h.defBytes)
	if before > int64(len(body)) || before > int64(h.size) {
		return invalid("the levels of a page are not valid")
	}
	levels, codec := body[h.repBytes:before], r.chunk.codec
	if !h.squeezed {
		codec = uncompressed
	}
	data, err := r.plain(codec, &r.page, body[before:], int(h.size)-int(before))
	if err != nil {
		return err
	}
	if r.levels = nil; r.optional {
		r.levels = &hybrid{data: levels, width: 1}
	}
	return r.encoded(h, data)
}

// plain returns a page without its compression.
func (r *reader) plain(codec int32, into *[]byte, data []byte, size int) ([]byte, error) {
	if codec != uncompressed {
		if err := r.room(into, size); err != nil {
			return nil, err
		}
	}
	return decompress(codec, (*into)[:cap(*into)], data, size)
}

// encoded takes the values of a page.
func (r *reader) encoded(h *header, data []byte) (err error) {
	r.values = nil
	if h.encoding != plainDictionary && h.encoding != runsDictionary {
		r.values, err = r.decoder(h.encoding, data)
		return err
	}
	r.indices = hybrid{}
	if len(data) > 0 {
		if data[0] > 32 {
			return invalid("places in a dictionary of %d bits", data[0])
		}
		r.indices = hybrid{data: data[1:], width: uint(data[0])}
	}
	return nil
}

// learn takes a dictionary.
func (r *reader) learn(h *header, body []byte) error {
	if h.encoding != plain && h.encoding != plainDictionary {
		return unread("it has a dictionary in the encoding %s", named(encodings, h.encoding, "of number"))
	}
	if r.Type == Boolean {
		return unread("it has a dictionary of a column of type BOOLEAN")
	}
	// Also without compression: the next page will have the room of this one.
	if err := r.room(&r.dictionaryBuffer, int(h.size)); err != nil {
		return err
	}
	data, err := r.plain(r.chunk.codec, &r.dictionaryBuffer, body, int(h.size))
	if err != nil {
		return err
	}
	r.dictionary = r.dictionaryBuffer[:copy(r.dictionaryBuffer, data)]
	r.size, r.starts, r.kept = int(h.values), r.starts[:0], r.kept[:0]
	if width := r.bytes(); width > 0 {
		if len(r.dictionary) < r.size*width {
			return errValues
		}
	} else {
		texts := lengths{r.dictionary}
		for range r.size {
			r.starts = append(r.starts, uint32(len(r.dictionary)-len(texts.data)))
			if _, err := texts.next(); err != nil {
				return err
			}
		}
	}
	if r.size > mostKept {
		return nil
	}
	for k := range r.size {
		v := r.word(k)
		x, err := r.convert(v.bits, v.bytes)
		if err != nil {
			return err
		}
		r.kept = append(r.kept, x)
	}
	return nil
}

// word returns a value of the dictionary.
func (r *reader) word(k int) value {
	if width := r.bytes(); width > 0 {
		return number(r.dictionary[k*width:(k+1)*width], r.Type)
	}
	b := r.dictionary[r.starts[k]:]
	return value{bytes: b[4 : 4+binary.LittleEndian.Uint32(b)]}
}
