package flat

import (
	"bufio"
	"encoding/binary"
	"io"
)

// thrift reads Thrift's compact protocol, in which footers and heads of pages are written. After an
// error it reads nothing: values are zero.
type thrift struct {
	*bufio.Reader
	err error
}

// The types of a field (the compact protocol of Apache Thrift, among its specifications). That of a
// boolean is its value.
const (
	kindTrue   = 1
	kindFalse  = 2
	kindByte   = 3
	kindInt16  = 4
	kindInt32  = 5
	kindInt64  = 6
	kindDouble = 7
	kindBinary = 8
	kindList   = 9
	kindSet    = 10
	kindMap    = 11
	kindStruct = 12
	kindUUID   = 13
)

const (
	mostDepth = 24      // of structs and lists in one another
	mostName  = 1 << 16 // bytes of a text that is kept
)

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *thrift) byte() byte {
	if t.err != nil {
		return 0
	}
	b, err := t.ReadByte()
	if err != nil {
		t.fail(errEnds)
	}
	return b
}

func (t *thrift) uvarint() uint64 {
	if t.err != nil {
		return 0
	}
	x, err := binary.ReadUvarint(t.Reader)
	if err != nil {
		t.fail(errEnds)
		return 0
	}
	return x
}

func (t *thrift) varint() int64 {
	x := t.uvarint()
	return int64(x>>1) ^ -int64(x&1)
}

// discard passes over bytes.
func (t *thrift) discard(n uint64) {
	for n > 0 && t.err == nil {
		step := min(n, 1<<20)
		if _, err := t.Discard(int(step)); err != nil {
			t.fail(errEnds)
		}
		n -= step
	}
}

func (t *thrift) text() string {
	n := t.uvarint()
	if n > mostName {
		t.fail(invalid("a name has %d bytes", n))
	}
	if t.err != nil {
		return ""
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(t.Reader, b); err != nil {
		t.fail(errEnds)
	}
	return string(b)
}

// structure calls field with the number and the type of each field, which has to read or skip it.
func (t *thrift) structure(field func(id int, kind byte)) {
	for id := 0; t.err == nil; {
		head := t.byte()
		if head == 0 || t.err != nil {
			return
		}
		if id += int(head >> 4); head>>4 == 0 {
			id = int(int16(t.varint()))
		}
		field(id, head&15)
	}
}

// list calls element for each element, and fails if their type is another or there are more.
func (t *thrift) list(kind byte, most uint64, element func()) {
	head := t.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	if n > 0 && head&15 != kind || n > most {
		t.fail(invalid("a list of %d elements is not of the expected kind", n))
	}
	for ; n > 0 && t.err == nil; n-- {
		element()
	}
}

// skip passes over a field of a type.
func (t *thrift) skip(kind byte, depth int) {
	if depth > mostDepth {
		t.fail(invalid("its footer is nested too deeply"))
	}
	if t.err != nil {
		return
	}
	switch kind {
	case kindTrue, kindFalse:
	case kindByte:
		t.byte()
	case kindInt16, kindInt32, kindInt64:
		t.uvarint()
	case kindDouble:
		t.discard(8)
	case kindUUID:
		t.discard(16)
	case kindBinary:
		t.discard(t.uvarint())
	case kindList, kindSet:
		head := t.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = t.uvarint()
		}
		for ; n > 0 && t.err == nil; n-- {
			t.element(head&15, depth)
		}
	case kindMap:
		n := t.uvarint()
		if n == 0 {
			return
		}
		kinds := t.byte()
		for ; n > 0 && t.err == nil; n-- {
			t.element(kinds>>4, depth)
			t.element(kinds&15, depth)
		}
	case kindStruct:
		t.structure(func(_ int, kind byte) { t.skip(kind, depth+1) })
	default:
		t.fail(invalid("its metadata has a field of type %d", kind))
	}
}

// element passes over an element of a list, of which a boolean takes a byte.
func (t *thrift) element(kind byte, depth int) {
	if kind == kindTrue || kind == kindFalse {
		kind = kindByte
	}
	t.skip(kind, depth+1)
}

// int32 reads a field that must be an integer of at most 32 bits.
func (t *thrift) int32(kind byte) int32 {
	x := t.int64(kind)
	if x != int64(int32(x)) {
		t.fail(invalid("a number of its footer is out of range"))
	}
	return int32(x)
}

func (t *thrift) int64(kind byte) int64 {
	switch kind {
	case kindByte:
		return int64(int8(t.byte()))
	case kindInt16, kindInt32, kindInt64:
		return t.varint()
	}
	t.fail(invalid("a field of its footer is of type %d, and not a number", kind))
	return 0
}

// inner reads a field that must be a struct.
func (t *thrift) inner(kind byte, field func(id int, kind byte)) {
	if kind != kindStruct {
		t.fail(invalid("a field of its footer is of type %d, and not a structure", kind))
		return
	}
	t.structure(field)
}

// name reads a field that must be a text.
func (t *thrift) name(kind byte) string {
	if kind != kindBinary {
		t.fail(invalid("a field of its footer is of type %d, and not a text", kind))
		return ""
	}
	return t.text()
}
