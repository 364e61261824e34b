package federation

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/tensor"
)

// This file defines how one federation continues another.

// ErrSuccession: no trusted operator has signed that a federation continues another.
var ErrSuccession = errors.New("federation: the succession is not signed")

// statement returns the bytes that an operator signs: an identifier covers job, roster, ledger and
// model, so that the statement is for exactly these.
func (f *Federation) statement() ([]byte, error) {
	before := f.Settled.Before()
	if before == nil {
		return nil, fmt.Errorf("%w: it continues none", ErrSuccession)
	}
	return []byte(f.ID + "\ngoes on from\n" + before.Federation), nil
}

// Sign returns an operator's signed statement that the federation continues the federation that its
// privacy.before names: the key in 32 bytes and a signature in 64. It fails with [ErrSuccession] if
// privacy.before is not set.
func (f *Federation) Sign(operator ed25519.PrivateKey) ([]byte, error) {
	statement, err := f.statement()
	if err != nil {
		return nil, err
	}
	signature, err := keyexchange.Sign(operator, labels.Succession, statement)
	if err != nil {
		return nil, err
	}
	key, _ := operator.Public().(ed25519.PublicKey)
	return append(slices.Clone(key), signature[:]...), nil
}

// Signer returns the key of the operator that signed a succession. It fails with [ErrSuccession].
func (f *Federation) Signer(succession []byte) (ed25519.PublicKey, error) {
	statement, err := f.statement()
	if err != nil {
		return nil, err
	}
	if len(succession) != ed25519.PublicKeySize+keyexchange.SignatureSize {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrSuccession, len(succession))
	}
	key := ed25519.PublicKey(succession[:ed25519.PublicKeySize])
	signature := [keyexchange.SignatureSize]byte(succession[ed25519.PublicKeySize:])
	if err := keyexchange.Verify(key, labels.Succession, statement, &signature); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSuccession, err)
	}
	return key, nil
}

// Continued returns the text of a job that continues this federation's job: the same set fields
// under another name, with the files roster.txt, committee.txt, model.safetensors unless the job
// asks queries, and before.json if what was spent counts. Fields that follow from others, such as
// bits or the number of members of a committee, stay unset, since they may follow from a field that
// the operator changes. The new name is none of the names that are taken.
func (f *Federation) Continued(before bool, taken ...string) ([]byte, error) {
	j, err := job.Parse("", f.Text)
	if err != nil {
		return nil, err
	}
	if f.asks == nil {
		m := &j.Model
		m.File, m.Tensor, m.Length, m.Init = "model.safetensors", nil, 0, ""
	}
	for j.Name = nextName(j.Name); slices.Contains(taken, j.Name); {
		j.Name = nextName(j.Name)
	}
	j.Parties.Roster, j.Parties.Count, j.Parties.Group = "roster.txt", 0, nil
	j.Time.Start = time.Time{}
	if j.Oneshot() {
		j.Sum.Committee, j.Sum.Members = "committee.txt", 0
	}
	if j.Privacy.Before = ""; before {
		j.Privacy.Before = "before.json"
	}
	return j.MarshalText()
}

// nextName increments the number after the last dash of a name: study, study-2, study-3.
func nextName(name string) string {
	stem, number := name, 1
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		if n, err := strconv.Atoi(name[at+1:]); err == nil && n > 0 && n < math.MaxInt32 {
			stem, number = name[:at], n
		}
	}
	return fmt.Sprint(stem, "-", number+1)
}

// begin has a training begin with the weights of a file, instead of those drawn from the seed.
func (f *Federation) begin(file []byte) error {
	spec, values, _, err := tensor.ParseAny(file)
	if err != nil {
		return f.Job.Mistake("model.file", "use the model of an earlier federation", "%v", err)
	}
	own := f.Spec.Tensors[0]
	at := 0
	for _, t := range spec.Tensors {
		if t.Name == own.Name && t.Len() == own.Len() {
			copy(f.Initial, values[at:at+t.Len()])
			return nil
		}
		at += t.Len()
	}
	return f.Job.Mistake("model.file", "use the model of an earlier federation of the same model.name",
		"it has no tensor %q of %d numbers", own.Name, own.Len())
}
