// Package lock keeps two processes from using one folder.
package lock

import (
	"os"
	"path/filepath"
)

const fileName = "lock"

// Folder locks a folder, which must be there, until the file that it returns is closed or
// the process ends. It fails if another process has it.
func Folder(folder string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(folder, fileName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
