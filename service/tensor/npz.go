package tensor

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrNPZ: not an .npz file of arrays that this package reads. The error says which rule of archives
// or arrays is broken.
var ErrNPZ = errors.New("tensor: not a model in .npz form")

// Magic numbers of the two forms of files.
const (
	zipMagic  = "PK\x03\x04"
	zipsEmpty = "PK\x05\x06"
	npyMagic  = "\x93NUMPY"
)

// mostNPYHeader bounds the text before an array's numbers.
const mostNPYHeader = 4096

// An archive may unpack to a given multiple of its size plus a small model: trained weights
// compress only a little, and a file of a few megabytes must not take gigabytes.
const (
	mostUnpacked = 8
	smallModel   = 32 << 20
)

// npyHeader matches the text that NumPy writes, its keys in this order.
var npyHeader = regexp.MustCompile(
	`^\{'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n$`)

// ParseAny reads a model in either form, which its first bytes determine: a zip archive is .npz,
// and has no notes. It fails with [ErrNPZ] or [ErrFormat].
func ParseAny(b []byte) (s Spec, values []float64, notes map[string]string, err error) {
	switch {
	case bytes.HasPrefix(b, []byte(zipMagic)), bytes.HasPrefix(b, []byte(zipsEmpty)):
		s, values, err = ParseNPZ(b)
		return s, values, nil, err
	case bytes.HasPrefix(b, []byte(npyMagic)):
		return Spec{}, nil, nil, fmt.Errorf("%w: it is one array without a name, as numpy.save writes "+
			"it; use numpy.savez(file, name=array)", ErrNPZ)
	}
	return Parse(b)
}

// ParseNPZ reads the arrays of an .npz file in the archive's order, as numpy.savez and
// savez_compressed write them: one .npy file each, stored or deflated, of type <f4 or <f8, the same
// for all, in C order, finite. It accepts up to eight times the archive's bytes and 32 MiB of
// numbers. It fails with [ErrNPZ].
func ParseNPZ(b []byte) (s Spec, values []float64, err error) {
	fail := func(format string, a ...any) (Spec, []float64, error) {
		return Spec{}, nil, fmt.Errorf("%w: %s", ErrNPZ, fmt.Sprintf(format, a...))
	}
	archive, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return fail("the archive: %v", err)
	}
	if n := len(archive.File); n < 1 || n > maxTensors {
		return fail("%d arrays, want 1 to %d; name them in numpy.savez(file, name=array)", n, maxTensors)
	}
	left := mostUnpacked*len(b) + smallModel
	var arrays [][]float64 // joined once: a list that grows takes several times its length
	count := 0
	for _, f := range archive.File {
		name, isArray := strings.CutSuffix(f.Name, ".npy")
		switch {
		case !isArray:
			return fail("%.80q is not a .npy file; numpy.savez writes those, and torch.save does "+
				"not", f.Name)
		case f.Method != zip.Store && f.Method != zip.Deflate:
			return fail("%.80q is compressed by method %d; stored and deflated are read", f.Name, f.Method)
		case f.Flags&1 != 0:
			return fail("%.80q is encrypted", f.Name)
		}
		spec := Spec{DType: s.DType}
		var numbers []float64
		if spec, numbers, err = readArray(f, name, spec.DType, maxNumbers-count, left); err != nil {
			return Spec{}, nil, err
		}
		left -= len(numbers) * spec.DType.Size()
		s.DType = spec.DType
		s.Tensors = append(s.Tensors, spec.Tensors...)
		arrays = append(arrays, numbers)
		count += len(numbers)
	}
	if reason := s.unusable(); reason != "" {
		return fail("%s", reason)
	}
	return s, slices.Concat(arrays...), nil
}

// readArray reads one array of at most a given number of numbers, and of their bytes; dtype is the
// type of the arrays before, or empty.
func readArray(
	f *zip.File, name string, dtype DType, most, left int,
) (Spec, []float64, error) {
	fail := func(format string, a ...any) (Spec, []float64, error) {
		return Spec{}, nil, fmt.Errorf("%w: %.80q: %s", ErrNPZ, name, fmt.Sprintf(format, a...))
	}
	r, err := f.Open()
	if err != nil {
		return fail("%v", err)
	}
	defer r.Close()
	head := make([]byte, 10)
	if _, err := io.ReadFull(r, head); err != nil {
		return fail("%v", err)
	}
	if !bytes.HasPrefix(head, []byte(npyMagic)) {
		return fail("it does not begin like an array")
	}
	length := int(binary.LittleEndian.Uint16(head[8:]))
	switch version := [2]byte{head[6], head[7]}; version {
	case [2]byte{1, 0}:
	case [2]byte{2, 0}:
		more := make([]byte, 2)
		if _, err := io.ReadFull(r, more); err != nil {
			return fail("%v", err)
		}
		length |= int(binary.LittleEndian.Uint16(more)) << 16
	default:
		return fail("version %d.%d; 1.0 and 2.0 are read", version[0], version[1])
	}
	if length > mostNPYHeader {
		return fail("a header of %d bytes, at most %d are read", length, mostNPYHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return fail("%v", err)
	}
	parts := npyHeader.FindSubmatch(text)
	switch {
	case parts == nil && bytes.HasPrefix(text, []byte("{'descr': [")):
		return fail("its type has fields; save each field as an array of its own")
	case parts == nil:
		return fail("its header is not as NumPy writes it")
	}
	own, known := npyTypes[string(parts[1])]
	switch {
	case !known:
		return fail("%s", otherType(string(parts[1])))
	case dtype != "" && own != dtype:
		return fail("type %s, and %s before; save all arrays with one .astype", own, dtype)
	case string(parts[2]) == "True":
		return fail("it is in Fortran order; save numpy.ascontiguousarray of it")
	}
	t := Tensor{Name: name}
	if t.Shape, err = npyShape(string(parts[3])); err != nil {
		return fail("%v", err)
	}
	n := t.Len()
	if n == 0 || n > most {
		return fail("shape %v; arrays have 1 number or more, at most %d altogether", t.Shape,
			maxNumbers)
	}
	size := own.Size()
	if n > left/size {
		return fail("the archive unpacks to more than %d times its size; save it by numpy.savez, which "+
			"does not compress", mostUnpacked)
	}
	// The allocation depends on the bytes present, not on what the header says.
	data, err := io.ReadAll(io.LimitReader(r, int64(n)*int64(size)+1))
	if err != nil {
		return fail("%v", err)
	}
	if len(data) != n*size {
		return fail("%d bytes or more of numbers, its shape has %d", len(data), n*size)
	}
	values, bad := numbersOf(own, data)
	if bad >= 0 {
		return fail("number %d is NaN or infinite; a model that has diverged cannot be summed", bad)
	}
	return Spec{DType: own, Tensors: []Tensor{t}}, values, nil
}

// npyTypes maps NumPy's names to the types that are read.
var npyTypes = map[string]DType{"<f4": Float32, "<f8": Float64}

// otherType names a type that is not read, and what to save in its place.
func otherType(descr string) string {
	const cast = "save .astype('float32') of it"
	what := ""
	switch kind := strings.TrimLeft(descr, "<>|="); {
	case kind == "O":
		return "it holds Python objects, and reading those would run code; save an array of numbers " +
			"for each"
	case (kind == "f4" || kind == "f8") && strings.HasPrefix(descr, ">"):
		return fmt.Sprintf("it is big-endian (%s); save .astype('<%s') of it", descr, kind)
	case kind == "f2":
		what = "it has half precision"
	case strings.HasPrefix(kind, "f"):
		what = "it has another precision"
	case strings.HasPrefix(kind, "i"), strings.HasPrefix(kind, "u"):
		return fmt.Sprintf("it has whole numbers (%.8q); %s, or leave a count out", descr, cast)
	case kind == "b1":
		return "it has truth values; " + cast + ", or leave it out"
	case strings.HasPrefix(kind, "c"):
		return fmt.Sprintf("it has complex numbers (%.8q); save .real and .imag of it", descr)
	case strings.HasPrefix(kind, "U"), strings.HasPrefix(kind, "S"):
		return fmt.Sprintf("it has text (%.8q); leave it out", descr)
	case strings.HasPrefix(kind, "M"), strings.HasPrefix(kind, "m"):
		return fmt.Sprintf("it has times (%.16q); leave it out", descr)
	case strings.HasPrefix(kind, "V"):
		return fmt.Sprintf("it has a type that NumPy does not know (%.8q), such as bfloat16; %s", descr,
			cast)
	default:
		what = "it has an unknown type"
	}
	return fmt.Sprintf("%s (%.20q); %s", what, descr, cast)
}

// npyShape reads the text between the brackets: "", "3," or "3, 4".
func npyShape(text string) ([]int, error) {
	var shape []int
	if text == "" {
		return shape, nil
	}
	parts := strings.Split(text, ", ")
	if len(parts) == 1 {
		one, comma := strings.CutSuffix(parts[0], ",")
		if !comma {
			return nil, fmt.Errorf("the shape (%.40s)", text)
		}
		parts[0] = one
	}
	for _, p := range parts {
		k, err := strconv.Atoi(p)
		if err != nil || strconv.Itoa(k) != p {
			return nil, fmt.Errorf("the shape (%.40s)", text)
		}
		shape = append(shape, k)
	}
	return shape, nil
}

// numbersOf reads numbers, and returns the index of one that is not finite, −1 if all are.
func numbersOf(dtype DType, data []byte) (values []float64, bad int) {
	values = make([]float64, len(data)/dtype.Size())
	for i := range values {
		if dtype == Float32 {
			values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		} else {
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		}
		if math.IsNaN(values[i]) || math.IsInf(values[i], 0) {
			return nil, i
		}
	}
	return values, -1
}

// AppendNPZ appends a model as an .npz file, stored, as numpy.savez does.
func (s *Spec) AppendNPZ(b []byte, values []float64) ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if len(values) != s.Len() {
		return nil, fmt.Errorf("%w: %d numbers for %d", ErrFormat, len(values), s.Len())
	}
	descr := map[DType]string{Float32: "<f4", Float64: "<f8"}[s.DType]
	if descr == "" {
		return nil, fmt.Errorf("%w: there is no type %q", ErrFormat, s.DType)
	}
	out := bytes.NewBuffer(b)
	archive := zip.NewWriter(out)
	for _, t := range s.Tensors {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: t.Name + ".npy", Method: zip.Store})
		if err != nil {
			return nil, err
		}
		shape := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(t.Shape)), ", "), "[]")
		if len(t.Shape) == 1 {
			shape += ","
		}
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
		head += strings.Repeat(" ", (64-(len(npyMagic)+4+len(head)+1)%64)%64) + "\n"
		own := append([]byte(npyMagic), 1, 0)
		own = binary.LittleEndian.AppendUint16(own, uint16(len(head)))
		own = append(own, head...)
		own = s.DType.append(own, values[:t.Len()])
		values = values[t.Len():]
		if _, err := w.Write(own); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
