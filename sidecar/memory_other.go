//go:build !linux

package sidecar

// NewMemory fails: only Linux has files that are sure not to become shorter. Arrays go
// through the frames elsewhere.
func NewMemory(descriptor int) (Memory, error) {
	return Memory{}, memoryError("descriptor %d: this system has no memfd", descriptor)
}

func (s *mapping) grow() error { return memoryError("this system has no memfd") }
