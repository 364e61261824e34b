package learning

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"
)

func TestParseIDX(t *testing.T) {
	data := []byte{1, 2, 3, 4, 5, 6}
	good := idxFile(idxByte, data, 2, 3)
	got, err := parseIDX(bytes.NewReader(good), idxByte, 2, 3)
	if err != nil || !slices.Equal(got, data) {
		t.Fatalf("%v, %v", got, err)
	}
	// Every shorter file is incomplete.
	for n := range good {
		if _, err := parseIDX(bytes.NewReader(good[:n]), idxByte, 2, 3); !errors.Is(err, ErrIncomplete) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	bad := map[string][]byte{
		"trailing":   append(slices.Clone(good), 0),
		"type":       idxFile(0x09, data, 2, 3),
		"dimensions": idxFile(idxByte, data, 2, 3, 1),
		"sizes":      idxFile(idxByte, data, 3, 2),
		"huge":       idxFile(idxByte, data, math.MaxInt32, math.MaxInt32),
		"magic":      append([]byte{1}, good[1:]...),
	}
	for name, file := range bad {
		if _, err := parseIDX(bytes.NewReader(file), idxByte, 2, 3); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wide := idxFile(idxInt32, make([]byte, 8), 1, 2)
	if got, err := parseIDX(bytes.NewReader(wide), idxInt32, 1, 2); err != nil || len(got) != 8 {
		t.Errorf("int32: %d bytes, %v", len(got), err)
	}
}

// FuzzIDX demands that a file which is accepted is the one file with its content.
func FuzzIDX(f *testing.F) {
	f.Add(idxFile(idxByte, []byte{1, 2, 3, 4, 5, 6}, 2, 3), byte(idxByte), uint8(2), uint8(3))
	f.Add(idxFile(idxInt32, make([]byte, 8), 1, 2), byte(idxInt32), uint8(1), uint8(2))
	f.Add([]byte{0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 0}, byte(idxByte), uint8(0), uint8(0))
	f.Add([]byte{}, byte(idxByte), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, file []byte, kind byte, rows, cols uint8) {
		data, err := parseIDX(bytes.NewReader(file), kind, int(rows), int(cols))
		if err != nil {
			if data != nil || !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrIncomplete) {
				t.Fatalf("%d bytes, %v", len(data), err)
			}
			return
		}
		if !bytes.Equal(idxFile(kind, data, int(rows), int(cols)), file) {
			t.Fatal("another file was accepted for the same content")
		}
	})
}
