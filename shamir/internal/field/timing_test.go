package field

import (
	"crypto/rand"
	"testing"

	"github.com/hushsum/hushsum/internal/dudect"
)

// Field arithmetic takes a time that does not depend on its operands: zeros, ones and
// numbers next to the order against random ones. The test would find leakyMul.
func TestArithmeticTiming(t *testing.T) {
	special := func(class int) [2]Element {
		var x, y Element
		if class == 0 {
			x, y = Small(0), Small(1)
			y.Neg(&y) // the order less 1
			return [2]Element{x, y}
		}
		for _, e := range []*Element{&x, &y} {
			var wide [64]byte
			if _, err := rand.Read(wide[:]); err != nil {
				t.Fatal(err)
			}
			e.SetWideBytes(&wide)
		}
		return [2]Element{x, y}
	}
	const repeated = 64
	for name, op := range map[string]func(z, x, y *Element){
		"Add":      func(z, x, y *Element) { z.Add(x, y) },
		"Sub":      func(z, x, y *Element) { z.Sub(x, y) },
		"Mul":      func(z, x, y *Element) { z.Mul(x, y) },
		"MulSmall": func(z, x, _ *Element) { z.MulSmall(x, 12345) },
		"Invert":   func(z, x, _ *Element) { z.Invert(x) },
	} {
		measurements := 1 << 14
		if name == "Invert" {
			measurements = 1 << 12
		}
		dudect.Check(t, name, false, measurements, special, func(in [2]Element) {
			var z Element
			for range repeated {
				op(&z, &in[0], &in[1])
			}
		})
	}
	dudect.Check(t, "a product that skips zeros", true, 1<<14, special, func(in [2]Element) {
		var z Element
		for range repeated {
			leakyMul(&z, &in[0], &in[1])
		}
	})
}

// leakyMul is a product that is quick where a factor is zero.
func leakyMul(z, x, y *Element) {
	if *x == (Element{}) {
		*z = Element{}
		return
	}
	z.Mul(x, y)
}
