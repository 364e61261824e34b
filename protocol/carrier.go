package protocol

import (
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/masking"
)

// Party has the methods of a party that a [Carrier] needs; a [Client] is one.
type Party interface {
	Announce() []byte
	Receive(message []byte) (answer []byte, err error)
	Due() (round uint64, due bool)
	Submit(broadcast []byte, values ...[]uint64) ([]byte, error)
}

// Summer has the methods of a server that a [Carrier] needs; a [Server] is one.
type Summer interface {
	Receive(from int, message []byte) error
	Keys() ([]Envelope, error)
	Members() ([]Envelope, error)
	Invite() ([]Envelope, error)
	Begin(broadcast []byte) ([]Envelope, error)
	Survivors() ([]Envelope, error)
	Certificate() ([]Envelope, error)
	Sum() ([][]uint64, error)
}

// Carrier carries the messages of one session between a server and parties of any kind that all run
// in this process, in the order of the protocol: [Carrier.SetUp], then [Carrier.Round] repeatedly,
// or the steps of a round one by one: [Carrier.Begin], [Carrier.Submit], [Carrier.Certify] and the
// server's Sum. In each step the server makes messages, parties take them, and the server takes
// their answers.
//
// Hooks name a party by its index in the roster, and the server by -1. A nil hook does nothing.
type Carrier[S Summer, P Party] struct {
	Config  *Config // of the session; Recovery and Layout are looked at
	Server  S
	Clients []P // in the order of the roster

	// Carry sees every message on its way and returns the bytes that arrive in its place, nil if
	// nothing arrives.
	Carry func(from, to int, message []byte) []byte
	// Refused is called with every message that its receiver refuses. If Refused returns an error,
	// the step ends; with nil the session goes on, as if the message were lost. Without Refused a
	// refusal ends the step, or counts as a loss if Carry is set.
	Refused func(from, to int, err error) error
	// Work is called before a party works, and the function that it returns is called afterwards: a
	// place to measure from.
	Work func(party int) (done func())
	// Each calls work for 0 to n − 1, possibly several at a time and in any order; it returns the
	// first error, or its own. The hooks must then allow calls for different parties at once. The
	// server works alone, when all calls have returned. Without Each parties work one after another,
	// and the server takes each one's answer before the next party works.
	Each func(n int, work func(i int) error) error
}

// SetUp has the parties announce their keys and the server answer, until the members of the
// session, the parties that answered, are fixed.
func (c *Carrier[S, P]) SetUp() error {
	for i, party := range c.Clients {
		if err := c.ToServer(i, party.Announce()); err != nil {
			return err
		}
	}
	if err := c.Step(c.Server.Keys); err != nil {
		return err
	}
	return c.Step(c.Server.Members)
}

// Round runs one round on the given inputs, one per party, each with one slice per segment; a nil
// input means that the party does not submit. Round returns the sum as [Server.Sum] does; with
// recovery, [Server.Included] tells whose inputs are in the sum, and parties that dropped out
// earlier are invited first. Inputs that do not fit the layout are refused before the round begins,
// with [ErrLength] or [ErrRange].
func (c *Carrier[S, P]) Round(broadcast []byte, inputs [][][]uint64) ([][]uint64, error) {
	// A round that ends halfway costs some parties the next one too, so what cannot
	// be submitted is found first.
	if err := c.checkInputs(inputs); err != nil {
		return nil, err
	}
	if err := c.Begin(broadcast); err != nil {
		return nil, err
	}
	given := func(party int) ([][]uint64, error) { return inputs[party], nil }
	if err := c.Submit(broadcast, given); err != nil {
		return nil, err
	}
	if err := c.Certify(); err != nil {
		return nil, err
	}
	defer c.work(-1)()
	return c.Server.Sum()
}

func (c *Carrier[S, P]) checkInputs(inputs [][][]uint64) error {
	if len(inputs) != len(c.Clients) {
		return fmt.Errorf("%w: inputs of %d parties, want %d", ErrLength, len(inputs), len(c.Clients))
	}
	room, err := masking.NewVector(c.Config.Layout)
	if err != nil {
		return err
	}
	defer room.Erase()
	for i, input := range inputs {
		if input == nil {
			continue
		}
		if err := room.Set(input...); err != nil {
			return fmt.Errorf("party %d: %w", i, err)
		}
	}
	return nil
}

// Begin invites parties without recovery material, if no round is open, and begins a round.
func (c *Carrier[S, P]) Begin(broadcast []byte) error {
	if c.Config.Recovery != nil {
		if err := c.Step(c.Server.Invite); err != nil && !errors.Is(err, ErrPhase) {
			return err
		}
	}
	return c.Step(func() ([]Envelope, error) { return c.Server.Begin(broadcast) })
}

// Submit calls the function input for every party of the open round and has the party submit the
// result; a party whose input is nil does not submit. Each says in which order input is called.
func (c *Carrier[S, P]) Submit(broadcast []byte, input func(party int) ([][]uint64, error)) error {
	return c.each(len(c.Clients), func(i int) (int, []byte, error) {
		if _, due := c.Clients[i].Due(); !due {
			return i, nil, nil
		}
		values, err := input(i)
		if err != nil || values == nil {
			return i, nil, err
		}
		defer c.work(i)()
		message, err := c.Clients[i].Submit(broadcast, values...)
		return i, message, err
	})
}

// Certify carries on from the submissions to the shares; without recovery it does nothing.
func (c *Carrier[S, P]) Certify() error {
	if c.Config.Recovery == nil {
		return nil
	}
	if err := c.Step(c.Server.Survivors); err != nil {
		return err
	}
	return c.Step(c.Server.Certificate)
}

// Step has the server make messages with next, one of its methods, delivers them, and
// delivers the answers.
func (c *Carrier[S, P]) Step(next func() ([]Envelope, error)) error {
	done := c.work(-1)
	envelopes, err := next()
	done()
	if err != nil {
		return err
	}
	return c.each(len(envelopes), func(i int) (int, []byte, error) {
		to := envelopes[i].To
		message := c.carry(-1, to, envelopes[i].Message)
		if message == nil {
			return to, nil, nil
		}
		done := c.work(to)
		answer, err := c.Clients[to].Receive(message)
		done()
		if err != nil {
			return to, nil, c.refused(-1, to, err)
		}
		return to, answer, nil
	})
}

// ToServer delivers a party's message.
func (c *Carrier[S, P]) ToServer(from int, message []byte) error {
	if message = c.carry(from, -1, message); message == nil {
		return nil
	}
	done := c.work(-1)
	err := c.Server.Receive(from, message)
	done()
	if err != nil {
		return c.refused(from, -1, err)
	}
	return nil
}

// each has n parties work and delivers what they answer, in order; work says which
// party it was.
func (c *Carrier[S, P]) each(n int, work func(i int) (party int, answer []byte, err error)) error {
	deliver := func(party int, answer []byte) error {
		if answer == nil {
			return nil
		}
		return c.ToServer(party, answer)
	}
	if c.Each == nil {
		for i := range n {
			party, answer, err := work(i)
			if err == nil {
				err = deliver(party, answer)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	parties, answers := make([]int, n), make([][]byte, n)
	err := c.Each(n, func(i int) (err error) {
		parties[i], answers[i], err = work(i)
		return err
	})
	if err != nil {
		return err
	}
	for i, answer := range answers {
		answers[i] = nil // which may be large
		if err := deliver(parties[i], answer); err != nil {
			return err
		}
	}
	return nil
}

func (c *Carrier[S, P]) carry(from, to int, message []byte) []byte {
	if c.Carry == nil {
		return message
	}
	return c.Carry(from, to, message)
}

func (c *Carrier[S, P]) refused(from, to int, err error) error {
	switch {
	case c.Refused != nil:
		return c.Refused(from, to, err)
	case c.Carry != nil:
		return nil
	case to < 0:
		return err
	}
	return fmt.Errorf("party %d: %w", to, err)
}

func (c *Carrier[S, P]) work(party int) func() {
	if c.Work == nil {
		return func() {}
	}
	return c.Work(party)
}
