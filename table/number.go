package table

import (
	"math"
	"strconv"
	"strings"
)

// mostExact is how many decimal digits every float64 mantissa holds, and powers are the powers of
// ten by which a mantissa of so many digits is divided without a second rounding.
const mostExact = 15

var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
	1e14, 1e15}

// Number reads a number as people write it: decimal digits, with a sign, a point and an exponent
// of ten if need be, and blanks around them. The words for infinities and for no number are no
// numbers, nor is a form that only programs write, as 0x1p5 and 1_000 are. A number beyond those
// of float64 is none either.
func Number(text string) (x float64, ok bool) {
	text = strings.TrimSpace(text)
	i := 0
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	mantissa, digits, behind, point := uint64(0), 0, 0, false
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		digits++
		if digits <= mostExact {
			mantissa = 10*mantissa + uint64(c-'0')
		}
		if point {
			behind++
		}
	}
	switch {
	case digits == 0:
		return 0, false
	case i == len(text) && digits <= mostExact:
		x = float64(mantissa) / powers[behind]
		if text[0] == '-' {
			x = -x
		}
		return x, true
	case i < len(text) && !exponent(text[i:]):
		return 0, false
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil
}

// exponent reports whether a text is e or E, a sign if need be, and digits.
func exponent(text string) bool {
	if text[0] != 'e' && text[0] != 'E' {
		return false
	}
	if text = text[1:]; text != "" && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// NotNumber says why a text, which is not empty, is no number, and what to do.
func NotNumber(text string) (reason, advice string) {
	text = strings.TrimSpace(text)
	reason = Quote(text) + " is not a number"
	plain := strings.NewReplacer(",", "", "_", "", " ", "", "\u00a0", "", "'", "").Replace(text)
	_, digits := Number(plain)
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case digits && strings.Contains(text, ","):
		advice = "write it with a decimal point, and without separators of thousands"
	case digits && plain != text:
		advice = "write its digits without separators"
	case math.IsInf(x, 0) && err != nil:
		reason = Quote(text) + " is too large for a number of 64 bits"
	case math.IsInf(x, 0):
		reason = Quote(text) + " is no finite number"
	}
	return reason, advice
}
