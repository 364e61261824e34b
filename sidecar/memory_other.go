//go:build !linux

package sidecar

// NewMemory fails: only Linux has files that are certain not to shrink. On other systems arrays go
// through the frames.
func NewMemory(descriptor int) (Memory, error) {
	return Memory{}, memoryError("descriptor %d: this system has no memfd", descriptor)
}

func (s *mapping) grow() error { return memoryError("this system has no memfd") }
