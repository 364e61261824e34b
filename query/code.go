package query

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/job"
)

// This file has the code by which frequent words are read from a sum: a spinal code (Perry et al.
// 2012). A hash of the whole word chooses one of many buckets, and there the word adds a vector of
// signs. The signs of a byte follow from a hash of all bytes up to it, so that a word is found byte
// by byte, and one false byte makes all signs behind it random. The signs that are left behind a
// word, and some more at the end, follow from the whole word, and check it.

const (
	signs  = job.WordSigns // of a byte
	starts = 16            // of the hash in a bucket, so that few words that begin alike share signs
)

// code places and encodes words, for all parties of a query alike.
type code struct {
	seed    uint64
	buckets int
	longest int // bytes of a word
}

// newCode draws the hashes from the names of a job and of a query, which all parties know.
func newCode(job, query string, buckets, longest int) *code {
	digest := sha256.Sum256([]byte(labels.Heavy + "\x00" + job + "\x00" + query))
	return &code{binary.LittleEndian.Uint64(digest[:]), buckets, longest}
}

// stirred mixes the bits of a state. It need not be hard to invert: knowing two words of one
// bucket gains nothing.
func stirred(x uint64) uint64 {
	const odd = 0xbea225f9eb34556d
	x ^= x >> 32
	x *= odd
	x ^= x >> 29
	x *= odd
	return x ^ x>>32
}

// after is the state behind one more byte, whose first bits are signs. Behind a word the bytes are
// 0.
func after(state uint64, next byte) uint64 {
	return stirred(state ^ (uint64(next)+1)*0x9e3779b97f4a7c15)
}

// slots is how many bytes a bucket has signs of: the last ones check a word.
func (c *code) slots() int { return c.longest + job.WordChecks }

// width is how many numbers a bucket has.
func (c *code) width() int { return signs * c.slots() }

// start is the state before the first byte, in a bucket, of one of the starts.
func (c *code) start(bucket, which int) uint64 {
	return stirred(c.seed + uint64(bucket*starts+which) + 1)
}

// place returns in which bucket a word is, and from which of its starts.
func (c *code) place(word string) (bucket, which int) {
	state := ^c.seed
	for i := range len(word) {
		state = after(state, word[i])
	}
	high, low := bits.Mul64(after(after(state, 0), 0), uint64(c.buckets))
	return int(high), int(low >> 60)
}

// vector returns what a word adds to its bucket. Its L2 norm is 1.
func (c *code) vector(word string) []float64 {
	each := 1 / math.Sqrt(float64(c.width()))
	v := make([]float64, 0, c.width())
	state := c.start(c.place(word))
	for i := range c.slots() {
		next := byte(0)
		if i < len(word) {
			next = word[i]
		}
		state = after(state, next)
		for bit := range signs {
			sign := float64(state>>(63-bit)&1)*2 - 1
			v = append(v, sign*each)
		}
	}
	return v
}

// tail holds all by which the bytes of a word up to some place bound the next: it is UTF-8.
type tail struct {
	left  int8 // bytes of a character that are still to come
	lead  byte // the first byte of the last character; 0 of ASCII, and of none
	ended bool
}

// Parts of all words in which something comes next. They need not be right: they say how many rows
// it takes to find a word, and rare ones take more.
const (
	endPart    = 0.12 // the word ends
	letterPart = 0.70 // a to z
	digitPart  = 0.05
	otherPart  = 0.05 // of ASCII, without capital letters
	leadPart   = 0.08 // a character of more bytes
	samePart   = 0.50 // behind one of those: another that begins alike
)

// Logarithms of the parts, for each byte.
var (
	logEnd    = math.Log(endPart)
	logLetter = math.Log(letterPart / 26)
	logDigit  = math.Log(digitPart / 10)
	logOther  = math.Log(otherPart / 33)
	logLead   = math.Log(leadPart / 51)
	logSame   = math.Log(samePart)
	logNew    = math.Log(1 - samePart)
	logMore   = math.Log(1. / 64)
)

// follow returns the tail behind one more byte, of which 0 ends the word, and the logarithm of the
// part of words that go on like that; false if none do. All parts together are 1 at most.
func (t tail) follow(b byte) (next tail, part float64, ok bool) {
	switch {
	case t.ended:
		return t, 0, b == 0
	case t.left > 0:
		t.left--
		return t, logMore, b&0xc0 == 0x80
	case t.lead != 0 && b == t.lead:
		return tail{left: more(b), lead: b}, logSame, true
	case t.lead != 0:
		part = logNew
	}
	switch {
	case b == 0:
		return tail{ended: true}, part + logEnd, true
	case 'a' <= b && b <= 'z':
		return tail{}, part + logLetter, true
	case '0' <= b && b <= '9':
		return tail{}, part + logDigit, true
	case b < utf8.RuneSelf:
		return tail{}, part + logOther, ' ' <= b && b <= '~' && (b < 'A' || b > 'Z')
	}
	return tail{left: more(b), lead: b}, part + logLead, more(b) > 0
}

// more is how many bytes of a character follow its first.
func more(lead byte) int8 {
	switch {
	case lead >= 0xc2 && lead <= 0xdf:
		return 1
	case lead >= 0xe0 && lead <= 0xef:
		return 2
	case lead >= 0xf0 && lead <= 0xf4:
		return 3
	}
	return 0
}

// part returns the logarithm of the part of a word of all that there may be: over all words that
// are as long at most, parts add up to 1 at most. It is false for a text that is no word.
func (c *code) part(word string) (sum float64, ok bool) {
	if len(word) == 0 || len(word) > c.longest {
		return 0, false
	}
	t := tail{}
	for i := range len(word) + 1 {
		next := byte(0)
		if i < len(word) {
			next = word[i]
		} else if i == c.longest {
			break
		}
		var part float64
		if t, part, ok = t.follow(next); !ok || i < len(word) && next == 0 {
			return 0, false
		}
		sum += part
	}
	return sum, true
}
