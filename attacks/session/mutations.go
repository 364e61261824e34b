package session

import (
	"encoding/binary"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// mutation makes messages of a genuine one, none of which is to be accepted.
type mutation func(message []byte, config *protocol.Config) [][]byte

// The sizes of entries: a party with its signature, and with a share.
const (
	certificateEntry = 4 + 64
	revealEntry      = 4 + 32
)

// lengthened has a byte too many.
func lengthened(message []byte, _ *protocol.Config) [][]byte {
	return [][]byte{append(slices.Clone(message), 0)}
}

// oversized is longer than any message of the session.
func oversized(message []byte, config *protocol.Config) [][]byte {
	long := make([]byte, config.MaxMessage()+1)
	copy(long, message)
	return [][]byte{long}
}

// cut ends too early: at every length up to 100 bytes, and at some more, such as
// one byte less than all. A list that is cut between its entries is a shorter list
// and not among them.
func cut(message []byte, _ *protocol.Config) [][]byte {
	entry := map[wire.Type]int{
		wire.TypeCertificate: certificateEntry,
		wire.TypeReveal:      revealEntry,
	}[wire.Type(message[1])]
	var mutants [][]byte
	for n := len(message) - 1; n >= 0; n-- {
		list := entry > 0 && n >= wire.HeaderSize && (n-wire.HeaderSize)%entry == 0
		if !list && (n < 100 || n > len(message)-4 || n%37 == 0) {
			mutants = append(mutants, message[:n])
		}
	}
	return mutants
}

// flip changes one bit.
func flip(message []byte, bit int) []byte {
	mutant := slices.Clone(message)
	mutant[bit/8] ^= 1 << (bit % 8)
	return mutant
}

// headers changes a bit of the header. The round of Begin and Invite and the
// sender of a party's message are not among them: a server may go ahead, and the
// transport says who a party is.
func headers(message []byte, _ *protocol.Config) [][]byte {
	const session, round, sender = 2, 34, 42 // where they are
	kind := wire.Type(message[1])
	fromServer := binary.BigEndian.Uint32(message[sender:]) == wire.ServerIndex
	ahead := kind == wire.TypeBegin || kind == wire.TypeInvite
	var mutants [][]byte
	for bit := range 8 * wire.HeaderSize {
		switch at := bit / 8; {
		case at >= round && at < sender && ahead, at >= sender && !fromServer:
		case at > session && at < round-1 && bit%5 != 0: // the middle of it, sometimes
		default:
			mutants = append(mutants, flip(message, bit))
		}
	}
	return mutants
}

// flippedKeys changes a bit of a signed key or its signature, from the end.
func flippedKeys(message []byte, _ *protocol.Config) [][]byte {
	return flips(message, wire.TypeAnnounce, wire.TypeKeys)
}

// flippedLists changes a bit of a signature on the survivors.
func flippedLists(message []byte, _ *protocol.Config) [][]byte {
	return flips(message, wire.TypeSigned, wire.TypeCertificate)
}

// flips changes a bit of the body, from the end, of messages of the given types.
func flips(message []byte, types ...wire.Type) [][]byte {
	if !slices.Contains(types, wire.Type(message[1])) {
		return nil
	}
	var mutants [][]byte
	for bit := 8*len(message) - 1; bit >= 8*wire.HeaderSize; bit -= 13 {
		mutants = append(mutants, flip(message, bit))
	}
	return mutants
}

// encodings writes the same content in another way, or something out of range:
// bits beyond the roster, bits that fill up a vector, lists in another order,
// scalars beyond the field, material for another round.
func encodings(message []byte, config *protocol.Config) [][]byte {
	const body = wire.HeaderSize
	parties := config.Roster.Len()
	switch wire.Type(message[1]) {
	case wire.TypeBegin:
		return [][]byte{flip(message, 8*(body+32)+parties)}
	case wire.TypeSurvivors:
		return [][]byte{flip(message, 8*body+parties)}
	case wire.TypeMasked:
		mutants := [][]byte{flip(message, 8*body+15)} // five coordinates of 3 bits
		if config.Recovery != nil {
			round := len(message) - wire.UploadSize(parties-1)
			mutants = append(mutants, flip(message, 8*(round+7)))
		}
		return mutants
	case wire.TypeUpload:
		return [][]byte{flip(message, 8*(body+7))}
	case wire.TypeCertificate:
		return swapped(message, certificateEntry)
	case wire.TypeReveal:
		large := slices.Clone(message)
		for i := range 32 {
			large[body+4+i] = 0xff
		}
		return append(swapped(message, revealEntry), large)
	}
	return nil
}

// swapped exchanges the first two entries of a list.
func swapped(message []byte, entry int) [][]byte {
	const body = wire.HeaderSize
	if len(message) < body+2*entry {
		return nil
	}
	first, second := message[body:body+entry], message[body+entry:body+2*entry]
	return [][]byte{slices.Concat(message[:body], second, first, message[body+2*entry:])}
}

// empties says that nobody is in a round, in its sum, or behind it.
func empties(message []byte, config *protocol.Config) [][]byte {
	const body = wire.HeaderSize
	nobody := make([]byte, (config.Roster.Len()+7)/8)
	switch wire.Type(message[1]) {
	case wire.TypeBegin:
		return [][]byte{append(slices.Clone(message[:body+32]), nobody...)}
	case wire.TypeSurvivors:
		return [][]byte{append(slices.Clone(message[:body]), nobody...)}
	case wire.TypeCertificate:
		return [][]byte{slices.Clone(message[:body])}
	}
	return nil
}
