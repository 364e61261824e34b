package tensor_test

import (
	"archive/zip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/tensor"
)

// zeros is an .npy file of this many numbers of 4 bytes.
func zeros(n int) string {
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }\n", n)
	return string(array(header, 1, make([]byte, 4*n)...))
}

// A short archive that unpacks to a long model is refused before it is unpacked, in one array or in
// many; a small model of zeros is read, and a long one that is not compressed.
func TestNPZBomb(t *testing.T) {
	const small, large = 7 << 20, 9 << 20 // numbers, of 28 and 36 MiB
	for name, files := range map[string][][2]string{
		"one":  {{"w.npy", zeros(large)}},
		"many": {{"v.npy", zeros(small)}, {"w.npy", zeros(large - small)}},
	} {
		b := archive(t, zip.Deflate, files...)
		if len(b) > 1<<20 {
			t.Fatalf("%s: %d bytes", name, len(b))
		}
		_, _, err := tensor.ParseNPZ(b)
		if !errors.Is(err, tensor.ErrNPZ) || !strings.Contains(err.Error(), "numpy.savez") {
			t.Errorf("%s: %v", name, err)
		}
		if _, values, err := tensor.ParseNPZ(archive(t, zip.Store, files...)); err != nil ||
			len(values) != large {
			t.Errorf("%s, not compressed: %v", name, err)
		}
	}
	_, values, err := tensor.ParseNPZ(archive(t, zip.Deflate, [2]string{"w.npy", zeros(small)}))
	if err != nil || len(values) != small {
		t.Errorf("a small model: %v", err)
	}
}
