package sidecar

import (
	"fmt"
	"sync"
)

// Memory is memory that a program and its sidecar have both mapped, to pass arrays through. The
// zero Memory has none. It must not be copied.
type Memory struct{ shared *mapping }

// mapping is a file that the program extends as it needs, and never shortens.
type mapping struct {
	descriptor int
	mutex      sync.Mutex
	bytes      []byte // the part of it that is mapped
}

// at returns a part of the memory.
func (m Memory) at(offset, length int64) ([]byte, error) {
	if m.shared == nil {
		return nil, requestError("start the sidecar with --shared and a file descriptor, or send "+
			"the bytes in the frame", "a blob is at an offset, and no memory is shared")
	}
	if offset < 0 || offset%8 != 0 {
		return nil, requestError("", "a blob at offset %d: offsets are multiples of 8", offset)
	}
	if length < 0 || length > maxBlob {
		return nil, requestError("", "a blob of %d bytes", length)
	}
	s := m.shared
	s.mutex.Lock()
	defer s.mutex.Unlock()
	end := offset + length
	if end < offset {
		return nil, requestError("", "a blob at offset %d", offset)
	}
	if end > int64(len(s.bytes)) {
		if err := s.grow(); err != nil {
			return nil, err
		}
	}
	if end > int64(len(s.bytes)) {
		return nil, requestError("make the file long enough first",
			"a blob ends at byte %d of a shared memory of %d", end, len(s.bytes))
	}
	return s.bytes[offset:end:end], nil
}

// memoryError reports that the descriptor is unusable.
func memoryError(format string, a ...any) error {
	return requestError("give the descriptor of a memfd that is sealed against shrinking "+
		"(F_SEAL_SHRINK)", "shared memory: %s", fmt.Sprintf(format, a...))
}
