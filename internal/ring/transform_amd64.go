//go:build amd64 && !purego

package ring

import (
	"math"
	"math/bits"
	"os"
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C ../../tools ./transforms -out ../internal/ring/transform_amd64.s

// A path is a way of making products, by instructions that not every processor has. Command
// transforms says how, and why its time does not depend on secrets.
type path struct {
	name  string
	has   func() bool
	lanes int
	// Where entries need not be reduced between levels, and where they must.
	first [2]func(dst *float64, a *uint64, f, psi *float64, n int, q, inverse float64)
	level [2]func(dst *float64, groups, t int, psi *float64, q, inverse float64)
	last  func(dst *float64, n int, by float64, integer uint64, q, inverse float64)
}

// paths are in the order of their speed.
var paths = []*path{
	{
		name: "avx512", has: func() bool { return cpu.X86.HasAVX512F }, lanes: 8,
		first: [2]func(*float64, *uint64, *float64, *float64, int, float64, float64){
			firstAVX512, firstReducedAVX512},
		level: [2]func(*float64, int, int, *float64, float64, float64){
			levelAVX512, levelReducedAVX512},
		last: lastAVX512,
	},
	{
		name: "avx2", has: func() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }, lanes: 4,
		first: [2]func(*float64, *uint64, *float64, *float64, int, float64, float64){
			firstAVX2, firstReducedAVX2},
		level: [2]func(*float64, int, int, *float64, float64, float64){
			levelAVX2, levelReducedAVX2},
		last: lastAVX2,
	},
}

// fast is the path in use, or nil for the portable code.
var fast = choose(os.Getenv("HUSHSUM_CPU"))

// choose returns the fastest path that the processor has and that its name allows, or nil for
// "portable". Package masking reads the same names; what has "aesni" has the second path.
func choose(name string) *path {
	if name == "portable" {
		return nil
	}
	from := 0
	if name == "avx2" || name == "aesni" {
		from = 1
	}
	for _, p := range paths[from:] {
		if p.has() {
			return p
		}
	}
	return nil
}

// A floating has the constants of a ring that a path needs.
type floating struct {
	q, inverse float64
	reduce     int       // 1 if entries must be reduced between levels
	psiInv     []float64 // powers of 1/ψ, as Ring has them
	split      split
}

func (r *Ring) newFloating() floating {
	f := floating{q: float64(r.q), inverse: 1 / float64(r.q), psiInv: make([]float64, r.n)}
	for i, w := range r.psiInv {
		f.psiInv[i] = float64(w)
	}
	if r.bits+bits.Len(uint(r.n))-1 > 50 {
		f.reduce = 1
	}
	f.split = newSplit(r.bits)
	return f
}

// serves reports whether the path takes rings of that degree.
func (p *path) serves(n int) bool { return p != nil && n >= 2*p.lanes }

// prepare makes a transformed element the path's kind of factor: its bits as float64.
func (p *path) prepare(f Factor) {
	for i, x := range f {
		f[i] = math.Float64bits(float64(x))
	}
}

// mulInto is [Ring.MulInto].
func (p *path) mulInto(r *Ring, dst, a []uint64, f Factor) {
	dst, a, f = dst[:r.n], a[:r.n], f[:r.n]
	at, factor := floats(dst), floats(f)
	v := &r.floating
	p.first[v.reduce](at, &a[0], factor, &v.psiInv[0], r.n, v.q, v.inverse)
	for t := p.lanes; t < r.n; t *= 2 {
		groups := r.n / (2 * t)
		p.level[v.reduce](at, groups, t, &v.psiInv[groups], v.q, v.inverse)
	}
	p.last(at, r.n, float64(r.nInv), r.q, v.q, v.inverse)
}

// floats is the first of words that hold bits of float64.
func floats(words []uint64) *float64 { return (*float64)(unsafe.Pointer(&words[0])) }

// A split says how eight packed coefficients are taken apart: where pairs begin, which bytes a
// coefficient is in, its lowest bit there, and its mask. Command transforms knows its layout.
type split struct {
	offsets [4]uint64
	bytes   [8][8]uint8
	shifts  [8]uint64
	mask    uint64
}

func newSplit(width int) (s split) {
	s.mask = 1<<width - 1
	for i := range 8 {
		begins := i * width / 8
		if i%2 == 0 {
			s.offsets[i/2] = uint64(begins)
		}
		for j := range 8 {
			s.bytes[i][j] = uint8(begins - int(s.offsets[i/2]) + j)
		}
		s.shifts[i] = uint64(i * width % 8)
	}
	return s
}

// groups returns how many groups of eight can be taken apart of n coefficients of width bits in
// size bytes: pairs are read as sixteen bytes, and the last one's must be there.
func (s *split) groups(width, n, size int) int {
	if room := size - int(s.offsets[3]) - 16; room >= 0 {
		return min(n/8, room/width+1)
	}
	return 0
}

// checkPacked is [Ring.CheckPacked] for coefficients that it counts, of n. The highest bit of bad
// is set if one is q or more.
func (p *path) checkPacked(r *Ring, b []byte, n int) (done int, bad uint64) {
	s := &r.floating.split
	groups := s.groups(r.bits, n, len(b))
	if p == nil || groups == 0 {
		return 0, 0
	}
	var over [4]uint64
	checkPacked(&b[0], groups, r.bits, &s.offsets[0], r.q, &over)
	return 8 * groups, over[0] | over[1] | over[2] | over[3]
}

// addPacked is [Ring.AddPacked] for coefficients that it counts.
func (p *path) addPacked(r *Ring, dst []uint64, b []byte) (done int) {
	s := &r.floating.split
	groups := s.groups(r.bits, len(dst), len(b))
	if p == nil || groups == 0 {
		return 0
	}
	addPacked(&b[0], groups, r.bits, &s.offsets[0], r.q, &dst[0])
	return 8 * groups
}

//go:noescape
func checkPacked(b *byte, groups, width int, s *uint64, q uint64, over *[4]uint64)

//go:noescape
func addPacked(b *byte, groups, width int, s *uint64, q uint64, dst *uint64)

//go:noescape
func firstAVX512(dst *float64, a *uint64, f, psi *float64, n int, q, inverse float64)

//go:noescape
func firstReducedAVX512(dst *float64, a *uint64, f, psi *float64, n int, q, inverse float64)

//go:noescape
func levelAVX512(dst *float64, groups, t int, psi *float64, q, inverse float64)

//go:noescape
func levelReducedAVX512(dst *float64, groups, t int, psi *float64, q, inverse float64)

//go:noescape
func lastAVX512(dst *float64, n int, by float64, integer uint64, q, inverse float64)

//go:noescape
func firstAVX2(dst *float64, a *uint64, f, psi *float64, n int, q, inverse float64)

//go:noescape
func firstReducedAVX2(dst *float64, a *uint64, f, psi *float64, n int, q, inverse float64)

//go:noescape
func levelAVX2(dst *float64, groups, t int, psi *float64, q, inverse float64)

//go:noescape
func levelReducedAVX2(dst *float64, groups, t int, psi *float64, q, inverse float64)

//go:noescape
func lastAVX2(dst *float64, n int, by float64, integer uint64, q, inverse float64)
