//go:build !amd64 || purego

package masking

// fuse reports that the portable code has to apply the masks.
func (v *Vector) fuse([]mask, int, int) bool { return false }
