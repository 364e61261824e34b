package protocol

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// Errors of messages. A refused message leaves no trace: the state stays as it was before.
var (
	// ErrTruncated: the message ends too early. Check the transport's framing.
	ErrTruncated = wire.ErrTruncated
	// ErrTrailing: the message has bytes after its end.
	ErrTrailing = wire.ErrTrailing
	// ErrOversized: the message is longer than [Config.MaxMessage].
	ErrOversized = wire.ErrOversized
	// ErrVersion: the message belongs to another version of the protocol.
	ErrVersion = wire.ErrVersion
	// ErrType: the message's type is unknown, or not one that this side receives.
	ErrType = wire.ErrType
	// ErrEncoding: the message is not in its canonical form.
	ErrEncoding = wire.ErrEncoding
	// ErrSession: the message belongs to another session, or the two sides
	// disagree on the configuration or the roster.
	// Compare the two sides' Config and Roster.Digest.
	ErrSession = errors.New("protocol: the message belongs to another session or configuration")
	// ErrSender: the message names a sender other than the party it came from, or a party that may
	// not send it.
	ErrSender = errors.New("protocol: the message does not name its sender")
	// ErrDuplicate: the party has already sent this, or something else instead. A party that lost its
	// state during set-up cannot come back with another key: restore it with [LoadClient], or wait for
	// the next session.
	ErrDuplicate = errors.New("protocol: the party has already sent this message")
	// ErrSignature: a signature does not verify under the roster's identity.
	ErrSignature = keyexchange.ErrSignature
	// ErrPublicKey: a party's key is not a canonical X25519 key of full order.
	ErrPublicKey = keyexchange.ErrPublicKey
	// ErrEncapsulationKey: a party's ML-KEM key is invalid.
	ErrEncapsulationKey = keyexchange.ErrEncapsulationKey
	// ErrMembers: the list of members is inconsistent: it leaves this party out, or includes a party
	// that did not announce a key. From the server's methods it means that the sender is not in the
	// session. Wait for the next session.
	ErrMembers = errors.New(
		"protocol: the party is not in the session, or the session has a party that did not announce")
	// ErrOwnKey: the server's list has a key for this party other than the key that the party
	// announced. Do not take part.
	ErrOwnKey = errors.New(
		"protocol: the list of keys lacks the key that this party announced")
	// ErrReplay: the round was begun before, or recovery material for the round was made for other
	// holders. Rounds are used once.
	ErrReplay = errors.New("protocol: the round has been used already")
	// ErrStale: the round, or the step of set-up, is over. Round numbers only go up.
	ErrStale = errors.New("protocol: the round is older than the current one")
	// ErrSkip: the round is further ahead than [Config.MaxSkip] allows.
	ErrSkip = errors.New("protocol: the round is too far ahead")
	// ErrParticipants: the round leaves out a party that must take part.
	ErrParticipants = errors.New("protocol: the round lacks participants that it needs")
	// ErrTooFew: fewer parties than the session's thresholds allow. Nobody unmasks anything; wait
	// for more parties, or set up the session with other numbers.
	ErrTooFew = errors.New("protocol: too few parties")
	// ErrSurvivors: the list of survivors leaves this party out, or includes a party that did not
	// take part.
	ErrSurvivors = errors.New("protocol: the list of survivors is not one that this party can sign")
	// ErrCertificate: the signatures on the survivors are too few, or not by parties that may sign.
	ErrCertificate = errors.New("protocol: the survivors are not certified")
	// ErrMaterial: a party's recovery material or self mask does not rebuild from the shares that
	// were revealed. The round is lost. [Server.Excluded] tells, as far as the server knows, whether
	// that party or holders of its shares are at fault.
	ErrMaterial = errors.New("protocol: the secrets of a party cannot be rebuilt")
	// ErrPhase: the call or message is not due in the current state.
	ErrPhase = errors.New("protocol: not due in this state of the session")
)

// Errors of inputs and configuration.
var (
	// ErrConfig: the configuration breaks a rule, which the error names.
	ErrConfig = errors.New("protocol: unusable configuration")
	// ErrIdentity: the signer's key is not in the roster.
	ErrIdentity = errors.New("protocol: the identity is not in the roster")
	// ErrBroadcast: the broadcast given to this party is not the broadcast with which the round
	// began. Do not submit an input made from it.
	ErrBroadcast = errors.New("protocol: the broadcast differs from the one that the round began with")
	// ErrLength: an input has the wrong number of segments or values.
	ErrLength = masking.ErrLength
	// ErrRange: a value of an input is 2^b or more.
	ErrRange = masking.ErrRange
	// ErrRandom: the source of randomness failed.
	ErrRandom = entropy.Err
	// ErrState: a saved state cannot be opened, belongs to another configuration or party, or was not
	// made by Save.
	ErrState = errors.New("protocol: the saved state does not match")
	// ErrMissing: not every party has sent what the step needs. See
	// [MissingError].
	ErrMissing = errors.New("protocol: messages are missing")
)

// PartyError says whose message was refused, and why. It unwraps to the reason.
type PartyError struct {
	Party int    // roster index
	Name  string // roster name
	Err   error
}

func (e *PartyError) Error() string {
	return fmt.Sprintf("%v (party %d, %s)", e.Err, e.Party, e.Name)
}

// Unwrap returns the reason.
func (e *PartyError) Unwrap() error { return e.Err }

// MissingError names the parties whose messages did not arrive. It is [ErrMissing], and also
// [ErrTooFew] if fewer than all parties would have been enough.
type MissingError struct {
	Round   uint64 // 0 during set-up
	Parties []int  // roster indices, ascending
	Names   []string

	// If fewer than all are enough: what the parties should have done, how many did, and how many are
	// needed.
	Did        string
	Have, Need int
}

func (e *MissingError) Error() string {
	const most = 8
	names := e.Names
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	who := strings.Join(names, ", ") + more
	switch {
	case e.Need > 0 && e.Round == 0:
		return fmt.Sprintf("%v: %d parties %s, a session needs %d; missing: %s", ErrTooFew, e.Have, e.Did,
			e.Need, who)
	case e.Need > 0:
		return fmt.Sprintf("%v: %d parties %s round %d, %d are needed; missing: %s", ErrTooFew, e.Have,
			e.Did, e.Round, e.Need, who)
	case e.Round == 0:
		return fmt.Sprintf("%v: set-up waits for %s", ErrMissing, who)
	}
	return fmt.Sprintf("%v: round %d is lost without %s", ErrMissing, e.Round, who)
}

// Is makes errors.Is(err, ErrMissing) true, and errors.Is(err, ErrTooFew) if fewer than all parties
// would have been enough.
func (e *MissingError) Is(target error) bool {
	return target == ErrMissing || target == ErrTooFew && e.Need > 0
}

// partyError wraps err with the party's name.
func partyError(roster *keyexchange.Roster, party int, err error) error {
	return &PartyError{Party: party, Name: roster.Name(party), Err: err}
}

// tooFewError says that have parties did what the round needs of need, and names
// those who did not.
func tooFewError(
	roster *keyexchange.Roster, round uint64, did string, have, need int, missing []int,
) error {
	e := &MissingError{Round: round, Parties: missing, Did: did, Have: have, Need: need}
	for _, i := range missing {
		e.Names = append(e.Names, roster.Name(i))
	}
	return e
}

// missingError names parties, or is nil if there are none.
func missingError(roster *keyexchange.Roster, round uint64, parties []int) error {
	if len(parties) == 0 {
		return nil
	}
	e := &MissingError{Round: round, Parties: parties}
	for _, i := range parties {
		e.Names = append(e.Names, roster.Name(i))
	}
	return e
}
