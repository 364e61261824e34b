package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/tensor"
)

// Of several federations the one is meant that is named, or that was accepted in the folder; else
// the error lists names, and identifiers where names are the same.
func TestChoose(t *testing.T) {
	one, two := exchange.Listed{Name: "study", ID: "01"}, exchange.Listed{Name: "study-2", ID: "02"}
	again := exchange.Listed{Name: "study", ID: "03"}
	for _, c := range []struct {
		listed         []exchange.Listed
		name, accepted string
		want           string // the identifier, or words of the error
	}{
		{nil, "", "", "no federation yet"},
		{[]exchange.Listed{one}, "", "", "01"},
		{[]exchange.Listed{one}, "", "09", "01"}, // which is then asked about
		{[]exchange.Listed{one, two}, "", "01", "01"},
		{[]exchange.Listed{one, two}, "", "02", "02"},
		{[]exchange.Listed{one, two}, "study-2", "01", "02"},
		{[]exchange.Listed{one, two}, "02", "", "02"},
		{[]exchange.Listed{one, two}, "", "", `--federation: "study", "study-2"`},
		{[]exchange.Listed{one, two}, "", "09", `--federation: "study", "study-2"`},
		{[]exchange.Listed{one, two}, "studio", "01", `no federation "studio"; --federation names one of "study"`},
		{[]exchange.Listed{one, two, again}, "study", "03", "03"},
		{[]exchange.Listed{one, two, again}, "study", "02", `--federation: 01 ("study"), 03 ("study")`},
		{[]exchange.Listed{one, two, again}, "", "", `01 ("study"), "study-2", 03 ("study")`},
	} {
		id, err := choose(c.listed, c.name, c.accepted)
		if err == nil && id != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q of %v, accepted %q: %q, %v, want %q", c.name, c.listed, c.accepted, id, err,
				c.want)
		}
	}
}

// A folder with the state of one federation is not taken for another, and what was accepted stays;
// it is said how what was spent goes on to count. Without a state another is asked about.
func TestFolderOfAnother(t *testing.T) {
	declared := func(name string) *federation.Federation {
		var roster strings.Builder
		for _, name := range []string{"a", "b", "c", "d"} {
			key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte(name), 32)).Public().(ed25519.PublicKey)
			fmt.Fprintf(&roster, "%s %x\n", name, []byte(key))
		}
		f, err := federation.New(federation.Files{Roster: []byte(roster.String()),
			Text: []byte(strings.Replace(created, `"s"`, `"`+name+`"`, 1))})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, next := declared("study"), declared("study-2")
	j := joining{folder: t.TempDir(), accept: true}
	out := new(bytes.Buffer)
	agree := func(f *federation.Federation) error { return j.agree(f, streams{out: out, err: out}) }
	if err := agree(next); err != nil {
		t.Fatal(err)
	}
	if err := agree(first); err != nil || !strings.Contains(out.String(), "not what was accepted") {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(j.folder, fileState), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := agree(next)
	if err == nil {
		t.Fatal("it takes the folder of another")
	}
	for _, words := range []string{`state of "study"`, `for "study-2" give another --folder`,
		"--key " + filepath.Join(j.folder, "seal.key"), "--book " + filepath.Join(j.folder, "book")} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("it does not say %q: %v", words, err)
		}
	}
	if before, err := j.accepted(); err != nil || before.ID != first.ID {
		t.Errorf("%v is accepted now, %v", before.Name, err)
	}
}

// The name of --out says the format.
func TestWriteModel(t *testing.T) {
	spec := tensor.Spec{DType: tensor.Float64, Tensors: []tensor.Tensor{
		{Name: "weights", Shape: []int{2}}, {Name: "rule.next", Shape: []int{2}}}}
	model, err := spec.Append(nil, []float64{0.5, -2, 11, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, begins := range map[string]string{"m.npz": "PK", "m.safetensors": string(model)} {
		name = filepath.Join(t.TempDir(), name)
		if err := writeModel(name, model); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(file), begins) {
			t.Errorf("%s begins with %.8q, %v", name, file, err)
		}
		if _, values, _, err := tensor.ParseAny(file); err != nil ||
			!slices.Contains(values, -2) || len(values) != 4 {
			t.Errorf("%s: %v, %v", name, values, err)
		}
	}
}

// A party that had nothing to submit gets the last model and the reason, which ends the command
// unless it follows; after another error nothing is written.
func TestRan(t *testing.T) {
	spec := tensor.Spec{DType: tensor.Float64, Tensors: []tensor.Tensor{{Name: "w", Shape: []int{1}}}}
	model, err := spec.Append(nil, []float64{0.5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	absent, other := fmt.Errorf("%w: no rows", party.ErrAbsent), errors.New("another")
	for _, c := range []struct {
		err, want error
		followed  bool
		says      string // last
		model     bool
	}{
		{nil, nil, false, "has ended", true},
		{absent, absent, false, "has ended", true},
		{absent, nil, true, "no rows", true},
		{other, other, true, "", false},
	} {
		j := joining{out: filepath.Join(t.TempDir(), "m.safetensors"), followed: c.followed}
		out := new(bytes.Buffer)
		err := j.ran(model, c.err, out)
		_, missing := os.Stat(j.out)
		if !errors.Is(err, c.want) || err == nil != (c.want == nil) || c.model != (missing == nil) ||
			!strings.HasSuffix(strings.TrimSpace(out.String()), c.says) {
			t.Errorf("after %v: %v, the model %v, %q", c.err, err, missing, out)
		}
	}
}

// What is wrong with an address or a certificate comes with what to do about it.
func TestAdvice(t *testing.T) {
	for want, err := range map[string]error{
		"the page, for operators, does not": http.ErrSchemeMismatch,
		"is it --server https://":           &party.RefusalError{Status: http.StatusBadRequest},
		"must renew the certificate":        x509.CertificateInvalidError{Reason: x509.Expired},
		"give --fingerprint":                x509.UnknownAuthorityError{},
		"hushsumd roster line":              &party.RefusalError{Status: 403, Kind: "stranger"},
		"compare --server":                  party.ErrServer,
	} {
		if got := advise(fmt.Errorf("asking: %w", err)); !errors.Is(got, err) ||
			!strings.Contains(got.Error(), want) {
			t.Errorf("%v", got)
		}
	}
	refused := &party.RefusalError{Status: http.StatusBadRequest, Kind: "query"}
	if got := advise(refused); got != error(refused) {
		t.Errorf("%v", got)
	}
}
