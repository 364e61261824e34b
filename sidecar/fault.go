package sidecar

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/fault"
	declared "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/query"
)

// ErrRequest: a call does not exist, or is not of its form.
var ErrRequest = errors.New("sidecar: unknown call")

// ErrObject: a call names an object that the sidecar does not have.
var ErrObject = errors.New("sidecar: there is no such object")

var (
	errInternal = errors.New("sidecar: a fault of the library")
	errStopped  = errors.New("sidecar: the job was stopped")
)

// faultJSON is an error in the form that callers receive.
type faultJSON struct {
	Kind    string `json:"kind"` // for programs, such as "too-few"; see kinds
	Text    string `json:"text"` // all of it in one sentence
	Reason  string `json:"reason"`
	Advice  string `json:"advice"`            // what to do; empty: unknown
	Field   string `json:"field,omitempty"`   // of a job or of a call
	Party   *int   `json:"party,omitempty"`   // roster index
	Name    string `json:"name,omitempty"`    // of that party in the roster
	Parties []int  `json:"parties,omitempty"` // those missing, by roster index

	Mistakes []*declared.ConfigError `json:"mistakes,omitempty"` // all mistakes in a job
}

// kinds names the errors that callers distinguish, the more specific ones first, with advice for
// those that carry none themselves.
var kinds = []struct {
	kind   string
	err    error
	advice string
}{
	{"request", ErrRequest, ""},
	{"object", ErrObject, ""},
	{"frame", ErrFrame, "start a new sidecar"},
	{"stopped", errStopped, ""},
	{"internal", errInternal, "report it; continue with a new sidecar and saved states"},
	{"absent", hushsum.ErrAbsent, "see what its rounds reported, and correct what training returns"},
	{"stalled", hushsum.ErrStalled, "see what its lost rounds reported"},
	{"paused", hushsum.ErrPaused, "mend what its lost rounds reported; run it again with its state"},
	{"job", hushsum.ErrJob, "agree on one job"},
	{"refused", hushsum.ErrRefused, "ask the operator of the coordinator"},
	{"peer", hushsum.ErrPeer,
		"compare the coordinator's key and the roster over a channel of your own"},
	{"old-state", hushsum.ErrOldState, "restore it, or give least_number and spent if it is lost"},
	{"locked", hushsum.ErrLocked, "stop the other one, or give each its own state"},
	{"store", hushsum.ErrStore, "give the job and the key that it was saved with; " +
		"another job needs its own state"},
	{"policy", consent.ErrPolicy, ""},
	{"book", consent.ErrBook, ""},
	{"number", hushsum.ErrNumber, "use a number that no session has had"},
	{"spent", drive.ErrSpent, "stop here: agree on another job for the rest"},
	{"repeated", drive.ErrRepeated,
		"continue, if the round was answered; do not answer a server that has forgotten it"},
	{"round", drive.ErrRound, "number the rounds of the job from 1 to the last"},
	{"budget", accounting.ErrBudget, "stop here, or leave out the client whose budget is spent"},
	{"statement", accounting.ErrStatement, "compare what is about the same"},
	{"unreachable", accounting.ErrUnreachable,
		"allow a larger epsilon or delta, or more noise, fewer rounds or a smaller rate"},
	{"unsupported", accounting.ErrUnsupported, "leave out replace_one"},
	{"too-large", accounting.ErrTooLarge, "count in larger units, or use dimension=2"},
	{"ledger", accounting.ErrLedger, "load what Ledger.save returned"},
	{"counts", audit.ErrCounts, ""},
	{"rows", query.ErrRows, ""},
	{"config", query.ErrConfig, ""},
	{"bits", aggregation.ErrBits, "use more bits"},
	{"not-finite", aggregation.ErrNotFinite, "look for what made NaN or infinity in training"},
	{"range", aggregation.ErrSaturated, "raise sum.range, or declare privacy.clip"},
	{"length", aggregation.ErrLength, "give as many numbers as the job's length"},
	{"length", masking.ErrLength, "give as many numbers as the job's length"},
	{"range", masking.ErrRange, ""},
	{"too-few", protocol.ErrTooFew, "wait for more parties; the round is lost if one was open"},
	{"missing", protocol.ErrMissing, "wait for the parties that are missing"},
	{"material", protocol.ErrMaterial, "begin the next round: the party is left out of it"},
	{"truncated", protocol.ErrTruncated, "check how messages are carried: pass them on whole"},
	{"trailing", protocol.ErrTrailing, "check how messages are carried: pass them on one by one"},
	{"oversized", protocol.ErrOversized, "check how messages are carried: pass them on one by one"},
	{"version", protocol.ErrVersion, "use one version of hushsum on all sides"},
	{"type", protocol.ErrType, "give servers' messages to parties, and parties' to the server"},
	{"session", protocol.ErrSession, "compare job, roster and number of all sides"},
	{"sender", protocol.ErrSender, "give the index of the party that the message came from"},
	{"duplicate", protocol.ErrDuplicate, "continue: it is already there"},
	{"own-key", protocol.ErrOwnKey, "do not take part: the server shows others another key"},
	{"encapsulation-key", protocol.ErrEncapsulationKey, ""},
	{"public-key", protocol.ErrPublicKey, ""},
	{"signature", protocol.ErrSignature, "compare the rosters of all sides"},
	{"members", protocol.ErrMembers, "wait for the next session"},
	{"replay", protocol.ErrReplay, "continue: a round is used once"},
	{"stale", protocol.ErrStale, "continue: the step is over"},
	{"skip", protocol.ErrSkip, "take part in a new session"},
	{"participants", protocol.ErrParticipants, ""},
	{"survivors", protocol.ErrSurvivors, ""},
	{"certificate", protocol.ErrCertificate, ""},
	{"broadcast", protocol.ErrBroadcast, "give the broadcast that this round began with"},
	{"phase", protocol.ErrPhase, "do the steps in their order: see the examples"},
	{"identity", protocol.ErrIdentity, "use an identity whose public key is in the roster"},
	{"state", protocol.ErrState, "load it with the job, number, identity and key of save"},
	{"state", drive.ErrState, "load it with the job, number, identity and key of save"},
	{"encoding", protocol.ErrEncoding, "check how messages are carried"},
	{"random", protocol.ErrRandom, "make sure that the system has randomness"},
	{"too-few", oneshot.ErrTooFew, "wait for more; the round is lost if none arrive"},
	{"context", oneshot.ErrContext, "compare job, roster, committee and broadcast of all sides"},
	{"sender", oneshot.ErrSender, "compare roster and committee of all sides"},
	{"duplicate", oneshot.ErrDuplicate, "continue: it is already there"},
	{"key", oneshot.ErrKey, "leave the member out"},
	{"own-key", oneshot.ErrOwnKey, "do not take part: the server shows others another key"},
	{"replay", oneshot.ErrReplay, "continue: a round is used once"},
	{"members", oneshot.ErrStatement, "do not sign: the server closes over other parties"},
	{"certificate", oneshot.ErrCertificate, ""},
	{"lost", oneshot.ErrLost, "take part in the next round"},
	{"excluded", oneshot.ErrExcluded, "continue without the member"},
	{"full", oneshot.ErrFull, "hold a batch, and take it again after that"},
	{"broadcast", oneshot.ErrBroadcast, "give the broadcast that this round was opened with"},
	{"phase", oneshot.ErrPhase, "do the steps in their order"},
	{"identity", oneshot.ErrIdentity, "use an identity whose public key is in the list"},
	{"state", oneshot.ErrState, "load it with the job, committee, identity and key of save"},
	{"length", oneshot.ErrLength, "give as many numbers as the job's length"},
	{"range", oneshot.ErrRange, ""},
	{"spoilt", oneshot.ErrParts, "wait for more members' parts, or hold the next round"},
	{"spoilt", oneshot.ErrNoise, "hold the next round"},
	{"spoilt", oneshot.ErrCover, "hold the next round without the party"},
	{"config", oneshot.ErrConfig, ""},
	{"identity", keyexchange.ErrSigner, "use 32 bytes of a generated identity"},
	{"config", hushsum.ErrConfig, ""},
	{"config", privacy.ErrConfig, ""},
	{"config", accounting.ErrConfig, ""},
	{"config", noise.ErrConfig, ""},
	{"config", noise.ErrTooLarge, "use less noise, or another family"},
	{"config", aggregation.ErrConfig, ""},
	{"config", protocol.ErrConfig, ""},
	{"config", keyexchange.ErrRosterSize, ""},
	{"config", keyexchange.ErrDuplicateIdentity, "give every party its own identity"},
	{"config", keyexchange.ErrIdentityKey, "give the 32 bytes that the party generated"},
	{"config", keyexchange.ErrName, "use 1 to 64 printable characters without spaces"},
	{"stopped", context.Canceled, ""},
}

// newFault fills in the fields for an error.
func newFault(err error) *faultJSON {
	f := &faultJSON{Kind: "failed", Text: err.Error(), Reason: fault.Reason(err)}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			f.Kind, f.Advice = k.kind, k.advice
			break
		}
	}
	var said *fault.Error
	if errors.As(err, &said) && said.Advice != "" {
		f.Advice = said.Advice
	}
	var config *hushsum.ConfigError
	var release *privacy.ConfigError
	var differs *hushsum.DifferenceError
	switch {
	case errors.As(err, &config) && config.File != "":
		f.takeMistakes(err)
	case config != nil:
		f.Field, f.Reason = snakeCase(config.Path), config.Reason
		f.Text = fmt.Sprintf("%v: %s: %s", hushsum.ErrConfig, f.Field, f.Reason)
		if config.Advice != "" {
			f.Advice = config.Advice
		}
	case errors.As(err, &release):
		f.Field, f.Reason, f.Advice = snakeCase(release.Field), release.Reason, release.Advice
	case errors.As(err, &differs):
		f.Field = differs.Field
		f.Reason = fmt.Sprintf("%s is %s here and %s there", differs.Field, differs.Ours, differs.Theirs)
	}
	var call *callError
	if errors.As(err, &call) {
		f.Field = call.field
	}
	if errors.Is(err, aggregation.ErrSaturated) {
		f.Field = "sum.range"
		for _, s := range []*string{&f.Text, &f.Reason} { // what to do is said in the words of a job
			*s = strings.Replace(*s, "; raise the range or clip first", "", 1)
		}
	}
	var rows *query.RowsError
	if errors.As(err, &rows) {
		f.Field, f.Reason, f.Advice = rows.Column, rows.Reason, rows.Advice
	}
	var party *protocol.PartyError
	if errors.As(err, &party) {
		f.Party, f.Name = &party.Party, party.Name
	}
	var sender *oneshot.PartyError
	if errors.As(err, &sender) {
		f.Party, f.Name = &sender.Party, sender.Name
	}
	var missing *protocol.MissingError
	if errors.As(err, &missing) {
		f.Parties = missing.Parties
	}
	var spent *accounting.OverBudget
	if errors.As(err, &spent) {
		f.Name = spent.Client
	}
	return f
}

// notLedger reports that bytes are not a result of Ledger.save.
func notLedger() error {
	return fault.New(accounting.ErrLedger, "load what Ledger.save returned",
		"the bytes are not a saved ledger, or were changed")
}

// snakeCase turns the name of a field in Go into its name in calls.
func snakeCase(name string) string {
	var out strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z') {
				out.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		out.WriteRune(c)
	}
	return out.String()
}

// requestError reports what is wrong with a call.
func requestError(advice, reason string, a ...any) error {
	return fault.New(ErrRequest, advice, reason, a...)
}

// objectError reports that an object is not found.
func objectError(noun string, id uint64) error {
	return fault.New(ErrObject, "make it again, or load its saved state",
		"there is no %s %d: it was closed, or is another process's", noun, id)
}

// fieldError reports what is wrong with a field of a call.
func fieldError(field, advice, reason string, a ...any) error {
	return &callError{requestError(advice, "%s: %s", field, fmt.Sprintf(reason, a...)), field}
}

// callError is an error in a field of a call.
type callError struct {
	error
	field string
}

func (e *callError) Unwrap() error { return e.error }
