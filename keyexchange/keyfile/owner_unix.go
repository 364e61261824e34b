//go:build unix

package keyfile

import (
	"io/fs"
	"syscall"
)

func ownedByRoot(info fs.FileInfo) bool {
	s, is := info.Sys().(*syscall.Stat_t)
	return is && s.Uid == 0
}
