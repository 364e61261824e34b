package specdecode

import (
	"encoding/binary"
)

// The types of messages (§9.2).
const (
	announce    = 1
	keys        = 2
	begin       = 3
	masked      = 4
	upload      = 5
	invite      = 6
	survivors   = 7
	signature   = 8
	certificate = 9
	reveal      = 10
	encapsulate = 11
	members     = 12
)

var names = map[byte]string{announce: "Announce", keys: "Keys", begin: "Begin", masked: "Masked",
	upload: "Upload", invite: "Invite",
	survivors: "Survivors", signature: "Signed", certificate: "Certificate", reveal: "Reveal",
	encapsulate: "Encapsulate", members: "Members"}

// header holds the fields with which every message begins (§9.1).
type header struct {
	kind    byte
	session []byte
	round   uint64
	sender  uint32
}

// reader takes a body apart; after a read beyond its end, broken is true and
// stays so.
type reader struct {
	rest   []byte
	broken bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || len(r.rest) < n {
		r.broken = true
		r.rest = nil
		return make([]byte, max(n, 0))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) list(count, size int) [][]byte {
	out := make([][]byte, count)
	for i := range out {
		out[i] = r.take(size)
	}
	return out
}

// end reports an error if the body was too short or too long.
func (r *reader) end() error {
	if r.broken || len(r.rest) != 0 {
		return fail("a body has the wrong length")
	}
	return nil
}

func parseHeader(message []byte) (header, *reader, error) {
	r := &reader{rest: message}
	version := r.take(1)[0]
	h := header{kind: r.take(1)[0], session: r.take(32)}
	h.round = binary.BigEndian.Uint64(r.take(8))
	h.sender = binary.BigEndian.Uint32(r.take(4))
	if r.broken || version != 1 {
		return header{}, nil, fail("a header")
	}
	return h, r, nil
}

// set is a set of parties (§9.3).
type set []byte

func (r *reader) set(n int) (set, error) {
	s := set(r.take((n + 7) / 8))
	for i := n; i < 8*len(s); i++ {
		if s.has(i) {
			return nil, fail("a set has a party beyond the roster")
		}
	}
	return s, nil
}

func (s set) has(i int) bool { return s[i/8]>>(i%8)&1 == 1 }

func (s set) of(parties []int) []int {
	var out []int
	for _, i := range parties {
		if s.has(i) {
			out = append(out, i)
		}
	}
	return out
}

func (s set) all() []int {
	var out []int
	for i := range 8 * len(s) {
		if s.has(i) {
			out = append(out, i)
		}
	}
	return out
}

// material is the body of Upload (§9.8).
type material struct {
	holders    set // that it is for
	round      uint64
	commitment []byte
	blob       []byte   // with the nonce in front
	shares     [][]byte // the same, by neighbour
}

func (r *reader) material(h int, holders set) *material {
	m := &material{holders: holders, round: binary.BigEndian.Uint64(r.take(8)), commitment: r.take(32)}
	nonce := r.take(24)
	m.blob = join(nonce, r.take(32*h+16))
	m.shares = r.sealed(nonce, h)
	return m
}

// sealed reads shares that were sealed with one nonce, and puts it in front of
// each (§5.3).
func (r *reader) sealed(nonce []byte, count int) [][]byte {
	shares := r.list(count, 48)
	for i := range shares {
		shares[i] = join(nonce, shares[i])
	}
	return shares
}

func join(a, b []byte) []byte { return append(append([]byte{}, a...), b...) }

// entries reads a list of parties with a value each, ascending (§9.11, §9.12).
func (r *reader) entries(n, size int) (parties []int, values [][]byte, err error) {
	last := -1
	for len(r.rest) > 0 {
		party := int(binary.BigEndian.Uint32(r.take(4)))
		if party <= last || party >= n {
			return nil, nil, fail("a list of parties is not ascending")
		}
		last = party
		parties = append(parties, party)
		values = append(values, r.take(size))
	}
	return parties, values, r.end()
}
