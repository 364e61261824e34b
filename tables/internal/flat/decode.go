package flat

import "encoding/binary"

// value is one that a column stores: a number's bits, or bytes, which the next value may overwrite.
type value struct {
	bits  uint64
	bytes []byte
}

// decoder reads the values of a page, one after the other.
type decoder interface {
	next() (value, error)
	// rest reports whether values are left that were not read.
	rest() bool
}

var errValues = invalid("a page has fewer values than it says")

// The encodings, as the format numbers them.
const (
	plain           = 0
	plainDictionary = 2
	runs            = 3
	deltaBinary     = 5
	deltaLength     = 6
	deltaBytes      = 7
	runsDictionary  = 8
	byteSplit       = 9
)

var encodings = []string{"PLAIN", "GROUP_VAR_INT", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED",
	"DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY",
	"BYTE_STREAM_SPLIT"}

// decoder returns the decoder of an encoding of values of the column.
func (c *Column) decoder(encoding int32, data []byte) (decoder, error) {
	width := c.bytes()
	bytes := c.Type == ByteArray || c.Type == FixedLenByteArray
	switch {
	case encoding == plain && c.Type == Boolean:
		return &packed{data: data, width: 1}, nil
	case encoding == plain && width > 0:
		return &fixed{data, width, c.Type}, nil
	case encoding == plain:
		return &lengths{data}, nil
	case encoding == runs && c.Type == Boolean:
		return newTruths(data)
	case encoding == byteSplit && (width == 4 || width == 8 || c.Type == FixedLenByteArray):
		if len(data)%width != 0 {
			return nil, invalid("a page of values of %d bytes has %d", width, len(data))
		}
		if len(data) == 0 {
			return &split{}, nil // and no room for a value, whose length the file may say to be large
		}
		return &split{data: data, n: len(data) / width, buffer: make([]byte, width)}, nil
	case encoding == deltaBinary && (c.Type == Int32 || c.Type == Int64):
		return newDelta(data)
	case encoding == deltaLength && c.Type == ByteArray:
		return newTexts(data)
	case encoding == deltaBytes && bytes:
		return newPrefixed(data, width)
	}
	return nil, unread("it has the encoding %s of a column of type %s",
		named(encodings, encoding, "of number"), c.Type)
}

// number returns the value that fixed bytes hold.
func number(b []byte, t Type) value {
	switch {
	case t == FixedLenByteArray || t == Int96:
		return value{bytes: b}
	case len(b) == 4:
		return value{bits: uint64(binary.LittleEndian.Uint32(b))}
	}
	return value{bits: binary.LittleEndian.Uint64(b)}
}

// fixed reads values of one length.
type fixed struct {
	data  []byte
	width int
	kind  Type
}

func (d *fixed) next() (value, error) {
	if len(d.data) < d.width {
		return value{}, errValues
	}
	v := number(d.data[:d.width], d.kind)
	d.data = d.data[d.width:]
	return v, nil
}

func (d *fixed) rest() bool { return len(d.data) > 0 }

// lengths reads bytes, each text after its length.
type lengths struct{ data []byte }

func (d *lengths) next() (value, error) {
	if len(d.data) < 4 {
		return value{}, errValues
	}
	n := uint64(binary.LittleEndian.Uint32(d.data))
	if n > uint64(len(d.data)-4) {
		return value{}, errValues
	}
	v := value{bytes: d.data[4 : 4+n]}
	d.data = d.data[4+n:]
	return v, nil
}

func (d *lengths) rest() bool { return len(d.data) > 0 }

// split reads numbers whose first bytes come first, then their second bytes, and so on.
type split struct {
	data   []byte
	n, at  int
	buffer []byte
}

func (d *split) next() (value, error) {
	if d.at == d.n {
		return value{}, errValues
	}
	for i := range d.buffer {
		d.buffer[i] = d.data[i*d.n+d.at]
	}
	d.at++
	v := value{bytes: d.buffer}
	switch len(d.buffer) {
	case 4:
		v.bits = uint64(binary.LittleEndian.Uint32(d.buffer))
	case 8:
		v.bits = binary.LittleEndian.Uint64(d.buffer)
	}
	return v, nil
}

func (d *split) rest() bool { return d.at < d.n }

// bits returns the number of width bits, at most 64, that begins at a bit.
func bits(data []byte, at uint64, width uint) (x uint64, ok bool) {
	if width == 0 {
		return 0, true
	}
	first, last := at/8, (at+uint64(width)-1)/8
	if last >= uint64(len(data)) {
		return 0, false
	}
	var b [16]byte
	copy(b[:], data[first:last+1])
	shift := uint(at % 8)
	x = binary.LittleEndian.Uint64(b[:]) >> shift
	if shift > 0 {
		x |= uint64(b[8]) << (64 - shift)
	}
	if width < 64 {
		x &= 1<<width - 1
	}
	return x, true
}

// packed reads numbers of as many bits each.
type packed struct {
	data  []byte
	at    uint64 // the bit
	width uint
}

func (d *packed) next() (value, error) {
	x, ok := bits(d.data, d.at, d.width)
	if !ok {
		return value{}, errValues
	}
	d.at += uint64(d.width)
	return value{bits: x}, nil
}

// rest reports whether there is more than the bits that fill the last byte.
func (d *packed) rest() bool { return uint64(len(d.data))*8-d.at >= 8 }

// hybrid reads numbers of as many bits each, as runs of one and as packed groups of eight.
type hybrid struct {
	data  []byte
	width uint
	left  uint64 // of the run, or of the packed numbers
	run   uint64 // its number
	isRun bool
	packed
}

func (d *hybrid) next() (uint64, error) {
	for d.left == 0 {
		head, n := binary.Uvarint(d.data)
		if n <= 0 {
			return 0, errValues
		}
		d.data = d.data[n:]
		d.left, d.isRun = head>>1, head&1 == 0
		if !d.isRun {
			if head>>1 > 1<<40 {
				return 0, errValues
			}
			d.left *= 8
			// The last byte may lack the bits that would fill it.
			size := min(head>>1*uint64(d.width), uint64(len(d.data)))
			d.packed = packed{data: d.data[:size], width: d.width}
			d.data = d.data[size:]
			continue
		}
		size := int(d.width+7) / 8
		if len(d.data) < size {
			return 0, errValues
		}
		var b [8]byte
		copy(b[:], d.data[:size])
		if d.run = binary.LittleEndian.Uint64(b[:]); d.run>>d.width != 0 {
			return 0, invalid("a run has a number of more than %d bits", d.width)
		}
		d.data = d.data[size:]
	}
	d.left--
	if d.isRun {
		return d.run, nil
	}
	v, err := d.packed.next()
	return v.bits, err
}

// truths reads booleans in runs.
type truths struct{ hybrid }

func newTruths(data []byte) (decoder, error) {
	if len(data) == 0 {
		return &truths{}, nil
	}
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, errValues
	}
	n := binary.LittleEndian.Uint32(data)
	return &truths{hybrid{data: data[4 : 4+n], width: 1}}, nil
}

func (d *truths) next() (value, error) {
	x, err := d.hybrid.next()
	return value{bits: x}, err
}

func (d *truths) rest() bool { return len(d.data) > 0 }

// delta reads whole numbers by what each adds to the one before.
type delta struct {
	data   []byte // behind the head
	left   uint64 // numbers to come
	number uint64
	first  bool
	minis  int    // blocks of bits in a block
	each   uint64 // numbers in one of them
	least  uint64 // added to all differences of the block
	widths []byte // of the blocks of bits that are to come
	bits   packed
	inBits uint64 // numbers to come in it
}

func newDelta(data []byte) (*delta, error) {
	d := &delta{first: true}
	if len(data) == 0 {
		return d, nil
	}
	head := [4]uint64{}
	for i := range head {
		x, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, errValues
		}
		head[i], data = x, data[n:]
	}
	block, minis := head[0], head[1]
	if minis == 0 || minis > 1<<16 || block > 1<<31 || block == 0 || block%minis != 0 ||
		block/minis%8 != 0 {
		return nil, invalid("blocks of %d numbers in %d parts", block, minis)
	}
	d.data, d.left, d.minis, d.each = data, head[2], int(minis), block/minis
	d.number = zigzag(head[3])
	return d, nil
}

func zigzag(x uint64) uint64 { return x>>1 ^ -(x & 1) }

func (d *delta) next() (value, error) {
	if d.left == 0 {
		return value{}, errValues
	}
	d.left--
	if d.first {
		d.first = false
		return value{bits: d.number}, nil
	}
	if d.inBits == 0 {
		if err := d.part(d.left + 1); err != nil {
			return value{}, err
		}
	}
	d.inBits--
	v, err := d.bits.next()
	d.number += d.least + v.bits
	return value{bits: d.number}, err
}

// part goes on to the next block of bits, of which so many numbers are wanted.
func (d *delta) part(wanted uint64) error {
	if len(d.widths) == 0 {
		least, n := binary.Uvarint(d.data)
		if n <= 0 || len(d.data)-n < d.minis {
			return errValues
		}
		d.least = zigzag(least)
		d.widths, d.data = d.data[n:n+d.minis], d.data[n+d.minis:]
	}
	width := uint64(d.widths[0])
	if d.widths = d.widths[1:]; width > 64 {
		return invalid("a difference of %d bits", width)
	}
	size := d.each * width / 8
	if have := uint64(len(d.data)); size > have {
		// The last one may lack what is not wanted.
		if wanted = min(wanted, d.each); (wanted*width+7)/8 > have {
			return errValues
		}
		size = have
	}
	d.bits = packed{data: d.data[:size], width: uint(width)}
	d.data, d.inBits = d.data[size:], d.each
	return nil
}

// pass returns what is behind the numbers.
func (d *delta) pass() ([]byte, error) {
	past := *d
	if past.left > 0 {
		past.left--
	}
	for past.left > 0 {
		if err := past.part(past.left); err != nil {
			return nil, err
		}
		past.left -= min(past.left, past.each)
	}
	return past.data, nil
}

func (d *delta) rest() bool { return d.left > 0 }

// texts reads bytes whose lengths come before them all.
type texts struct {
	lengths *delta
	data    []byte
}

func newTexts(data []byte) (decoder, error) {
	d, err := texted(data)
	return &d, err
}

func texted(data []byte) (d texts, err error) {
	if d.lengths, err = newDelta(data); err == nil {
		d.data, err = d.lengths.pass()
	}
	return d, err
}

func (d *texts) next() (value, error) {
	length, err := d.lengths.next()
	if err != nil {
		return value{}, err
	}
	n := uint32(length.bits)
	if uint64(n) > uint64(len(d.data)) {
		return value{}, errValues
	}
	v := value{bytes: d.data[:n]}
	d.data = d.data[n:]
	return v, nil
}

func (d *texts) rest() bool { return d.lengths.rest() || len(d.data) > 0 }

// prefixed reads texts, each of which begins with a prefix of the one before.
type prefixed struct {
	prefixes *delta
	suffixes texts
	last     []byte
	width    int // of each; 0: any
}

func newPrefixed(data []byte, width int) (decoder, error) {
	prefixes, err := newDelta(data)
	if err != nil {
		return nil, err
	}
	behind, err := prefixes.pass()
	if err != nil {
		return nil, err
	}
	suffixes, err := texted(behind)
	return &prefixed{prefixes: prefixes, suffixes: suffixes, width: width}, err
}

func (d *prefixed) next() (value, error) {
	prefix, err := d.prefixes.next()
	if err != nil {
		return value{}, err
	}
	suffix, err := d.suffixes.next()
	if err != nil {
		return value{}, err
	}
	n := uint32(prefix.bits)
	if uint64(n) > uint64(len(d.last)) {
		return value{}, invalid("a text begins as a shorter one")
	}
	d.last = append(d.last[:n], suffix.bytes...)
	if len(d.last) > mostPage || d.width > 0 && len(d.last) != d.width {
		return value{}, invalid("a value has %d bytes", len(d.last))
	}
	return value{bytes: d.last}, nil
}

func (d *prefixed) rest() bool { return d.prefixes.rest() || d.suffixes.rest() }
