package oblivious

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
)

// jointStage says which message a session waits for.
type jointStage int

const (
	stageKeys jointStage = iota
	stageInputs
	stageTurns
	stageConfirm
	stageShares
	stageSum
)

// Joint is one party of a session in which all parties together add noise to a sum that no n − 1
// of them know: docs/joint-noise.md. Every message goes to all others, over any channel;
// [Joint.Next] makes messages and [Joint.Receive] takes them.
//
// A Joint is not safe for concurrent use; it uses all cores.
type Joint struct {
	config   JointConfig
	identity crypto.Signer
	party    int
	random   io.Reader

	session [32]byte
	before  [32]byte // what the session has agreed on so far
	stage   jointStage
	turn    int      // whose turn it is
	bodies  [][]byte // of the stage, by party; nil: has not come
	sent    bool     // this party's message of the stage
	spent   bool
	dead    error

	input  []uint64
	secret *edwards25519.Scalar    // sk
	keys   []*edwards25519.Point   // pk_i
	key    *jointPublic            // P
	coins  []ciphertext            // of all coordinates, after the turns so far
	inputs [][]ciphertext          // by party: bits of all coordinates
	open   opening                 // from stageConfirm on
	shares [][]*edwards25519.Point // by party
}

// NewJoint makes a party's side of a session, with the party's identity in the roster, and its
// input: Length numbers from 0 to Bound, which are copied. Randomness comes from random (nil:
// crypto/rand). It fails with [ErrConfig], or [ErrLength] for the input.
func NewJoint(
	config *JointConfig, identity crypto.Signer, party int, input []uint64, random io.Reader,
) (*Joint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	n := config.Roster.Len()
	if party < 0 || party >= n {
		return nil, configError("there is no party %d of %d", party, n)
	}
	if identity == nil {
		return nil, configError("there is no identity")
	}
	if public, ok := identity.Public().(ed25519.PublicKey); !ok ||
		!public.Equal(config.Roster.Key(party)) {
		return nil, configError("the identity is not that of party %d of the roster", party)
	}
	if len(input) != config.Length {
		return nil, ErrLength
	}
	over := false
	for _, x := range input {
		over = over || x > config.Bound
	}
	if over {
		return nil, ErrLength
	}
	j := &Joint{
		config:   config.copy(),
		identity: identity,
		party:    party,
		random:   random,
		session:  config.digest(),
		bodies:   make([][]byte, n),
		input:    append([]uint64(nil), input...),
		keys:     make([]*edwards25519.Point, n),
		inputs:   make([][]ciphertext, n),
		shares:   make([][]*edwards25519.Point, n),
	}
	j.before = j.session
	return j, nil
}

// Next returns the message that is due from this party, to send to all others, and counts it as
// sent; nil if the party waits for others, or is done. A caller that calls it until it returns
// nil, after every message received, has sent everything that is due. The last message is this
// party's share of the decryption: see [Joint.Spent]. It fails with [ErrRandom], and then may be
// called again, or with the error that ended the session.
func (j *Joint) Next() ([]byte, error) {
	if j.dead != nil {
		return nil, j.dead
	}
	if j.sent || j.stage == stageSum || j.stage == stageTurns && j.turn != j.party {
		return nil, nil
	}
	var body []byte
	var err error
	message := jointMessage{kind: j.due(), session: j.session, from: uint32(j.party)}
	var secret *edwards25519.Scalar
	switch message.kind {
	case jointKey:
		secret, body, err = makeKey(j.session, j.party, j.random)
	case jointInput:
		body, err = j.makeInput()
	case jointTurn:
		body, err = j.makeTurn()
	case jointConfirm:
		body = []byte{}
	case jointShare:
		body, err = j.open.make(j.party, j.secret, j.random)
	}
	if err != nil {
		return nil, err
	}
	message.body = body
	message.signature, err = keyexchange.Sign(j.identity, labels.JointMessage,
		message.statement(j.before))
	if err != nil {
		return nil, err
	}
	encoded := message.append(nil)
	switch message.kind {
	case jointKey:
		j.secret = secret
	case jointInput:
		clear(j.input)
	case jointShare:
		*j.secret = edwards25519.Scalar{}
		j.spent = true
	}
	j.sent = true
	if err := j.keep(j.party, body); err != nil { // cannot happen, but to a faulty machine
		j.dead = err
		return nil, err
	}
	return encoded, nil
}

// due is the type of the messages of the stage.
func (j *Joint) due() jointType { return jointKey + jointType(j.stage) }

// makeInput encrypts the input.
func (j *Joint) makeInput() ([]byte, error) {
	bits := make([]byte, 0, j.config.Length*len(j.config.inputWeights()))
	defer func() { clear(bits) }()
	for _, x := range j.input {
		bits = append(bits, j.config.inputBits(x)...)
	}
	return j.turnOf(jointInput, j.party).make(bits, j.random)
}

// makeTurn flips coins by fresh secret bits.
func (j *Joint) makeTurn() ([]byte, error) {
	bits, err := draw(j.random, len(j.coins))
	if err != nil {
		return nil, err
	}
	defer clear(bits)
	for i := range bits {
		bits[i] &= 1
	}
	return j.turnOf(jointTurn, j.party).make(bits, j.random)
}

// turnOf is the turn that an input, or a turn, of a party is.
func (j *Joint) turnOf(kind jointType, party int) *turn {
	t := &turn{label: labels.JointProofTurn, before: j.before, party: party, key: j.key,
		current: j.coins}
	if kind == jointInput {
		t.label = labels.JointProofInput
		t.current = trivials(j.config.Length * len(j.config.inputWeights()))
	}
	return t
}

func trivials(n int) []ciphertext {
	out := make([]ciphertext, n)
	for i := range out {
		out[i] = trivial()
	}
	return out
}

// Receive takes a message of another party. It checks all of it, which takes a while for inputs
// and turns. It fails with [ErrEncoding], [ErrSender], [ErrDuplicate], with [ErrPhase] if the
// message belongs to another step, or another party's turn (deliver it again after others), with
// [ErrSignature], or with a [PeerError] of [ErrProof] or [ErrEncoding] if what a party signed is
// invalid. A refused message changes nothing.
func (j *Joint) Receive(message []byte) error {
	if j.dead != nil {
		return j.dead
	}
	m, err := j.config.parseJoint(message)
	if err != nil {
		return err
	}
	from := int(m.from)
	switch {
	case m.session != j.session || from < 0 || from >= len(j.bodies) || from == j.party:
		return ErrSender
	case j.stage == stageSum || m.kind != j.due() || j.stage == stageTurns && from != j.turn:
		return ErrPhase
	case j.bodies[from] != nil:
		return ErrDuplicate
	}
	if err := keyexchange.Verify(j.config.Roster.Key(from), labels.JointMessage,
		m.statement(j.before), &m.signature); err != nil {
		return fmt.Errorf("%w (party %d)", ErrSignature, from)
	}
	if err := j.keep(from, append([]byte{}, m.body...)); err != nil {
		return &PeerError{from, err}
	}
	return nil
}

// keep checks the body of a message that is due, keeps what it says, and goes on to the next
// step if it was the last of its own. Nothing is changed by an error but of the last step.
func (j *Joint) keep(party int, body []byte) error {
	switch j.due() {
	case jointKey:
		key, err := takeKey(j.session, party, body)
		if err != nil {
			return err
		}
		j.keys[party] = key
	case jointInput:
		bits, err := j.turnOf(jointInput, party).take(body)
		if err != nil {
			return err
		}
		j.inputs[party] = bits
	case jointTurn:
		coins, err := j.turnOf(jointTurn, party).take(body)
		if err != nil {
			return err
		}
		j.coins = coins
		bound := digest(labels.JointTurn, j.before[:], number(party), body)
		j.before, j.sent = bound, false
		if j.turn++; j.turn == len(j.bodies) {
			j.stage = stageConfirm
			j.open = opening{before: j.before, sums: j.sums()}
			j.coins, j.inputs = nil, nil
		}
		return nil
	case jointShare:
		shares, err := j.open.take(party, j.keys[party], body)
		if err != nil {
			return err
		}
		j.shares[party] = shares
	}
	j.bodies[party] = body
	if len(j.Missing()) == 0 {
		j.advance()
	}
	return nil
}

// advance ends a stage in which all parties have sent one message each.
func (j *Joint) advance() {
	switch j.stage {
	case stageKeys:
		sum := edwards25519.NewIdentityPoint()
		for _, key := range j.keys {
			sum.Add(sum, key)
		}
		j.key = newJointPublic(sum)
		j.before = j.digestBodies(labels.JointKeys)
	case stageInputs:
		j.before = j.digestBodies(labels.JointInputs)
		j.coins = trivials(j.config.Length * j.config.coins())
	}
	clear(j.bodies)
	j.stage, j.sent = j.stage+1, false
}

// digestBodies is over what was agreed on before and the messages of a stage.
func (j *Joint) digestBodies(label string) [32]byte {
	all := make([]byte, 0, len(j.bodies)*32)
	for _, body := range j.bodies {
		d := digest(labels.JointBody, body)
		all = append(all, d[:]...)
	}
	return digest(label, j.before[:], all)
}

// sums returns the ciphertexts of the noisy sum: S_k = Σ of its coins and of all parties'
// bits, each times its weight.
func (j *Joint) sums() []ciphertext {
	sums := trivials(j.config.Length)
	add := func(bits []ciphertext, weights []uint64) {
		for k := range sums {
			for i := 0; i < len(weights); {
				level, w := trivial(), weights[i]
				for ; i < len(weights) && weights[i] == w; i++ {
					level.add(&bits[k*len(weights)+i])
				}
				level = level.times(w)
				sums[k].add(&level)
			}
		}
	}
	add(j.coins, j.config.coinWeights())
	for _, bits := range j.inputs {
		add(bits, j.config.inputWeights())
	}
	return sums
}

// Missing returns the parties whose messages the step waits for, in ascending order; this party
// is among them while its own is due. It is empty once the sum is available.
func (j *Joint) Missing() []int {
	var missing []int
	for i, body := range j.bodies {
		if j.stage == stageTurns && i == j.turn || j.stage != stageTurns && body == nil &&
			j.stage != stageSum {
			missing = append(missing, i)
		}
	}
	return missing
}

// Spent reports whether the party has made its share of the decryption, so that others may have
// read the sum: a budget must be charged the session's ε then, whether or not the sum comes out
// here. Before that nobody can read anything, and a session that is given up costs nothing.
func (j *Joint) Spent() bool { return j.spent }

// Sum returns the sum of all inputs with the noise, whose mean is [JointConfig.Centre]: Length
// numbers. It fails with [ErrMissing] until all shares of the decryption have arrived.
func (j *Joint) Sum() ([]uint64, error) {
	if j.dead != nil {
		return nil, j.dead
	}
	if j.stage != stageSum {
		return nil, fmt.Errorf("%w: of party %d", ErrMissing, j.Missing()[0])
	}
	return j.open.open(j.shares, j.config.inputs()+j.config.noiseMax())
}

// Erase forgets all secrets, as far as Go allows. The session is over; every later call fails
// with [ErrPhase].
func (j *Joint) Erase() {
	clear(j.input)
	if j.secret != nil {
		*j.secret = edwards25519.Scalar{}
	}
	j.dead = ErrPhase
}

// RunJoint carries the messages of a session among all its parties, in order, within one process,
// and returns the sum: for tests, for simulations, and to show the order of calls.
func RunJoint(parties []*Joint) ([]uint64, error) {
	if len(parties) == 0 || parties[0] == nil || len(parties) != len(parties[0].bodies) {
		return nil, configError("RunJoint needs all parties of the session, in order")
	}
	for parties[0].stage != stageSum {
		before, turn := parties[0].stage, parties[0].turn
		for i, from := range parties {
			message, err := from.Next()
			if err != nil {
				return nil, fmt.Errorf("party %d: %w", i, err)
			}
			if message == nil {
				continue
			}
			for k, to := range parties {
				if k == i {
					continue
				}
				if err := to.Receive(message); err != nil {
					return nil, fmt.Errorf("party %d: %w", k, err)
				}
			}
			if before != parties[0].stage || turn != parties[0].turn {
				break // the next step begins with its first party
			}
		}
		if before == parties[0].stage && turn == parties[0].turn {
			return nil, errors.New("oblivious: the parties are not of one session")
		}
	}
	return parties[0].Sum()
}
