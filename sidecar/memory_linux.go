package sidecar

import (
	"golang.org/x/sys/unix"
)

// NewMemory takes the descriptor of a memfd. It must be sealed against shrinking, since the kernel
// ends a process that reads past the end of a mapped file.
func NewMemory(descriptor int) (Memory, error) {
	seals, err := unix.FcntlInt(uintptr(descriptor), unix.F_GET_SEALS, 0)
	if err != nil {
		return Memory{}, memoryError("descriptor %d: %v", descriptor, err)
	}
	if seals&unix.F_SEAL_SHRINK == 0 {
		return Memory{}, memoryError("descriptor %d may become shorter", descriptor)
	}
	unix.CloseOnExec(descriptor)
	return Memory{&mapping{descriptor: descriptor}}, nil
}

// grow maps the file at its present size. Earlier mappings stay, since calls may be reading them;
// they are the same memory, and cost only addresses.
func (s *mapping) grow() error {
	var stat unix.Stat_t
	if err := unix.Fstat(s.descriptor, &stat); err != nil {
		return memoryError("%v", err)
	}
	if stat.Size <= int64(len(s.bytes)) {
		return nil
	}
	if int64(int(stat.Size)) != stat.Size {
		return memoryError("%d bytes are more than this machine can map", stat.Size)
	}
	bytes, err := unix.Mmap(s.descriptor, 0, int(stat.Size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return memoryError("%v", err)
	}
	s.bytes = bytes
	return nil
}
