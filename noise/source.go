package noise

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"math/bits"

	"github.com/hushsum/hushsum/internal/entropy"
)

// Source draws exactly distributed coins from a stream of random bytes. All its methods decide by
// integer comparisons alone, and take a time that depends on the values drawn. The zero Source is
// NewSource(nil). It is not safe for concurrent use.
type Source struct {
	random io.Reader
	buf    [256]byte
	n      int // bytes of buf not yet used, at its end
}

// NewSource returns a source over random, from which it reads 256 bytes at a time; nil
// means Expand(nil).
func NewSource(random io.Reader) *Source {
	if random == nil {
		random = Expand(nil)
	}
	return &Source{random: random}
}

// Erase forgets the bytes that were read but not used.
func (s *Source) Erase() {
	clear(s.buf[:])
	s.n = 0
}

// stuck is how often a loop may repeat before the source is taken for broken.
// An honest source gets there with probability below 2^-1000 in every loop here,
// and then the answer is an error, never a sample.
const stuck = 1 << 16

var errStuck = fmt.Errorf("noise: %w: its bits repeat", ErrRandom)

func (s *Source) uint64() (uint64, error) {
	if s.n == 0 {
		if s.random == nil {
			s.random = Expand(nil)
		}
		if err := entropy.Read("noise", s.random, s.buf[:]); err != nil {
			return 0, err
		}
		s.n = len(s.buf)
	}
	p := s.buf[len(s.buf)-s.n:][:8]
	x := binary.LittleEndian.Uint64(p)
	clear(p)
	s.n -= 8
	return x, nil
}

// below draws a uniform integer in [0, n), n ≥ 1: the high word of x·n, with the
// few x rejected that would make some results likelier (Lemire 2019).
func (s *Source) below(n uint64) (uint64, error) {
	if n == 1 {
		return 0, nil
	}
	for range stuck {
		x, err := s.uint64()
		if err != nil {
			return 0, err
		}
		hi, lo := bits.Mul64(x, n)
		if lo >= n || lo >= -n%n {
			return hi, nil
		}
	}
	return 0, errStuck
}

// belowBig is below for any n ≥ 1.
func (s *Source) belowBig(n *big.Int) (*big.Int, error) {
	if n.IsUint64() {
		x, err := s.below(n.Uint64())
		return new(big.Int).SetUint64(x), err
	}
	width := n.BitLen()
	for range stuck {
		x := new(big.Int)
		for got := 0; got < width; got += 64 {
			w, err := s.uint64()
			if err != nil {
				return nil, err
			}
			x.Lsh(x, 64)
			x.Or(x, new(big.Int).SetUint64(w))
		}
		x.Rsh(x, uint((64-width%64)%64))
		if x.Cmp(n) < 0 {
			return x, nil
		}
	}
	return nil, errStuck
}

// Bernoulli returns true with probability p exactly, for a rational 0 ≤ p ≤ 1
// (else [ErrConfig]).
func (s *Source) Bernoulli(p *big.Rat) (bool, error) {
	if p == nil || p.Sign() < 0 || p.Num().Cmp(p.Denom()) > 0 {
		return false, fmt.Errorf("%w (a probability)", ErrConfig)
	}
	return s.bernoulliBig(p.Num(), p.Denom())
}

func (s *Source) bernoulliBig(num, den *big.Int) (bool, error) {
	if den.IsUint64() {
		x, err := s.below(den.Uint64())
		return err == nil && x < num.Uint64(), err
	}
	x, err := s.belowBig(den)
	return err == nil && x.Cmp(num) < 0, err
}

// bernoulliExpBig returns true with probability exp(−num/den) exactly: Algorithm 1 of (Canonne,
// Kamath, Steinke 2020).
func (s *Source) bernoulliExpBig(num, den *big.Int) (bool, error) {
	if num.IsUint64() && den.IsUint64() {
		return s.bernoulliExp(num.Uint64(), den.Uint64())
	}
	whole, part := new(big.Int).QuoRem(num, den, new(big.Int))
	n := uint64(stuck)
	if whole.IsUint64() {
		n = min(n, whole.Uint64())
	}
	if ok, err := s.expOnes(n); err != nil || !ok {
		return false, err
	}
	if n == stuck {
		return false, errStuck
	}
	for k := uint64(1); k < stuck; k++ {
		a, err := s.bernoulliBig(part, den)
		if err != nil {
			return false, err
		}
		if a {
			x, err := s.below(k)
			if err != nil {
				return false, err
			}
			a = x == 0
		}
		if !a {
			return k%2 == 1, nil
		}
	}
	return false, errStuck
}

// bernoulliExp is true with probability exp(−num/den).
func (s *Source) bernoulliExp(num, den uint64) (bool, error) {
	n := min(num/den, stuck)
	if ok, err := s.expOnes(n); err != nil || !ok {
		return false, err
	}
	if n == stuck {
		return false, errStuck
	}
	return s.bernoulliExpPart(num%den, den)
}

// expOnes is true with probability exp(−n): n times Bernoulli(exp(−1)).
func (s *Source) expOnes(n uint64) (bool, error) {
	for ; n > 0; n-- {
		if ok, err := s.bernoulliExpPart(1, 1); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// bernoulliExpPart is Algorithm 1 for num ≤ den: with A_k ~ Bernoulli(γ/k), the
// first k with A_k = 0 is odd with probability exp(−γ). The coin of probability
// γ/k is one of γ and one of 1/k, so that den·k need not fit a word.
func (s *Source) bernoulliExpPart(num, den uint64) (bool, error) {
	for k := uint64(1); k < stuck; k++ {
		x, err := s.below(den)
		if err != nil {
			return false, err
		}
		if x < num {
			if x, err = s.below(k); err != nil {
				return false, err
			}
			if x == 0 {
				continue
			}
		}
		return k%2 == 1, nil
	}
	return false, errStuck
}

// geometric draws k ≥ 0 with probability (1−p)·p^k, p = exp(−1/t), for t = num/den: the part of
// Algorithm 2 of (Canonne, Kamath, Steinke 2020) before the sign. With U uniform below num, kept
// with probability exp(−U/num), and V successes of Bernoulli(exp(−1)) in a row, X = U + num·V is
// geometric with exp(−1/num), and ⌊X/den⌋ with exp(−den/num).
func (s *Source) geometric(num, den *big.Int) (int64, error) {
	if num.BitLen() > 46 || !den.IsUint64() {
		return s.geometricBig(num, den)
	}
	return s.geometricSmall(num.Uint64(), den.Uint64())
}

// geometricSmall needs num < 2^46: num·V stays below 2^62.
func (s *Source) geometricSmall(num, den uint64) (int64, error) {
	for range stuck {
		u, err := s.below(num)
		if err != nil {
			return 0, err
		}
		keep, err := s.bernoulliExpPart(u, num)
		if err != nil {
			return 0, err
		}
		if !keep {
			continue
		}
		v, err := s.successes()
		if err != nil {
			return 0, err
		}
		return int64((u + num*v) / den), nil
	}
	return 0, errStuck
}

func (s *Source) geometricBig(num, den *big.Int) (int64, error) {
	for range stuck {
		u, err := s.belowBig(num)
		if err != nil {
			return 0, err
		}
		keep, err := s.bernoulliExpBig(u, num)
		if err != nil {
			return 0, err
		}
		if !keep {
			continue
		}
		v, err := s.successes()
		if err != nil {
			return 0, err
		}
		u.Add(u, new(big.Int).Mul(num, new(big.Int).SetUint64(v)))
		return u.Quo(u, den).Int64(), nil // t ≤ 2^40, v < 2^16
	}
	return 0, errStuck
}

// successes counts Bernoulli(exp(−1)) until the first failure.
func (s *Source) successes() (uint64, error) {
	for v := uint64(0); v < stuck; v++ {
		ok, err := s.bernoulliExpPart(1, 1)
		if err != nil {
			return 0, err
		}
		if !ok {
			return v, nil
		}
	}
	return 0, errStuck
}
