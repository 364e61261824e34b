package tensor_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/service/tensor"
)

// What is written as .npz is read again, and as safetensors is the same model.
func TestNPZRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, values := drawModel(t)
		b, err := spec.AppendNPZ(nil, values)
		if err != nil {
			t.Fatal(err)
		}
		again, got, notes, err := tensor.ParseAny(b)
		if err != nil || notes != nil {
			t.Fatal(err)
		}
		if err := spec.Same(&again); err != nil || again.DType != spec.DType ||
			!slices.Equal(values, got) {
			t.Fatalf("%v: %v became %v", err, values, got)
		}
	})
}

// array is an .npy file.
func array(header string, version byte, data ...byte) []byte {
	b := append([]byte("\x93NUMPY"), version, 0)
	if version == 2 {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	}
	return append(append(b, header...), data...)
}

func archive(t testing.TB, method uint16, files ...[2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		one, err := w.CreateHeader(&zip.FileHeader{Name: f[0], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const oneF4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n"

// Each of an archive's and an array's faults is told by name.
func TestNPZRefused(t *testing.T) {
	four := []byte{0, 0, 128, 63}
	good := string(array(oneF4, 1, four...))
	change := func(from, to string) string {
		return string(array(strings.Replace(oneF4, from, to, 1), 1, four...))
	}
	for _, c := range []struct {
		want  string // empty: it is read
		files [][2]string
	}{
		{"", [][2]string{{"a.npy", good}}},
		{"", [][2]string{{"a.npy", string(array(oneF4, 2, four...))}}},
		{"", [][2]string{{"a.npy", good}, {"b.npy", good}}},
		{"two tensors", [][2]string{{"a.npy", good}, {"a.npy", good}}},
		{"not a .npy", [][2]string{{"a.txt", good}}},
		{"not a name", [][2]string{{".npy", good}}},
		{"0 arrays", nil},
		{"begin like an array", [][2]string{{"a.npy", "something else"}}},
		{"EOF", [][2]string{{"a.npy", good[:8]}}},
		{"EOF", [][2]string{{"a.npy", good[:20]}}},
		{"bytes or more", [][2]string{{"a.npy", good[:len(good)-1]}}},
		{"bytes or more", [][2]string{{"a.npy", good + "x"}}},
		{"version 3.0", [][2]string{{"a.npy", string(array(oneF4, 3, four...))}}},
		{"header of", [][2]string{{"a.npy", string(array(strings.Repeat(" ", 5000), 1))}}},
		{"big-endian", [][2]string{{"a.npy", change("<f4", ">f4")}}},
		{"whole numbers", [][2]string{{"a.npy", change("<f4", "<i4")}}},
		{"as NumPy writes", [][2]string{{"a.npy", change("'descr'", "'type'")}}},
		{"fields", [][2]string{{"a.npy", change("'<f4'", "[('a', '<f4')]")}}},
		{"Python objects", [][2]string{{"a.npy", change("<f4", "|O")}}},
		{"unknown type", [][2]string{{"a.npy", change("<f4", "what")}}},
		{"another precision", [][2]string{{"a.npy", change("<f4", "<f16")}}},
		{"Fortran", [][2]string{{"a.npy", change("False", "True")}}},
		{"the shape", [][2]string{{"a.npy", change("(1,)", "(1)")}}},
		{"the shape", [][2]string{{"a.npy", change("(1,)", "(01,)")}}},
		{"shape", [][2]string{{"a.npy", change("(1,)", "(0,)")}}},
		{"shape", [][2]string{{"a.npy", change("(1,)", "(99999, 99999)")}}},
		{"bytes or more", [][2]string{{"a.npy", change("(1,)", "(999, 999)")}}},
		{"one .astype", [][2]string{{"a.npy", good}, {"b.npy",
			string(array(strings.Replace(oneF4, "f4", "f8", 1), 1, make([]byte, 8)...))}}},
		{"NaN", [][2]string{{"a.npy", string(array(oneF4, 1,
			binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))...))}}},
	} {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			b := archive(t, method, c.files...)
			_, _, err := tensor.ParseNPZ(b)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v: %v", c.files, err)
			case c.want != "" && (!errors.Is(err, tensor.ErrNPZ) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("want %q: %v", c.want, err)
			}
		}
	}
	b := archive(t, zip.Store, [2]string{"a.npy", good})
	for k := range b { // whatever byte is changed, the answer is a model or an error
		changed := slices.Clone(b)
		changed[k] ^= 0x41
		if _, _, err := tensor.ParseNPZ(changed); err != nil && !errors.Is(err, tensor.ErrNPZ) {
			t.Errorf("byte %d: %v", k, err)
		}
		if _, _, err := tensor.ParseNPZ(b[:k]); !errors.Is(err, tensor.ErrNPZ) {
			t.Errorf("%d bytes: %v", k, err)
		}
	}
}

// FuzzNPZ: what is read can be written and is read again the same.
func FuzzNPZ(f *testing.F) {
	f.Add(archive(f, zip.Store, [2]string{"a.npy", string(array(oneF4, 1, 0, 0, 128, 63))}))
	f.Add(archive(f, zip.Deflate, [2]string{"a.npy", string(array(oneF4, 1, 0, 0, 128, 63))}))
	f.Fuzz(func(t *testing.T, b []byte) {
		spec, values, err := tensor.ParseNPZ(b)
		if err != nil {
			if !errors.Is(err, tensor.ErrNPZ) {
				t.Errorf("%v", err)
			}
			return
		}
		written, err := spec.AppendNPZ(nil, values)
		if err != nil {
			t.Fatal(err)
		}
		again, got, err := tensor.ParseNPZ(written)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(spec) || !slices.Equal(got, values) {
			t.Fatalf("%v: %v became %v", err, spec, again)
		}
	})
}
