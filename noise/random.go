package noise

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
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

// Expand returns an endless reader of pseudorandom bytes: for every 32 KiB it
// reads 32 bytes from random, keys AES-256 in counter mode with them and forgets the
// key; bytes handed out are erased. nil means crypto/rand.Reader. It exists
// because a kernel's generator is several times slower than the samplers; what
// comes out is indistinguishable from random as far as AES is, no longer
// unconditionally. It is not safe for concurrent use. After an error of random it
// keeps failing with [ErrRandom].
func Expand(random io.Reader) io.Reader {
	if random == nil {
		random = rand.Reader
	}
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
	if err := readFull(e.random, key[:]); err != nil {
		return err
	}
	b, err := aes.NewCipher(key[:])
	if err != nil {
		return fmt.Errorf("%w: %v", ErrRandom, err)
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

var errNoProgress = errors.New("reader returns no data")

// readFull fills p or fails with ErrRandom, clearing p; unlike io.ReadFull
// it gives up on a reader that keeps returning nothing.
func readFull(random io.Reader, p []byte) error {
	idle := 0
	for n := 0; n < len(p); {
		m, err := random.Read(p[n:])
		if m < 0 || m > len(p)-n {
			m, err = 0, errors.New("reader returned an impossible count")
		}
		if n += m; n == len(p) {
			break
		}
		if idle++; m > 0 {
			idle = 0
		}
		if err == nil && idle >= 100 {
			err = errNoProgress
		}
		if err != nil {
			clear(p)
			if errors.Is(err, ErrRandom) {
				return err
			}
			return fmt.Errorf("%w: %w", ErrRandom, err)
		}
	}
	return nil
}
