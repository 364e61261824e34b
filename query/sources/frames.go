package sources

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/table"
)

// This file holds the language between hushsum and hushsum-rows. It is no CSV: a value has its type
// and all its bits, nothing is quoted, and the rows have an end mark. Whoever changes it changes
// greeting, so that programs of two releases refuse each other.

// greeting begins a request, and its answer.
const greeting = "hushsum-rows 3\n"

// A part of an answer begins with one of these.
const (
	partTable = 'T' // the names of the columns
	partRow   = 'R' // a value of each
	partEnd   = 'E' // the number of rows: all were sent
	partFault = 'F' // an error of kind ErrSource, in place of the end
	partRows  = 'X' // a query.RowsError, in place of the end
)

// A value begins with one of these.
const (
	valueNone    = '0'
	valueText    = 's'
	valueTrue    = 't'
	valueFalse   = 'f'
	valueInt     = 'i'
	valueUint    = 'u'
	valueFloat32 = 'g'
	valueFloat64 = 'd'
	valueTime    = 'm' // seconds, nanoseconds, and seconds east of Greenwich: zones lose their names
	valueBytes   = 'b' // without them: no column takes bytes
	valueRefused = 'x' // a table.Error: the column cannot be read
)

// errFrames: the other program speaks another language.
var errFrames = errors.New("sources: unreadable")

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendTexts(b []byte, texts []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, text := range texts {
		b = appendText(b, text)
	}
	return b
}

// appendRequest writes a request.
func appendRequest(b []byte, r *Request) []byte {
	b = append(b, greeting...)
	for _, text := range []string{string(r.Form), r.Name, r.Rows, r.SQL} {
		b = appendText(b, text)
	}
	return appendTexts(b, r.Columns)
}

// appendValue writes a value of a row. It fails if no column takes its type.
func appendValue(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(b, valueNone), nil
	case string:
		return appendText(append(b, valueText), v), nil
	case bool:
		if v {
			return append(b, valueTrue), nil
		}
		return append(b, valueFalse), nil
	case int64:
		return binary.AppendVarint(append(b, valueInt), v), nil
	case uint64:
		return binary.AppendUvarint(append(b, valueUint), v), nil
	case float32:
		return binary.BigEndian.AppendUint32(append(b, valueFloat32), math.Float32bits(v)), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(b, valueFloat64), math.Float64bits(v)), nil
	case time.Time:
		_, east := v.Zone()
		b = binary.AppendVarint(append(b, valueTime), v.Unix())
		b = binary.AppendUvarint(b, uint64(v.Nanosecond()))
		return binary.AppendVarint(b, int64(east)), nil
	case []byte:
		return append(b, valueBytes), nil
	case *table.Error:
		return appendRefusal(append(b, valueRefused), v), nil
	}
	return b, fmt.Errorf("a value is of a type, %T, that no column takes", value)
}

// appendError writes an error in place of the end.
func appendError(b []byte, err error) []byte {
	var rows *query.RowsError
	if errors.As(err, &rows) {
		return appendRefusal(append(b, partRows), rows)
	}
	var source *fault.Error
	if !errors.As(err, &source) {
		source = &fault.Error{Reason: err.Error()}
	}
	return appendText(appendText(append(b, partFault), source.Reason), source.Advice)
}

// appendRefusal writes an error of rows.
func appendRefusal(b []byte, e *table.Error) []byte {
	for _, text := range []string{e.File, e.Column, e.Reason, e.Advice} {
		b = appendText(b, text)
	}
	return binary.AppendUvarint(b, uint64(e.Row))
}

// frames reads parts. After an error it reads nothing: values are zero.
type frames struct {
	*bufio.Reader
	err error
}

func (f *frames) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// greet reads the greeting.
func (f *frames) greet() {
	said := make([]byte, len(greeting))
	f.bytes(said)
	if f.err == nil && string(said) != greeting {
		f.fail(errFrames)
	}
}

func (f *frames) bytes(into []byte) {
	if f.err != nil {
		return
	}
	if _, err := io.ReadFull(f.Reader, into); err != nil {
		f.fail(io.ErrUnexpectedEOF)
	}
}

func (f *frames) byte() byte {
	var b [1]byte
	f.bytes(b[:])
	return b[0]
}

func (f *frames) uvarint() uint64 {
	if f.err != nil {
		return 0
	}
	x, err := binary.ReadUvarint(f.Reader)
	return x + f.number(err)
}

func (f *frames) varint() int64 {
	if f.err != nil {
		return 0
	}
	x, err := binary.ReadVarint(f.Reader)
	return x + int64(f.number(err))
}

// number notes the error of reading a number.
func (f *frames) number(err error) (zero uint64) {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		f.fail(io.ErrUnexpectedEOF)
	case err != nil:
		f.fail(errFrames)
	}
	return 0
}

// text reads a text. It makes room for what comes, not for what is announced.
func (f *frames) text() string {
	n := f.uvarint()
	if n > math.MaxInt64 {
		f.fail(errFrames)
	}
	if f.err != nil {
		return ""
	}
	if n <= uint64(f.Size()) {
		text := make([]byte, n)
		f.bytes(text)
		return string(text)
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, f.Reader, int64(n)); err != nil {
		f.fail(io.ErrUnexpectedEOF)
	}
	return text.String()
}

func (f *frames) texts() (texts []string) {
	for n := f.uvarint(); n > 0 && f.err == nil; n-- {
		texts = append(texts, f.text())
	}
	return texts
}

// request reads what appendRequest writes.
func (f *frames) request() (r Request) {
	f.greet()
	r.Form, r.Name, r.Rows, r.SQL = Form(f.text()), f.text(), f.text(), f.text()
	r.Columns = f.texts()
	if !slices.Contains([]Form{Parquet, SQLite, PostgreSQL}, r.Form) {
		f.fail(errFrames)
	}
	return r
}

// value reads what appendValue writes.
func (f *frames) value() any {
	switch f.byte() {
	case valueNone:
		return nil
	case valueText:
		return f.text()
	case valueTrue:
		return true
	case valueFalse:
		return false
	case valueInt:
		return f.varint()
	case valueUint:
		return f.uvarint()
	case valueFloat32:
		var b [4]byte
		f.bytes(b[:])
		return math.Float32frombits(binary.BigEndian.Uint32(b[:]))
	case valueFloat64:
		var b [8]byte
		f.bytes(b[:])
		return math.Float64frombits(binary.BigEndian.Uint64(b[:]))
	case valueTime:
		seconds, nanoseconds, east := f.varint(), f.uvarint(), f.varint()
		if nanoseconds >= 1e9 || east != int64(int32(east)) {
			f.fail(errFrames)
			return nil
		}
		return time.Unix(seconds, int64(nanoseconds)).In(time.FixedZone("", int(east)))
	case valueBytes:
		return []byte(nil)
	case valueRefused:
		return f.refusal()
	}
	f.fail(errFrames)
	return nil
}

// fault reads what appendError writes, behind its first byte.
func (f *frames) fault(part byte) error {
	if part == partFault {
		return &fault.Error{Kind: ErrSource, Reason: f.text(), Advice: f.text()}
	}
	return f.refusal()
}

// refusal reads what appendRefusal writes.
func (f *frames) refusal() *table.Error {
	e := &table.Error{File: f.text(), Column: f.text(), Reason: f.text(), Advice: f.text()}
	row := f.uvarint()
	if row > math.MaxInt32 {
		f.fail(errFrames)
	}
	e.Row = int(row)
	return e
}
