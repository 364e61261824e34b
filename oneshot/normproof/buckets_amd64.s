//go:build amd64 && !purego

#include "textflag.h"

// A bucket has 16 bytes, so that twice a byte of the matrix times 8 is its place, and a group has
// 4,096.

// func addFour(groups *[4][256][2]uint64, bytes *byte, stride int, values *[2]uint64, n int)
TEXT ·addFour(SB), NOSPLIT, $0-40
	MOVQ groups+0(FP), DI
	MOVQ bytes+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ values+24(FP), BX
	MOVQ n+32(FP), CX

column:
	MOVOU   (BX), X0
	MOVL    (SI), AX
	MOVBLZX AX, R8
	ADDL    R8, R8
	MOVOU   (DI)(R8*8), X1
	PADDQ   X0, X1
	MOVOU   X1, (DI)(R8*8)
	SHRL    $8, AX
	MOVBLZX AX, R8
	ADDL    R8, R8
	MOVOU   4096(DI)(R8*8), X1
	PADDQ   X0, X1
	MOVOU   X1, 4096(DI)(R8*8)
	SHRL    $8, AX
	MOVBLZX AX, R8
	ADDL    R8, R8
	MOVOU   8192(DI)(R8*8), X1
	PADDQ   X0, X1
	MOVOU   X1, 8192(DI)(R8*8)
	SHRL    $8, AX
	ADDL    AX, AX
	MOVOU   12288(DI)(AX*8), X1
	PADDQ   X0, X1
	MOVOU   X1, 12288(DI)(AX*8)
	ADDQ    DX, SI
	ADDQ    $16, BX
	DECQ    CX
	JNZ     column
	RET
