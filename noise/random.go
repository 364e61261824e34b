package noise

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/entropy"
)

// expandBlock is how many bytes one key of [Expand] gives.
const expandBlock = 32 << 10

// expander is a stream of AES-256-CTR keystreams, a fresh key for each block.
type expander struct {
	random io.Reader
	buf    []byte
	pos    int
	err    error
}

// Expand returns an endless reader of pseudorandom bytes: for every 32 KiB it reads 32 bytes from
// random, keys AES-256 in counter mode with them and forgets the key; bytes handed out are
// erased. nil means crypto/rand.Reader. It exists because a kernel's generator is several times
// slower than the samplers; its output is indistinguishable from random as far as AES is, no
// longer unconditionally. It is not safe for concurrent use. After an error of random it keeps
// failing with [ErrRandom].
func Expand(random io.Reader) io.Reader {
	return &expander{random: random}
}

func (e *expander) Read(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if e.pos == len(e.buf) {
		if err := e.refill(); err != nil {
			e.err = err
			return 0, err
		}
	}
	n := copy(p, e.buf[e.pos:])
	clear(e.buf[e.pos : e.pos+n])
	e.pos += n
	return n, nil
}

func (e *expander) refill() error {
	var key [32]byte
	defer clear(key[:])
	if err := entropy.Read("noise", e.random, key[:]); err != nil {
		return err
	}
	b, err := aes.NewCipher(key[:])
	if err != nil {
		return fmt.Errorf("noise: %w: %w", ErrRandom, err)
	}
	if e.buf == nil {
		e.buf = make([]byte, expandBlock)
	}
	// The buffer holds zeros, since what was read was cleared.
	var iv [aes.BlockSize]byte
	cipher.NewCTR(b, iv[:]).XORKeyStream(e.buf, e.buf)
	e.pos = 0
	return nil
}
