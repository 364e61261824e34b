package protocol

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// Domain separators of hashes, with the version of the scheme.
const (
	labelConfig    = "hushsum/1 config"
	labelSession   = "hushsum/1 session"
	labelBroadcast = "hushsum/1 broadcast"
	labelContext   = "hushsum/1 context"
)

// DefaultMaxSkip is the value of a zero [Config.MaxSkip].
const DefaultMaxSkip = 1000

// Config is what all parties and the server agree on before a session. It is
// part of what every key is signed with: sides that disagree refuse each other
// with [ErrSession].
type Config struct {
	// Label names the session, at most 255 bytes, so that signatures made for
	// one purpose serve no other. Give every deployment its own.
	Label string
	// Roster lists the parties.
	Roster *keyexchange.Roster
	// Layout gives the segments of every submission and their rings.
	Layout masking.Layout
	// MaxSkip is how many rounds a party may have missed when it joins the next,
	// which bounds the work that a round number can ask of it. Zero means
	// DefaultMaxSkip.
	MaxSkip uint64
}

// Validate returns [ErrConfig], with the rule that is broken, if the
// configuration cannot keep the package's promises.
func (c *Config) Validate() error {
	switch {
	case len(c.Label) > 255:
		return fmt.Errorf("%w: the label has %d bytes, at most 255 are allowed", ErrConfig, len(c.Label))
	case c.Roster == nil:
		return fmt.Errorf("%w: there is no roster", ErrConfig)
	}
	if err := c.Layout.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// MaxMessage returns the length of the longest message of the session, in
// bytes. A transport should read no more than that.
func (c *Config) MaxMessage() int {
	n := c.Roster.Len()
	return wire.HeaderSize + max(n*wire.AnnounceSize, 32+(n+7)/8, c.Layout.PackedSize())
}

// clone returns a valid configuration that the caller cannot change any more.
func (c *Config) clone() (*Config, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	own := *c
	own.Layout = slices.Clone(c.Layout)
	return &own, nil
}

func (c *Config) maxSkip() uint64 {
	if c.MaxSkip == 0 {
		return DefaultMaxSkip
	}
	return c.MaxSkip
}

// digest is what the parties sign their keys with.
func (c *Config) digest() [32]byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddBytes([]byte(labelConfig))
	b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(c.Label)) })
	roster := c.Roster.Digest()
	b.AddBytes(roster[:])
	b.AddUint64(c.maxSkip())
	b.AddUint32(uint32(len(c.Layout)))
	for _, s := range c.Layout {
		b.AddUint32(uint32(s.Length))
		b.AddUint8(uint8(s.Bits))
	}
	return sha256.Sum256(b.BytesOrPanic())
}

// sessionID names the session: a hash over the configuration, the roster in it,
// and the body of the Keys message.
func sessionID(config [32]byte, keys []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(labelSession))
	h.Write(config[:])
	h.Write(keys)
	return [32]byte(h.Sum(nil))
}

// broadcastDigest is what Begin says of the broadcast.
func broadcastDigest(broadcast []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(labelBroadcast))
	h.Write(broadcast)
	return [32]byte(h.Sum(nil))
}

// roundContext binds masks to all that the participants of a round must agree on.
func roundContext(session [32]byte, round uint64, begin *wire.Begin) [32]byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddBytes([]byte(labelContext))
	b.AddBytes(session[:])
	b.AddUint64(round)
	b.AddBytes(begin.Append(nil))
	return sha256.Sum256(b.BytesOrPanic())
}
