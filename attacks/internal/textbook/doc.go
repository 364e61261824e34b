// Package textbook is a second implementation of the private sum, written from
// SPEC.md over the building blocks that the protocol uses too (packages
// keyexchange, masking, shamir and the wire format), and made to be weakened:
// each [Defence] can be left out, to see what an attack gains then.
//
// With no defence left out, its clients and its server work with those of package
// protocol in one session, which checks the specification; everything that a
// party holds is in plain sight, so that colluders are played by it.
//
// It knows classical keys and the complete graph with all members in every round
// only, saves no state, erases nothing that Go would not collect, and is not for use outside
// attacks and their tests. Section numbers are those of SPEC.md.
package textbook

// Defence names things that stop attacks. A set of them says what a client or
// server lacks; the zero value lacks nothing.
type Defence uint

// Defences of clients, with the section of SPEC.md that asks for them.
const (
	// KeySignatures: others' keys are signed (§4, step 3).
	KeySignatures Defence = 1 << iota
	// OwnKey: the list of keys has the party's own (§4, step 3).
	OwnKey
	// ValidConfig: the configuration is within its ranges (§3).
	ValidConfig
	// Participants: a round has the parties that it needs (§11.1, Begin).
	Participants
	// ParticipantsAgreed: the participants are in the context (§5.2).
	ParticipantsAgreed
	// BroadcastAgreed: the broadcast's digest is in the context (§5.2).
	BroadcastAgreed
	// RoundAgreed: the round is in the context (§5.2).
	RoundAgreed
	// BroadcastChecked: inputs are made from the broadcast of Begin (§11.1, submit).
	BroadcastChecked
	// Lists: a list of survivors has this party, none that is not in the round,
	// and enough (§11.1, Survivors).
	Lists
	// Quorum: a certificate has enough signatures (§11.1, Certificate).
	Quorum
	// MajorityQuorum: enough is q, not t (§3).
	MajorityQuorum
	// Certificates: the signatures of a certificate verify (§11.1, Certificate).
	Certificates
	// SelfMask: a submission has a mask that no other party knows (§8.4).
	SelfMask
	// FreshKey: a session has an X25519 key of its own (§4, step 1).
	FreshKey
	// Reseeded: a round has pair secrets of its own (§5.2).
	Reseeded
	// Ratchet: chains move on, so that earlier keys are gone (§5.6).
	Ratchet
	// KeyErased: the X25519 key is erased after set-up (§4, step 4).
	KeyErased
	// RoundErased: a round's keys and shares are erased at Reveal (§5.6).
	RoundErased
	// SingleUse: a round is begun once, and none before it (§11.1, Begin).
	SingleUse
	// SkipLimit: a round is not too far ahead (§11.1, Begin).
	SkipLimit
	// Ordered: a message of a round is taken when it is due (§11.1).
	Ordered
	// Current: a message is of the present session and round (§11).
	Current
	// Strict: a message has its length and one encoding (§9).
	Strict
	// Members: a session is among as many parties as it must be (§4, step 2).
	Members
	// Once: a party's message is taken once (§11.2). For servers.
	Once
	// Sender: a message belongs to the party that it came from (§11.2). For servers.
	Sender
	// Commitments: shares give the secret that its owner committed to (§10.3). For
	// servers.
	Commitments
	// Correction: wrong shares are corrected (§10.3). For servers.
	Correction
)

// has reports whether any of the given defences is in the set.
func (d Defence) has(wanted Defence) bool { return d&wanted != 0 }
