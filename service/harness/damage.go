package harness

import (
	"fmt"
	"os"
	"path/filepath"
)

// Damage is a bit that a disk has flipped, or the end of a file that it has lost.
type Damage struct {
	File string // within a folder, with slashes
	Cut  bool   // to At bytes, rather than flipping a bit
	At   int64
	Bit  int
}

// String says what is damaged, and where.
func (d Damage) String() string {
	if d.Cut {
		return fmt.Sprintf("cut %s to %d", d.File, d.At)
	}
	return fmt.Sprintf("flip %s byte %d bit %d", d.File, d.At, d.Bit)
}

// Do damages a file in a folder. A process that has it open goes on with the damaged file.
func (d Damage) Do(folder string) error {
	name := filepath.Join(folder, filepath.FromSlash(d.File))
	if d.Cut {
		return os.Truncate(name, d.At)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], d.At); err != nil {
		return err
	}
	b[0] ^= 1 << d.Bit
	if _, err := f.WriteAt(b[:], d.At); err != nil {
		return err
	}
	return f.Close()
}
