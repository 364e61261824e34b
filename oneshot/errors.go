package oneshot

import (
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
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
	// ErrContext: the message belongs to another round, or the sides disagree on the configuration,
	// the broadcast or the members' keys. Compare both sides' Config.
	ErrContext = errors.New("oneshot: the message belongs to another configuration or context")
	// ErrSender: the sender is not in the roster or the committee, or may not send this.
	ErrSender = errors.New("oneshot: the message has an unknown sender")
	// ErrDuplicate: the sender has already sent this, or something else instead; or a batch contains a
	// party twice.
	ErrDuplicate = errors.New("oneshot: the sender has already sent this message")
	// ErrSignature: a signature does not verify under the roster's identity.
	ErrSignature = keyexchange.ErrSignature
	// ErrKey: a member's key cannot be sealed to.
	ErrKey = errors.New("oneshot: a member's key cannot be used; leave the member out")
	// ErrOwnKey: the list of keys lacks the key that this member made for the round.
	ErrOwnKey = errors.New("oneshot: the list of keys lacks this member's own")
	// ErrReplay: this round number, or a higher one, was used before.
	ErrReplay = errors.New("oneshot: the round number has been used; numbers only go up")
	// ErrTooFew: fewer members or parties than the configuration requires.
	ErrTooFew = errors.New("oneshot: too few members or parties")
	// ErrStatement: the server closes the round with a list of parties other than the list that this
	// member has added up. Do not answer.
	ErrStatement = errors.New(
		"oneshot: the round is closed over parties other than those that this member has seen")
	// ErrCertificate: the signatures on the list of parties are too few, or on a list other than this
	// member's.
	ErrCertificate = errors.New("oneshot: the list of parties is not certified")
	// ErrLost: this member lacks a valid part of some party in the sum, and cannot answer in this
	// round. It may take part in the next round.
	ErrLost = errors.New(
		"oneshot: this member lacks a part of a party in the sum and sits the round out")
	// ErrExcluded: the member has disputed too often and is ignored in this round.
	ErrExcluded = errors.New("oneshot: the member has disputed too much and is out of the round")
	// ErrProof: the party's proof that its values are within [Terms.Norm] does not hold, or shares
	// that the party dealt do not fit the proof. The error is a [PartyError] with [Evidence], or a
	// [MemberError] where members deal noise; the vector is out of the round.
	ErrProof = errors.New("oneshot: the proof of a bounded norm does not hold")
	// ErrAudit: the noise that a member deals is not the candidate that the coin has drawn, or one of
	// the other candidates is not what its seed gives: the member chose its noise. The error is a
	// [MemberError] with [Evidence]; the noise is out of the round.
	ErrAudit = errors.New("oneshot: the member has not drawn its noise")
	// ErrComplaint: the member's complaint does not convict the party that it accuses. The member is
	// out of the round.
	ErrComplaint = errors.New("oneshot: the complaint does not convict the party")
	// ErrEvidence: the evidence does not convict: nothing in it shows that the party cheated.
	ErrEvidence = errors.New("oneshot: the evidence does not convict")
	// ErrFull: as many submissions wait as the server takes. Call [Server.Batch] and
	// [Server.Settle], and have the party send again.
	ErrFull = errors.New("oneshot: too many submissions wait; send this one again later")
	// ErrPhase: the call or message is not due in the current state.
	ErrPhase = errors.New("oneshot: not due in this state of the round")
)

// Errors of inputs, configuration and sums.
var (
	// ErrConfig: the configuration breaks a rule, which the error names.
	ErrConfig = errors.New("oneshot: unusable configuration")
	// ErrIdentity: the signer's key is not in the roster or the committee.
	ErrIdentity = errors.New("oneshot: the identity is not in the list")
	// ErrBroadcast: the broadcast given to this party is not the one with which the round was opened.
	// Do not submit an input made from it.
	ErrBroadcast = errors.New(
		"oneshot: the broadcast differs from the one that the round was opened with")
	// ErrStale: the input was made from a broadcast that is too old for the round, or that did not
	// exist yet. Make an input from the present broadcast.
	ErrStale = errors.New("oneshot: the input was not made from a broadcast that the round accepts")
	// ErrLength: an input has the wrong number of values.
	ErrLength = errors.New("oneshot: the input has the wrong length")
	// ErrRange: a value does not fit into [Terms.Bits] bits.
	ErrRange = errors.New("oneshot: a value does not fit the configured bits")
	// ErrNorm: the values are longer than [Terms.Norm]. Clip or scale them.
	ErrNorm = errors.New("oneshot: the norm of the values is beyond the bound")
	// ErrMissed: the noise happened to be so long that there is no proof, which occurs once in 2^57
	// times. The round's number is used: a second try would reveal something of the values. Take
	// part in the next round.
	ErrMissed = errors.New("oneshot: no proof for this noise; miss the round, do not try again")
	// ErrExactNorm: a bound was set for exact sums. The proof covers noise too: set Noise, or leave
	// Norm out.
	ErrExactNorm = errors.New("oneshot: exact sums have no proof of a norm; set Noise, or no Norm")
	// ErrRoles: a member is a party too, and fewer parties than members may be in league. Raise
	// Colluders.
	ErrRoles = errors.New("oneshot: a member is a party too")
	// ErrFreeWeight: the roster has weights, and nothing keeps a party to its own. Set [Terms.Norm],
	// or use a roster without weights.
	ErrFreeWeight = errors.New("oneshot: weights of a roster need proofs of norms; set Norm")
	// ErrLong: values and noise within [Terms.Norm] are too long for a proof, or their sum for the
	// largest modulus. It comes with [ErrConfig].
	ErrLong = errors.New("oneshot: vectors too long for a bound")
	// ErrQuiet: a share of the noise is too small to hide a key. It comes with [ErrConfig].
	ErrQuiet = errors.New("oneshot: noise too small to hide keys")
	// ErrParts: the members' parts do not determine the key: more than Faults of them are invalid, or
	// the parts that a party dealt belong to no key. The round is lost.
	ErrParts = errors.New("oneshot: the members' parts are inconsistent; the round is lost")
	// ErrNoise: the coordinates that carry only noise are too large: a party's submission does not
	// fit the key that it dealt. The round is lost, and nothing says which party it was.
	ErrNoise = errors.New("oneshot: a party's submission does not match its key; the round is lost")
	// ErrCover: a covered submission does not open to coefficients, or its key was
	// not dealt. The error is a [PartyError]. The round is lost.
	ErrCover = errors.New("oneshot: a covered submission cannot be opened; the round is lost")
	// ErrRandom: the source of randomness failed.
	ErrRandom = entropy.Err
	// ErrState: a saved state cannot be opened, or belongs to another configuration or owner.
	ErrState = errors.New("oneshot: the saved state does not match")
)

// A PartyError says which party's message was refused, and why. It unwraps to the
// reason.
type PartyError struct {
	Party int    // roster index
	Name  string // roster name
	Err   error
	// Evidence, if it is not nil, proves to anybody that the party cheated.
	Evidence *Evidence
}

func (e *PartyError) Error() string {
	return fmt.Sprintf("%v (party %d, %s)", e.Err, e.Party, e.Name)
}

// Unwrap returns the reason.
func (e *PartyError) Unwrap() error { return e.Err }

// A MemberError says which member's message was refused, and why. It unwraps to the reason.
type MemberError struct {
	Member int    // committee index
	Name   string // committee name
	Err    error
	// Evidence, if it is not nil, proves to anybody that the member cheated in noise that it dealt.
	Evidence *Evidence
}

func (e *MemberError) Error() string {
	return fmt.Sprintf("%v (member %d, %s)", e.Err, e.Member, e.Name)
}

// Unwrap returns the reason.
func (e *MemberError) Unwrap() error { return e.Err }
