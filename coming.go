package hushsum

import (
	"fmt"

	"github.com/hushsum/hushsum/transport"
)

// coming is a body that comes in parts.
type coming struct {
	kind      byte // 0: none
	broadcast *transport.BroadcastReader
	message   []byte
}

// part takes a part of a body.
func (p *participant) part(in []byte) error {
	if len(in) == 0 || p.coming.kind != 0 && p.coming.kind != in[0] {
		return fmt.Errorf("%w: parts of several bodies", ErrFrame)
	}
	kind, body := in[0], in[1:]
	p.coming.kind = kind
	switch kind {
	case transport.KindMessage:
		return p.extend(body)
	case transport.KindBroadcast, transport.KindEnd:
		if p.coming.broadcast == nil {
			p.broadcast, p.arrived = nil, nil // there is room for one
			collect(p.Job)
			room := transport.NewWeights(p.Job.ModelLength(), p.Work32 != nil)
			p.coming.broadcast = transport.NewBroadcastReader(room)
		}
		_, err := p.coming.broadcast.Write(body)
		return err
	}
	return fmt.Errorf("%w: parts of kind %d", ErrFrame, kind)
}

// extend takes a part of a message.
func (p *participant) extend(body []byte) error {
	if len(p.coming.message)+len(body) > p.longest {
		return fmt.Errorf("%w: a message that is too long", ErrFrame)
	}
	p.coming.message = append(p.coming.message, body...)
	return nil
}

// rest returns a message, of which the last bytes have come.
func (p *participant) rest(body []byte) ([]byte, error) {
	if p.coming.kind == 0 {
		return body, nil
	}
	err := p.part(append([]byte{transport.KindMessage}, body...))
	message := p.coming.message
	p.coming = coming{}
	return message, err
}

// restOfBroadcast returns a broadcast, of which the last bytes have come.
func (p *participant) restOfBroadcast(kind byte, body []byte) (*transport.Broadcast, error) {
	if err := p.part(append([]byte{kind}, body...)); err != nil {
		return nil, err
	}
	r := p.coming.broadcast
	p.coming = coming{}
	return r.End()
}
