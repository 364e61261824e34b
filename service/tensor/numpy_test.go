package tensor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/tensor"
)

// numpyFiles are the files that testdata/numpy.py writes, with what is read of each, or
// what its refusal says.
var numpyFiles = map[string]struct {
	read    string // names and shapes
	dtype   tensor.DType
	values  []float64
	refused string
	do      string // what to do about it
}{
	"plain": {
		read:   "layer/0/weight [2 3], layer/0/bias [2]",
		dtype:  tensor.Float32,
		values: []float64{0, 0.25, 0.5, 0.75, 1, 1.25, -1.5, 2},
	},
	"positional": {
		read:   "arr_0 [2 3]",
		dtype:  tensor.Float32,
		values: []float64{0, 0.25, 0.5, 0.75, 1, 1.25},
	},
	"compressed": {
		read:   "w [2 3], b [3]",
		dtype:  tensor.Float32,
		values: []float64{0, 0.25, 0.5, 0.75, 1, 1.25, 0, 0.25, 0.5},
	},
	"double": {
		read:  "w [2 3], scalar []",
		dtype: tensor.Float64,
		values: []float64{0, 0.25 / third, 0.5 / third, 0.75 / third, 1 / third, 1.25 / third,
			0.1},
	},
	"scalar":        {read: "x []", dtype: tensor.Float32, values: []float64{2.5}},
	"noncontiguous": {read: "w [2 2]", dtype: tensor.Float32, values: []float64{0, 2, 8, 10}},
	"dotted": {
		read:   "model.npy [3], with space [3]",
		dtype:  tensor.Float32,
		values: []float64{0, 0.25, 0.5, 0.75, 1, 1.25},
	},
	"fortran":    {refused: "Fortran order", do: "ascontiguousarray"},
	"transposed": {refused: "Fortran order", do: "ascontiguousarray"},
	"half":       {refused: `half precision ("<f2")`, do: "astype('float32')"},
	"integer":    {refused: `whole numbers ("<i8")`, do: "astype('float32')"},
	"unsigned":   {refused: `whole numbers ("|u1")`, do: "astype('float32')"},
	"boolean":    {refused: "truth values", do: "astype('float32')"},
	"complex":    {refused: `complex numbers ("<c8")`, do: ".real"},
	"big":        {refused: "big-endian (>f4)", do: "astype('<f4')"},
	"big-double": {refused: "big-endian (>f8)", do: "astype('<f8')"},
	"mixed":      {refused: "type F64, and F32 before", do: "with one .astype"},
	"objects":    {refused: "Python objects", do: "array of numbers"},
	"text":       {refused: `text ("<U3")`, do: "leave it out"},
	"bytes":      {refused: `text ("|S3")`, do: "leave it out"},
	"dates":      {refused: `times ("<M8[D]")`, do: "leave it out"},
	"raw":        {refused: `NumPy does not know ("|V2")`, do: "astype('float32')"},
	"structured": {refused: "its type has fields", do: "an array of its own"},
	"empty":      {refused: "shape [3 0]", do: "1 number or more"},
	"none":       {refused: "0 arrays", do: "numpy.savez(file, name=array)"},
	"nan":        {refused: "number 1 is NaN or infinite", do: "diverged"},
	"infinite":   {refused: "number 0 is NaN or infinite", do: "diverged"},
	"name":       {refused: "not a name of a tensor", do: "printable ASCII"},
	"array":      {refused: "one array without a name", do: "numpy.savez(file, name=array)"},
}

const third = 3.

// check parses the files by their names.
func check(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, want := range numpyFiles {
		b, found := files[name]
		if !found {
			t.Errorf("there is no %s", name)
			continue
		}
		spec, values, _, err := tensor.ParseAny(b)
		if want.refused != "" {
			if !errors.Is(err, tensor.ErrNPZ) || !strings.Contains(err.Error(), want.refused) ||
				!strings.Contains(err.Error(), want.do) {
				t.Errorf("%s: %v; want %q and %q", name, err, want.refused, want.do)
			}
			continue
		}
		var read []string
		for _, one := range spec.Tensors {
			read = append(read, fmt.Sprint(one.Name, " ", one.Shape))
		}
		if got := strings.Join(read, ", "); err != nil || got != want.read || spec.DType != want.dtype ||
			!slices.Equal(values, want.values) {
			t.Errorf("%s: %v; %s of %s: %v", name, err, got, spec.DType, values)
		}
	}
}

// packed reads files that stand in one, in base64.
func packed(t *testing.T, name string) (files map[string][]byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &files)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Files that NumPy 1.24 wrote.
func TestNumPyFiles(t *testing.T) { check(t, packed(t, filepath.Join("testdata", "numpy.json"))) }

// numpy runs testdata/numpy.py by the Python that is there.
func numpy(t *testing.T, args ...string) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import numpy").Run() != nil {
			continue
		}
		script := append([]string{filepath.Join("testdata", "numpy.py")}, args...)
		out, err := exec.Command(python, script...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	t.Skip("needs python3 with numpy, which is not there")
	return ""
}

// The same of the NumPy that is there.
func TestNumPyWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "numpy.json")
	numpy(t, t.TempDir(), file)
	check(t, packed(t, file))
}

// NumPy reads the tensors that are written.
func TestNumPyReads(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		spec := tensor.Spec{DType: dtype, Tensors: []tensor.Tensor{
			{Name: "layer/0/weight", Shape: []int{2, 3}},
			{Name: "bias", Shape: []int{1}},
			{Name: "scalar"},
			{Name: "deep.one", Shape: []int{1, 2, 1, 2}},
			{Name: strings.Repeat("long ", 39) + "name", Shape: []int{2}},
		}}
		values := []float64{0, -0.5, 1e-40, 3.4e38, 1. / 3, -1, 7, 0.1, 1, 2, 3, 4, 5, 6}
		spec.Round(values)
		b, err := spec.AppendNPZ(nil, values)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "model.npz")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(numpy(t, "--read", file)), "\n")
		if len(lines) != len(spec.Tensors) {
			t.Fatalf("%d arrays: %q", len(lines), lines)
		}
		descr := map[tensor.DType]string{tensor.Float32: "<f4", tensor.Float64: "<f8"}[dtype]
		for k, one := range spec.Tensors {
			shape := strings.ReplaceAll(fmt.Sprint(one.Shape), " ", ", ")
			head := fmt.Sprintf("%s %s %s ", one.Name, descr, shape)
			numbers, found := strings.CutPrefix(lines[k], head)
			if !found {
				t.Errorf("%q, want %q", lines[k], head)
				continue
			}
			for _, text := range strings.Fields(numbers) {
				x, err := strconv.ParseFloat(text, 64)
				if err != nil || x != values[0] {
					t.Errorf("%s: %s, want %v", one.Name, text, values[0])
				}
				values = values[1:]
			}
		}
		if len(values) != 0 {
			t.Errorf("NumPy lacks %v", values)
		}
	}
}
