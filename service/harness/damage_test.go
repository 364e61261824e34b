package harness

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
)

// damageIn chooses a place in the files of a folder that are not empty, and for which may reports
// true. It reports false if there are none.
func damageIn(folder string, random *rand.Rand, may func(name string) bool) (Damage, bool) {
	type file struct {
		name string
		size int64
	}
	var all []file
	_ = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // deleted meanwhile
		}
		info, err := d.Info()
		if err != nil || info.Size() == 0 {
			return nil
		}
		if name, err = filepath.Rel(folder, name); err == nil && may(filepath.ToSlash(name)) {
			all = append(all, file{filepath.ToSlash(name), info.Size()})
		}
		return nil
	})
	if len(all) == 0 {
		return Damage{}, false
	}
	f := all[random.IntN(len(all))]
	return Damage{File: f.name, Cut: random.IntN(3) == 0, At: random.Int64N(f.size),
		Bit: random.IntN(8)}, true
}
