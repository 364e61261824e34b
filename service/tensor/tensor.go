// Package tensor reads and writes models as safetensors: named tensors of float32 or
// float64, little-endian, behind a JSON header. Its writer gives one canonical form, so
// that the bytes of a model can be compared by digest. It also reads and writes NumPy's
// .npz files.
package tensor

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/internal/strict"
)

// ErrFormat: not a safetensors file of this package's types.
var ErrFormat = errors.New("tensor: not a model in safetensors form")

// DType is the type in which a number is stored.
type DType string

// The types.
const (
	Float32 DType = "F32"
	Float64 DType = "F64"
)

// Size returns the bytes of a number, 0 for an unknown type.
func (t DType) Size() int {
	switch t {
	case Float32:
		return 4
	case Float64:
		return 8
	}
	return 0
}

// Limits on what is read.
const (
	maxHeader  = 1 << 20
	maxTensors = 10_000
	maxNumbers = 1 << 27
	maxName    = 200
	metadata   = "__metadata__"
)

// Tensor is a part of a model.
type Tensor struct {
	Name  string
	Shape []int // empty: one number
}

// Len returns how many numbers the tensor has.
func (t Tensor) Len() int {
	n := 1
	for _, k := range t.Shape {
		if k < 1 || n > maxNumbers/k {
			return 0
		}
		n *= k
	}
	return n
}

// Spec says what a model consists of.
type Spec struct {
	DType   DType
	Tensors []Tensor
}

// Len returns how many numbers the model has.
func (s *Spec) Len() int {
	n := 0
	for _, t := range s.Tensors {
		n += t.Len()
	}
	return n
}

// Validate fails with [ErrFormat] if names or shapes cannot be used.
func (s *Spec) Validate() error {
	if reason := s.unusable(); reason != "" {
		return fmt.Errorf("%w: %s", ErrFormat, reason)
	}
	return nil
}

// unusable says which name or shape cannot be used, and why; empty if all can.
func (s *Spec) unusable() string {
	if len(s.Tensors) < 1 || len(s.Tensors) > maxTensors {
		return fmt.Sprintf("%d tensors, want 1 to %d", len(s.Tensors), maxTensors)
	}
	seen := make(map[string]bool)
	n := 0
	for _, t := range s.Tensors {
		outside := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
		switch {
		case t.Name == "" || t.Name == metadata || len(t.Name) > maxName ||
			strings.ContainsFunc(t.Name, outside):
			return fmt.Sprintf("%.80q is not a name of a tensor; use up to %d printable ASCII characters "+
				"except quotes and backslashes", t.Name, maxName)
		case seen[t.Name]:
			return fmt.Sprintf("two tensors are called %q", t.Name)
		case t.Len() == 0:
			return fmt.Sprintf("the shape %v of %q; dimensions are 1 or more, their product at most %d",
				t.Shape, t.Name, maxNumbers)
		}
		seen[t.Name] = true
		if n += t.Len(); n > maxNumbers {
			return fmt.Sprintf("more than %d numbers", maxNumbers)
		}
	}
	return ""
}

// header is the header of one tensor in a file.
type header struct {
	DType   DType  `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// Append appends the canonical form of a model with notes, values having Len numbers.
func (s *Spec) Append(b []byte, values []float64, notes map[string]string) ([]byte, error) {
	if len(values) != s.Len() {
		return nil, fmt.Errorf("%w: %d numbers for %d", ErrFormat, len(values), s.Len())
	}
	var head bytes.Buffer
	head.WriteByte('{')
	if len(notes) > 0 {
		text, err := json.Marshal(notes) // its keys come in order
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&head, "%q:%s,", metadata, text)
	}
	size, at := s.DType.Size(), 0
	if size == 0 {
		return nil, fmt.Errorf("%w: there is no type %q", ErrFormat, s.DType)
	}
	for i, t := range s.Tensors {
		if i > 0 {
			head.WriteByte(',')
		}
		end := at + t.Len()*size
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		text, err := json.Marshal(header{s.DType, shape, [2]int{at, end}})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&head, "%q:%s", t.Name, text)
		at = end
	}
	head.WriteByte('}')
	for head.Len()%8 != 0 {
		head.WriteByte(' ')
	}
	b = slices.Grow(b, 8+head.Len()+at)
	b = binary.LittleEndian.AppendUint64(b, uint64(head.Len()))
	b = append(b, head.Bytes()...)
	return s.DType.append(b, values), nil
}

// append appends numbers.
func (t DType) append(b []byte, values []float64) []byte {
	for _, x := range values {
		if t == Float32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b
}

// Round rounds numbers to what the type can store.
func (s *Spec) Round(values []float64) {
	if s.DType != Float32 {
		return
	}
	for i, x := range values {
		values[i] = float64(float32(x))
	}
}

// Parse reads a model, its tensors in the order of their data, and its notes. All tensors must have
// one type, leave no gap, and hold finite numbers. It fails with [ErrFormat].
func Parse(b []byte) (s Spec, values []float64, notes map[string]string, err error) {
	fail := func(format string, a ...any) (Spec, []float64, map[string]string, error) {
		return Spec{}, nil, nil, fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, a...))
	}
	if len(b) < 8 {
		return fail("%d bytes", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxHeader || n > uint64(len(b)-8) {
		return fail("a header of %d bytes", n)
	}
	head, data := b[8:8+n], b[8+n:]
	parts := make(map[string]json.RawMessage)
	if err := strict.JSON(head, &parts); err != nil {
		return fail("its header: %v", err)
	}
	if len(parts) > maxTensors+1 {
		return fail("%d tensors", len(parts))
	}
	type placed struct {
		header
		name string
	}
	var all []placed
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		text := parts[name]
		if name == metadata {
			if err := strict.JSON(text, &notes); err != nil {
				return fail("its notes: %v", err)
			}
			continue
		}
		var h header
		if err := strict.JSON(text, &h); err != nil {
			return fail("%.80q: %v", name, err)
		}
		all = append(all, placed{h, name})
	}
	slices.SortFunc(all, func(x, y placed) int {
		if x.Offsets[0] != y.Offsets[0] {
			return x.Offsets[0] - y.Offsets[0]
		}
		return strings.Compare(x.name, y.name)
	})
	at := 0
	for _, h := range all {
		t := Tensor{Name: h.name, Shape: h.Shape}
		if s.DType == "" {
			s.DType = h.DType
		}
		if h.DType != s.DType || h.DType.Size() == 0 {
			return fail("%.80q is of type %.20q; F32 and F64 are read, one in a file", h.name, h.DType)
		}
		if t.Len() == 0 || h.Offsets[0] != at || h.Offsets[1] != at+t.Len()*h.DType.Size() {
			return fail("%.80q: shape %v at %v", h.name, h.Shape, h.Offsets)
		}
		at = h.Offsets[1]
		s.Tensors = append(s.Tensors, t)
	}
	if err := s.Validate(); err != nil {
		return Spec{}, nil, nil, err
	}
	if at != len(data) {
		return fail("%d bytes of data, its header has %d", len(data), at)
	}
	values, bad := numbersOf(s.DType, data)
	if bad >= 0 {
		return fail("number %d is NaN or infinite", bad)
	}
	return s, values, notes, nil
}

// Same fails with [ErrFormat] unless another model consists of the same tensors.
func (s *Spec) Same(other *Spec) error {
	if len(s.Tensors) != len(other.Tensors) {
		return fmt.Errorf("%w: %d tensors, want %d", ErrFormat, len(other.Tensors), len(s.Tensors))
	}
	for i, t := range s.Tensors {
		o := other.Tensors[i]
		if t.Name != o.Name || !slices.Equal(t.Shape, o.Shape) {
			return fmt.Errorf("%w: tensor %d is %.80q %v, want %q %v", ErrFormat, i, o.Name, o.Shape,
				t.Name, t.Shape)
		}
	}
	return nil
}
