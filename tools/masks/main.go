// Command masks writes the assembly of package masking to its output.
//
//	go generate ./masking
//
// A kernel makes AES-128-CTR keystream in registers and adds it to a vector, or subtracts it,
// before any of it reaches memory. Eight registers of counter blocks go through the rounds in
// parallel: a round takes several cycles, and the processor starts one or two per cycle.
//
// Time depends on the length alone. There is one branch, on the number of turns; addresses are
// those of the vector, of the keys and of constants, at offsets that count up; and all instructions
// on keys, keystream and the vector are of kinds whose time does not depend on their operands: AES
// rounds, logic, additions and shuffles by a constant.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// blocks is how many registers of counter blocks go through the rounds in parallel.
const blocks = 8

// A width is one kind of vector registers.
type width struct {
	name string // at the end of the functions' names
	size int    // bytes
	file []VecPhysical
}

var widths = []width{
	{"AVX512", 64, []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14,
		Z15, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26}},
	{"AVX2", 32, []VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14,
		Y15}},
	{"AESNI", 16, []VecPhysical{X0, X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14,
		X15}},
}

// Registers by what they hold, after those of the blocks.
const (
	counter   = blocks + iota // of the next blocks
	increment                 // how many those of a turn are
	swap                      // turns the last four bytes of a block around
	body                      // all bits of slots but the highest
	top                       // the highest
	one                       // for what is in between
	two                       // likewise
	keys                      // of rounds: one register, or of 512 bits eleven
)

// An operation combines words of the vector with those of the keystream.
type operation struct {
	name     string
	subtract bool
	lanes    bool // slots of 32 bits, which the machine adds by itself
}

var operations = []operation{
	{"add", false, false}, {"sub", true, false}, {"add32", false, true}, {"sub32", true, true},
}

func main() {
	ConstraintExpr("amd64,!purego")
	vaes()
	expand()
	constants := constants()
	for _, w := range widths {
		for _, o := range operations {
			w.kernel(o, constants)
		}
	}
	Generate()
}

// Offsets of the constants.
const (
	swapAt      = 0
	incrementAt = 16 // blocks of a turn: 8, 16, 32
	numbersAt   = 64 // blocks with the numbers from 0 to 31
)

// constants writes the constants that counting needs: a block's number is its last four bytes, the
// lowest first until they are reversed.
func constants() Mem {
	m := GLOBL("counting", RODATA|NOPTR)
	DATA(swapAt, U64(0x0706050403020100))
	DATA(swapAt+8, U64(0x0c0d0e0f0b0a0908))
	for i := range 3 {
		DATA(incrementAt+16*i, U64(0))
		DATA(incrementAt+16*i+8, U64(uint64(blocks)<<i<<32))
	}
	for i := range 4 * blocks {
		DATA(numbersAt+16*i, U64(0))
		DATA(numbersAt+16*i+8, U64(uint64(i)<<56))
	}
	return m
}

// vaes writes the test whether the processor has AES instructions for registers of 256 bits and
// more. That it has leaf 7 follows from AVX2.
func vaes() {
	TEXT("hasVAES", NOSPLIT, "func() bool")
	MOVL(U32(7), EAX)
	XORL(ECX, ECX)
	CPUID()
	BTL(U8(9), ECX)
	SETCS(AL)
	Store(AL, ReturnIndex(0))
	RET()
}

// expand writes the key schedule (FIPS 197 §5.2): a word of a round key is the sum of those of the
// last up to its own place, and of the last one's final word, turned and through the S-box.
func expand() {
	TEXT("expandKey", NOSPLIT, "func(keys, seed *byte)")
	Load(Param("keys"), RDI)
	Load(Param("seed"), RSI)
	VMOVDQU(Mem{Base: RSI}, X0)
	VMOVDQU(X0, Mem{Base: RDI})
	constant := uint8(1)
	for round := 1; round <= 10; round++ {
		VAESKEYGENASSIST(U8(constant), X0, X1)
		VPSHUFD(U8(0xff), X1, X1)
		VPSLLDQ(U8(4), X0, X2)
		VPXOR(X2, X0, X0)
		VPSLLDQ(U8(8), X0, X2)
		VPXOR(X2, X0, X0)
		VPXOR(X1, X0, X0)
		VMOVDQU(X0, Mem{Base: RDI, Disp: 16 * round})
		constant = constant<<1 ^ constant>>7*0x1b
	}
	RET()
}

// kernel writes one function.
func (w width) kernel(o operation, constants Mem) {
	TEXT(o.name+"Mask"+w.name, NOSPLIT,
		"func(dst *uint64, turns int, keys, first *byte, low, high uint64)")
	dst, turns := RDI, RCX
	Load(Param("dst"), dst)
	Load(Param("turns"), turns)
	Load(Param("keys"), RSI)
	Load(Param("first"), RDX)
	r := w.file
	w.repeat(Mem{Base: RDX}, r[counter])
	w.repeat(constants.Offset(swapAt), r[swap])
	w.repeat(constants.Offset(incrementAt+16*(w.size/32)), r[increment])
	if !o.lanes {
		low, high := NewParamAddr("low", 32), NewParamAddr("high", 40)
		VPBROADCASTQ(low, r[body])
		VPBROADCASTQ(high, r[top])
	}
	if w.size == 64 {
		for round := range 11 {
			w.loadKey(round)
		}
	}

	Label("turn")
	// The blocks of a turn differ in their last byte alone, as their first number is a multiple of
	// their count.
	VPSHUFB(r[swap], r[counter], r[one])
	VPADDD(r[increment], r[counter], r[counter])
	if w.size < 64 {
		w.loadKey(0)
	}
	w.xor(r[w.key(0)], r[one], r[one])
	for i := range blocks {
		w.xor(constants.Offset(numbersAt+i*w.size), r[one], r[i])
	}
	for at := range 11 + w.skew()*blocks {
		for i := range blocks {
			round := at + 1 - w.skew()*i
			if i == 0 && round <= 10 && w.size < 64 {
				w.loadKey(round)
			}
			switch {
			case 1 <= round && round <= 9:
				VAESENC(r[w.key(round)], r[i], r[i])
			case round == 10:
				VAESENCLAST(r[w.key(round)], r[i], r[i])
			case round == 11:
				w.apply(o, r[i], Mem{Base: dst, Disp: i * w.size})
			}
		}
	}
	ADDQ(I32(blocks*w.size), dst)
	DECQ(turns)
	JNZ(LabelRef("turn"))
	VZEROUPPER()
	RET()
}

// skew is by how many rounds a register of blocks is behind the one before it. Of 512 bits some are
// then added while others are in rounds, for which the processor has different units; of the
// others, all are in one round, since they share a register for its key.
func (w width) skew() int {
	if w.size == 64 {
		return 2
	}
	return 0
}

// key returns the register that holds a round key, with 512 bits one of its own.
func (w width) key(round int) int {
	if w.size == 64 {
		return keys + round
	}
	return keys
}

// loadKey loads a round key.
func (w width) loadKey(round int) {
	w.repeat(Mem{Base: RSI, Disp: 16 * round}, w.file[w.key(round)])
}

// repeat fills a register with copies of the 16 bytes of an address.
func (w width) repeat(from Mem, to VecPhysical) {
	switch w.size {
	case 64:
		VBROADCASTI32X4(from, to)
	case 32:
		VBROADCASTI128(from, to)
	default:
		VMOVDQU(from, to)
	}
}

// apply writes the operation on a register of keystream, which it spends, and the words at an
// address: the formulas of addSlots and subSlots.
func (w width) apply(o operation, k VecPhysical, words Mem) {
	r := w.file
	a, b := r[one], r[two]
	switch {
	case o.lanes && o.subtract:
		w.move(words, a)
		VPSUBD(k, a, k)
	case o.lanes:
		VPADDD(words, k, k)
	case w.size == 64:
		w.move(words, b)
		if o.subtract {
			VPORQ(b, r[top], a)
			VPTERNLOGQ(U8(0x82), r[top], k, b) // top where b and k agree
			VPANDQ(r[body], k, k)
			VPSUBQ(k, a, k)
		} else {
			VPANDQ(b, r[body], a)
			VPTERNLOGQ(U8(0x28), r[top], k, b) // top where they disagree
			VPANDQ(r[body], k, k)
			VPADDQ(k, a, k)
		}
		w.xor(b, k, k)
	default:
		VPXOR(words, k, b)
		VPAND(r[body], k, k)
		if o.subtract {
			VPOR(words, r[top], a)
			VPSUBQ(k, a, k)
			VPANDN(r[top], b, b)
		} else {
			VPAND(words, r[body], a)
			VPADDQ(k, a, k)
			VPAND(r[top], b, b)
		}
		VPXOR(b, k, k)
	}
	w.move(k, words)
}

func (w width) xor(a, b, to Op) {
	if w.size == 64 {
		VPXORQ(a, b, to)
	} else {
		VPXOR(a, b, to)
	}
}

// move loads or stores.
func (w width) move(from, to Op) {
	if w.size == 64 {
		VMOVDQU64(from, to)
	} else {
		VMOVDQU(from, to)
	}
}
