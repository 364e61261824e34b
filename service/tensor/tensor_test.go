package tensor_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/service/tensor"
)

// drawModel draws a model of one to five tensors, and its numbers as its type holds them.
func drawModel(t *rapid.T) (tensor.Spec, []float64) {
	spec := tensor.Spec{DType: rapid.SampledFrom([]tensor.DType{tensor.Float32, tensor.Float64}).
		Draw(t, "type")}
	for i := range rapid.IntRange(1, 5).Draw(t, "tensors") {
		spec.Tensors = append(spec.Tensors, tensor.Tensor{
			Name:  string(rune('a' + i)),
			Shape: rapid.SliceOfN(rapid.IntRange(1, 4), 0, 3).Draw(t, "shape"),
		})
	}
	n := spec.Len()
	values := rapid.SliceOfN(rapid.Float64Range(-1e30, 1e30), n, n).Draw(t, "values")
	spec.Round(values)
	return spec, values
}

// What is written is read again, number by number.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, values := drawModel(t)
		notes := map[string]string{"round": "7"}
		b, err := spec.Append(nil, values, notes)
		if err != nil {
			t.Fatal(err)
		}
		again, got, told, err := tensor.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := spec.Same(&again); err != nil || !slices.Equal(values, got) || told["round"] != "7" {
			t.Fatalf("%v: %v became %v, notes %v", err, values, got, told)
		}
		second, err := again.Append(nil, got, told)
		if err != nil || !bytes.Equal(b, second) {
			t.Fatalf("written again it differs: %v", err)
		}
	})
}

func file(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestRefused(t *testing.T) {
	eight := make([]byte, 8)
	nan := []byte{0, 0, 0xc0, 0x7f}
	for name, b := range map[string][]byte{
		"nothing":          nil,
		"a huge header":    binary.LittleEndian.AppendUint64(nil, 1<<60),
		"no JSON":          file("{", nil),
		"no tensors":       file("{}", nil),
		"another type":     file(`{"a":{"dtype":"I8","shape":[8],"data_offsets":[0,8]}}`, eight),
		"an unknown field": file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}`, eight),
		"a gap":            file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, eight),
		"an overlap": file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},`+
			`"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, eight),
		"more data":        file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, eight),
		"less data":        file(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, eight),
		"a negative shape": file(`{"a":{"dtype":"F32","shape":[-2,-1],"data_offsets":[0,8]}}`, eight),
		"an endless shape": file(`{"a":{"dtype":"F32","shape":[2147483648,4294967296],`+
			`"data_offsets":[0,8]}}`, eight),
		"NaN": file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, nan),
		"two types": file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},`+
			`"b":{"dtype":"F64","shape":[1],"data_offsets":[4,12]}}`, make([]byte, 12)),
		"behind the header": file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} {}`, eight),
	} {
		if _, _, _, err := tensor.Parse(b); !errors.Is(err, tensor.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzTensor: what is read is written again, and read as the same.
func FuzzTensor(f *testing.F) {
	spec := tensor.Spec{DType: tensor.Float32, Tensors: []tensor.Tensor{{Name: "w", Shape: []int{2}}}}
	b, err := spec.Append(nil, []float64{1, -2}, map[string]string{"a": "b"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(file(`{"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}`, make([]byte, 8)))
	f.Fuzz(func(t *testing.T, b []byte) {
		spec, values, notes, err := tensor.Parse(b)
		if err != nil {
			if !errors.Is(err, tensor.ErrFormat) {
				t.Error(err)
			}
			return
		}
		second, err := spec.Append(nil, values, notes)
		if err != nil {
			t.Fatal(err)
		}
		again, got, _, err := tensor.Parse(second)
		if err != nil || spec.Same(&again) != nil || !slices.Equal(values, got) {
			t.Errorf("%v: %v became %v", err, values, got)
		}
	})
}

// Of several mistakes in a header the same one is told every time.
func TestTellsOneMistake(t *testing.T) {
	b := file(`{"c":{"x":1},"b":{"x":1},"a":{"x":1},"d":{"x":1}}`, nil)
	for range 20 {
		if _, _, _, err := tensor.Parse(b); err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Fatalf("%v, want what is wrong with a", err)
		}
	}
}
