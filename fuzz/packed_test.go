package fuzz

import (
	"bytes"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/masking"
)

// FuzzPacked parses bytes as a packed vector of two segments.
func FuzzPacked(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4}, uint8(7), uint8(2), uint8(5), uint8(3))
	f.Add(make([]byte, 16), uint8(63), uint8(0), uint8(63), uint8(0))
	f.Fuzz(func(t *testing.T, packed []byte, bits1, length1, bits2, length2 uint8) {
		layout := masking.Layout{
			{Length: 1 + int(length1), Bits: 1 + int(bits1)%64},
			{Length: 1 + int(length2), Bits: 1 + int(bits2)%64},
		}
		v, err := masking.ParsePacked(layout, packed)
		sum, newErr := masking.NewVector(layout)
		if newErr != nil {
			t.Fatal(newErr)
		}
		streamErr := addInTwo(layout, sum, packed, int(length1)*int(bits1))
		if err != nil {
			if sum.AddPacked(packed) == nil || streamErr == nil {
				t.Fatal("AddPacked or an Intake takes what ParsePacked refuses")
			}
			if !bytes.Equal(sum.AppendPacked(nil), make([]byte, layout.PackedSize())) {
				t.Fatal("refused bytes changed the vector")
			}
			return
		}
		if again := v.AppendPacked(nil); !bytes.Equal(again, packed) {
			t.Fatalf("%x parses, and packs to %x", packed, again)
		}
		if streamErr != nil || !bytes.Equal(sum.AppendPacked(nil), packed) {
			t.Fatalf("an Intake makes something else of it: %v", streamErr)
		}
		again, err := masking.FromValues(layout, v.Values()...)
		if err != nil || !slices.EqualFunc(again.Values(), v.Values(), slices.Equal) {
			t.Fatalf("the values of a vector do not make it again: %v", err)
		}
	})
}

// addInTwo adds a packed vector to sum as an Intake takes it, in two pieces.
func addInTwo(layout masking.Layout, sum *masking.Vector, packed []byte, cut int) error {
	intake, err := masking.NewIntake(layout)
	if err != nil {
		return err
	}
	cut = min(cut, len(packed))
	if _, err := intake.Write(packed[:cut]); err != nil {
		return err
	}
	if _, err := intake.Write(packed[cut:]); err != nil {
		return err
	}
	return intake.AddTo(sum)
}
