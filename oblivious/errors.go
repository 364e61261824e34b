package oblivious

import (
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/internal/entropy"
)

// Errors. A refused message changes nothing, except with [ErrCheck].
var (
	// ErrConfig: the configuration, or a parameter of a function, breaks a rule, which the error
	// names.
	ErrConfig = errors.New("oblivious: unusable configuration")
	// ErrEncoding: the message is not in its canonical form, or its length is invalid.
	ErrEncoding = errors.New("oblivious: the message is not in its canonical form")
	// ErrSender: the message is not from a peer to this party.
	ErrSender = errors.New("oblivious: the message is not from a peer to this party")
	// ErrOpen: the message was changed, was sealed under another secret, or the two
	// sides disagree on the configuration.
	ErrOpen = errors.New(
		"oblivious: the sealed message does not open; compare the two sides' Config and pair secrets")
	// ErrRound: the message or call is of another round than the open one. Deliver messages of a
	// round after Begin; a round number is used once.
	ErrRound = errors.New("oblivious: not of the round that is open")
	// ErrDuplicate: the peer has already sent this message.
	ErrDuplicate = errors.New("oblivious: the peer has already sent this message")
	// ErrPhase: the call is not due in the current state.
	ErrPhase = errors.New("oblivious: not due in this state of the session")
	// ErrMissing: messages of peers have not arrived; [Transfer.Missing] names them. The option
	// needs every party of the round: end the round and begin another.
	ErrMissing = errors.New("oblivious: messages of peers are missing")
	// ErrCheck: a peer's choices are inconsistent, as no honest party's are: it tries to learn both
	// terms. The session is over and its secrets are erased; start a new one without that peer.
	ErrCheck = errors.New("oblivious: a peer's choices are inconsistent; the session is over")
	// ErrRandom: the source of randomness failed.
	ErrRandom = entropy.Err
	// ErrLength: the length of a vector is not Config.Length, or a value is outside the ring.
	ErrLength = errors.New("oblivious: a vector does not fit the configuration")
	// ErrSignature: a message of a [Joint] does not carry its sender's signature over what
	// this party has seen before. It was changed or made up on its way, or the sender was
	// shown other messages: compare them, and begin another session.
	ErrSignature = errors.New("oblivious: not signed by the sender over what came before")
	// ErrProof: a party of a [Joint] signed a message with a proof that does not hold; a
	// [PeerError] names it. Keep the message, which convinces others, and begin another
	// session without that party.
	ErrProof = errors.New("oblivious: a proof does not hold")
	// ErrNoBound: no finite ε is proved for this use; the error says why.
	ErrNoBound = errors.New("oblivious: no privacy bound")
)

// PeerError names the peer with which something failed. It unwraps to the reason.
type PeerError struct {
	Peer int // index of the party
	Err  error
}

func (e *PeerError) Error() string { return fmt.Sprintf("%v (party %d)", e.Err, e.Peer) }

// Unwrap returns the reason.
func (e *PeerError) Unwrap() error { return e.Err }

func configError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
}

func noBound(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNoBound}, args...)...)
}
