//go:build amd64 && !purego

#include "textflag.h"

// scanGeneric on 16 words a turn: four registers of words, four of counters, one
// threshold broadcast at a time. n is a positive multiple of 16, k is positive.
// A comparison gives -1 where threshold > word, so k plus the sum of them is the
// number of thresholds that the word reaches.

// func scanAVX2(idx, u *uint64, n int, table *uint64, k int)
TEXT ·scanAVX2(SB), NOSPLIT, $0-40
	MOVQ idx+0(FP), DI
	MOVQ u+8(FP), SI
	MOVQ n+16(FP), CX

words:
	MOVQ table+24(FP), DX
	MOVQ k+32(FP), BX
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VPBROADCASTQ k+32(FP), Y4
	VMOVDQA Y4, Y5
	VMOVDQA Y4, Y6
	VMOVDQA Y4, Y7

thresholds:
	VPBROADCASTQ (DX), Y8
	VPCMPGTQ Y0, Y8, Y9
	VPCMPGTQ Y1, Y8, Y10
	VPCMPGTQ Y2, Y8, Y11
	VPCMPGTQ Y3, Y8, Y12
	VPADDQ   Y9, Y4, Y4
	VPADDQ   Y10, Y5, Y5
	VPADDQ   Y11, Y6, Y6
	VPADDQ   Y12, Y7, Y7
	ADDQ $8, DX
	DECQ BX
	JNZ  thresholds

	VMOVDQU Y4, (DI)
	VMOVDQU Y5, 32(DI)
	VMOVDQU Y6, 64(DI)
	VMOVDQU Y7, 96(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $16, CX
	JNZ  words

	// The registers held words and counts of samples.
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VZEROUPPER
	RET
