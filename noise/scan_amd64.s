//go:build amd64 && !purego

#include "textflag.h"

// func scanAVX2(idx *uint32, raw *byte, n int, table *int32, size int)
//
// 32 words a turn in four registers (Y0 to Y3), then what is left in one. A
// comparison gives −1 where the word exceeds the threshold. Y4 to Y7 count the bins,
// and VPERMD takes from each row of the table the threshold of the word's bin: by
// register, from an address that depends on the row only. Y8 to Y11 count within the
// bin.
TEXT ·scanAVX2(SB), NOSPLIT, $0-40
	MOVQ idx+0(FP), DI
	MOVQ raw+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ table+24(FP), DX
	VPBROADCASTD size+32(FP), Y15

four:
	CMPQ CX, $32
	JLT  one
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VPSRLD  $1, Y0, Y0
	VPSRLD  $1, Y1, Y1
	VPSRLD  $1, Y2, Y2
	VPSRLD  $1, Y3, Y3
	VPXOR   Y4, Y4, Y4
	VPXOR   Y5, Y5, Y5
	VPXOR   Y6, Y6, Y6
	VPXOR   Y7, Y7, Y7
	VPXOR   Y8, Y8, Y8
	VPXOR   Y9, Y9, Y9
	VPXOR   Y10, Y10, Y10
	VPXOR   Y11, Y11, Y11
	MOVQ    DX, R8
	MOVQ    $7, BX

fourBins:
	VPBROADCASTD (R8), Y12
	VPCMPGTD Y12, Y0, Y13
	VPCMPGTD Y12, Y1, Y14
	VPSUBD   Y13, Y4, Y4
	VPSUBD   Y14, Y5, Y5
	VPCMPGTD Y12, Y2, Y13
	VPCMPGTD Y12, Y3, Y14
	VPSUBD   Y13, Y6, Y6
	VPSUBD   Y14, Y7, Y7
	ADDQ $4, R8
	DECQ BX
	JNZ  fourBins
	ADDQ $4, R8
	MOVQ size+32(FP), BX

fourRows:
	VPERMD   (R8), Y4, Y12
	VPERMD   (R8), Y5, Y13
	VPCMPGTD Y12, Y0, Y12
	VPCMPGTD Y13, Y1, Y13
	VPSUBD   Y12, Y8, Y8
	VPSUBD   Y13, Y9, Y9
	VPERMD   (R8), Y6, Y12
	VPERMD   (R8), Y7, Y13
	VPCMPGTD Y12, Y2, Y12
	VPCMPGTD Y13, Y3, Y13
	VPSUBD   Y12, Y10, Y10
	VPSUBD   Y13, Y11, Y11
	ADDQ $32, R8
	DECQ BX
	JNZ  fourRows

	VPMULLD Y15, Y4, Y4
	VPMULLD Y15, Y5, Y5
	VPMULLD Y15, Y6, Y6
	VPMULLD Y15, Y7, Y7
	VPADDD  Y8, Y4, Y4
	VPADDD  Y9, Y5, Y5
	VPADDD  Y10, Y6, Y6
	VPADDD  Y11, Y7, Y7
	VMOVDQU Y4, (DI)
	VMOVDQU Y5, 32(DI)
	VMOVDQU Y6, 64(DI)
	VMOVDQU Y7, 96(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JMP  four

one:
	TESTQ CX, CX
	JZ    done
	VMOVDQU (SI), Y0
	VPSRLD  $1, Y0, Y0
	VPXOR   Y4, Y4, Y4
	VPXOR   Y8, Y8, Y8
	MOVQ    DX, R8
	MOVQ    $7, BX

oneBins:
	VPBROADCASTD (R8), Y12
	VPCMPGTD Y12, Y0, Y13
	VPSUBD   Y13, Y4, Y4
	ADDQ $4, R8
	DECQ BX
	JNZ  oneBins
	ADDQ $4, R8
	MOVQ size+32(FP), BX

oneRows:
	VPERMD   (R8), Y4, Y12
	VPCMPGTD Y12, Y0, Y12
	VPSUBD   Y12, Y8, Y8
	ADDQ $32, R8
	DECQ BX
	JNZ  oneRows

	VPMULLD Y15, Y4, Y4
	VPADDD  Y8, Y4, Y4
	VMOVDQU Y4, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  one

done:
	// The registers held words and counts of samples.
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
	VZEROUPPER
	RET

// func resolveAVX2(idx *uint32, n int, slots *[64]uint32, full uint32)
//
// A row of outcomes a turn; the eight slots of all columns are in Y0 to Y7, and move
// up where one was taken.
TEXT ·resolveAVX2(SB), NOSPLIT, $0-28
	MOVQ idx+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ slots+16(FP), DX
	MOVL full+24(FP), BX
	DECL BX
	VMOVD BX, X15
	VPBROADCASTD X15, Y15
	VMOVDQU (DX), Y0
	VMOVDQU 32(DX), Y1
	VMOVDQU 64(DX), Y2
	VMOVDQU 96(DX), Y3
	VMOVDQU 128(DX), Y4
	VMOVDQU 160(DX), Y5
	VMOVDQU 192(DX), Y6
	VMOVDQU 224(DX), Y7

row:
	VMOVDQU  (DI), Y8
	VPCMPGTD Y15, Y8, Y9
	VPBLENDVB Y9, Y0, Y8, Y8
	VMOVDQU  Y8, (DI)
	VPBLENDVB Y9, Y1, Y0, Y0
	VPBLENDVB Y9, Y2, Y1, Y1
	VPBLENDVB Y9, Y3, Y2, Y2
	VPBLENDVB Y9, Y4, Y3, Y3
	VPBLENDVB Y9, Y5, Y4, Y4
	VPBLENDVB Y9, Y6, Y5, Y5
	VPBLENDVB Y9, Y7, Y6, Y6
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  row

	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
	VPXOR Y8, Y8, Y8
	VZEROUPPER
	RET

// How many ones a number of four bits has, twice.
DATA ones<>+0(SB)/8, $0x0302020102010100
DATA ones<>+8(SB)/8, $0x0403030203020201
DATA ones<>+16(SB)/8, $0x0302020102010100
DATA ones<>+24(SB)/8, $0x0403030203020201
GLOBL ones<>(SB), RODATA|NOPTR, $32

// func tossAVX2(out *int64, grids *uint32, raw *byte, n int, plane uint32)
//
// Eight samples a turn: the ones of 32 bits by halves of bytes, which VPSHUFB looks up
// in a register, summed up by multiplying with ones; those of the last byte likewise.
TEXT ·tossAVX2(SB), NOSPLIT, $0-36
	MOVQ out+0(FP), DI
	MOVQ grids+8(FP), DX
	MOVQ raw+16(FP), SI
	MOVQ n+24(FP), CX
	LEAQ (SI)(CX*4), R8
	MOVL plane+32(FP), BX
	VMOVD BX, X15
	VPBROADCASTD X15, Y14
	VMOVDQU ones<>(SB), Y13
	MOVL $0x0f0f0f0f, BX
	VMOVD BX, X12
	VPBROADCASTD X12, Y12
	MOVL $0x01010101, BX
	VMOVD BX, X11
	VPBROADCASTD X11, Y11
	MOVL $0x00010001, BX
	VMOVD BX, X10
	VPBROADCASTD X10, Y10
	MOVL $20, BX
	VMOVD BX, X9
	VPBROADCASTD X9, Y9

eight:
	VMOVDQU    (SI), Y0
	VPSRLW     $4, Y0, Y1
	VPAND      Y12, Y0, Y0
	VPAND      Y12, Y1, Y1
	VPSHUFB    Y0, Y13, Y0
	VPSHUFB    Y1, Y13, Y1
	VPADDB     Y1, Y0, Y0
	VPMADDUBSW Y11, Y0, Y0
	VPMADDWD   Y10, Y0, Y0
	VMOVQ      (R8), X2
	VPSRLW     $4, X2, X3
	VPAND      X12, X2, X2
	VPAND      X12, X3, X3
	VPSHUFB    X2, X13, X2
	VPSHUFB    X3, X13, X3
	VPADDB     X3, X2, X2
	VPMOVZXBD  X2, Y2
	VPADDD     Y2, Y0, Y0
	VPSUBD     Y9, Y0, Y0
	VMOVDQU    (DX), Y3
	VPCMPGTD   Y14, Y3, Y3
	VPAND      Y3, Y0, Y0
	VPMOVSXDQ  X0, Y1
	VEXTRACTI128 $1, Y0, X0
	VPMOVSXDQ  X0, Y2
	VPSLLQ     X15, Y1, Y1
	VPSLLQ     X15, Y2, Y2
	VPADDQ     (DI), Y1, Y1
	VPADDQ     32(DI), Y2, Y2
	VMOVDQU    Y1, (DI)
	VMOVDQU    Y2, 32(DI)
	ADDQ $32, SI
	ADDQ $8, R8
	ADDQ $32, DX
	ADDQ $64, DI
	SUBQ $8, CX
	JNZ  eight

	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VZEROUPPER
	RET
