//go:build !amd64 || purego

package ring

// A path is a way of making products by instructions that not every processor has. Here is none.
type path struct{}

var fast *path

type floating struct{}

func (r *Ring) newFloating() floating                     { return floating{} }
func (p *path) serves(int) bool                           { return false }
func (p *path) prepare(Factor)                            {}
func (p *path) mulInto(*Ring, []uint64, []uint64, Factor) {}

func (p *path) checkPacked(*Ring, []byte, int) (done int, bad uint64) { return 0, 0 }
func (p *path) addPacked(*Ring, []uint64, []byte) (done int)          { return 0 }
