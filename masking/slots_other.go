//go:build !amd64 || purego

package masking

func addStream(dst []uint64, src []byte, body, top uint64) { addStreamGeneric(dst, src, body, top) }
func subStream(dst []uint64, src []byte, body, top uint64) { subStreamGeneric(dst, src, body, top) }
