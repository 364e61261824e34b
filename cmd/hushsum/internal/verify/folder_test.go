package verify

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
)

// partyFolder makes the folder of a party that is in its third round of seven.
func partyFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{nameReceipts, nameEvidence} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	names := map[string]string{"chain.txt": nameChain, "a.receipt": "receipts/7.receipt"}
	for from, to := range names {
		if err := os.Rename(known(t, folder, from), filepath.Join(folder, to)); err != nil {
			t.Fatal(err)
		}
	}
	// The file of a folder has no head, which the state has.
	text, err := os.ReadFile(filepath.Join(folder, nameChain))
	if err != nil {
		t.Fatal(err)
	}
	entries, _ := parts(text)
	written(t, folder, nameChain, entries)
	settled := jobOfFour(t)
	key, err := keyfile.SealKey(filepath.Join(folder, nameSeal), true)
	if err != nil {
		t.Fatal(err)
	}
	book := &consent.Book{File: filepath.Join(folder, nameBook), Key: key}
	accepted, err := book.Accept(nil, settled, settled.Roster().Key(0))
	if err != nil {
		t.Fatal(err)
	}
	limits, err := settled.Limits(settled.Roster().Key(0))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := drive.NewGuard(limits, 3)
	if err == nil {
		err = accepted.Count(*guard)
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// jobOfFour is a job of seven rounds.
func jobOfFour(t *testing.T) *job.Settled {
	t.Helper()
	j, err := job.Parse("", []byte(`name = "first"
rounds = 7
parties = { roster = "r", drop_out = 0.25 }
sum.adversary = "curious"
model.tensor = [{ name = "w", shape = [3] }]
privacy = { clip = 1.0, noise = "discrete-gaussian", epsilon = 8.0 }
`))
	if err != nil {
		t.Fatal(err)
	}
	var all []keyexchange.Entry
	for i := range 4 {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i)}, ed25519.SeedSize))
		all = append(all, keyexchange.Entry{Name: fmt.Sprint("p", i),
			Key: key.Public().(ed25519.PublicKey)})
	}
	var files job.Files
	if files.Roster, err = keyexchange.NewRoster(all); err != nil {
		t.Fatal(err)
	}
	s, err := j.Settle(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A party sees in one place what it has kept: what has left it, the decisions that it accepted and
// its receipts. Whatever was changed is named, and the rest is shown.
func TestFolder(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(folder string) error
		says   string
	}{
		{"whole", func(string) error { return nil }, ""},
		{"another receipt", func(folder string) error {
			return os.Rename(known(t, folder, "b.receipt"), filepath.Join(folder, "receipts/8.receipt"))
		}, "8.receipt: the federation's key has signed two entries of one number"},
		{"fewer lines", func(folder string) error {
			b, err := os.ReadFile(filepath.Join(folder, nameChain))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(folder, nameChain),
				bytes.Join(bytes.SplitAfter(b, []byte("\n"))[:8], nil), 0o600)
		}, ""},
		{"a receipt that was refused", func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "receipts/9.refused"), nil, 0o600)
		}, "the party refused this receipt"},
		{"a changed receipt", flipped("receipts/7.receipt"), "7.receipt: it"},
		{"a changed line", flipped(nameChain), "lines that are no entries"},
		{"a changed book", flipped(nameBook), "was changed, or sealed under another key"},
		{"no key", func(folder string) error { return os.Remove(filepath.Join(folder, nameSeal)) },
			nameSeal},
		{"proof", func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "evidence/heads-1.evidence"), nil, 0o600)
		}, "1 proof that the server told other decisions"},
	} {
		folder := partyFolder(t)
		if err := c.change(folder); err != nil {
			t.Fatal(err)
		}
		code, out, errs := clitest.Call(t.Context(), []string{"verify", "folder", folder}, Command())
		if !strings.Contains(clitest.Flat(errs), c.says) || (code == 0) != (c.says == "") ||
			(errs == "") != (code == 0) {
			t.Errorf("%s: code %d, %s", c.what, code, errs)
		}
		if c.what == "whole" {
			for _, want := range []string{" goes on 3 4", "0 to 15, in 1 segment",
				"7 5 6 epsilon 1.2391 of 2"} {
				if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
		}
		code, out, errs = clitest.Call(t.Context(), []string{"verify", "--json", "folder", folder},
			Command())
		var f kept
		if err := json.Unmarshal([]byte(out), &f); err != nil || errs != "" ||
			f.Verifies != (code == 0) || f.Verifies != (c.says == "") {
			t.Fatalf("%s: code %d, %s%s: %v", c.what, code, out, errs, err)
		}
		if c.says == "" && (len(f.Book) != 1 || f.Book[0].Left != 3 || f.Book[0].May != 4 ||
			len(f.Receipts) != 1 || f.Chain == nil || len(f.Key) != 64) {
			t.Errorf("%+v", f)
		}
	}
	for args, says := range map[string]string{
		"folder":                   "which file?",
		"folder none":              "no such file",
		"folder . .":               "one folder at a time",
		"chain --book book chain":  "for folder",
		"folder . --log elsewhere": "for receipt and chain",
	} {
		code, out, errs := clitest.Call(t.Context(), append([]string{"verify"}, strings.Fields(args)...),
			Command())
		if code == 0 || out != "" || !strings.Contains(clitest.Flat(errs), says) {
			t.Errorf("%s: code %d, %s%s", args, code, out, errs)
		}
	}
}

// flipped changes a bit in the middle of a file.
func flipped(name string) func(folder string) error {
	return func(folder string) error {
		file := filepath.Join(folder, name)
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		b[len(b)/2] ^= 1
		return os.WriteFile(file, b, 0o600)
	}
}
