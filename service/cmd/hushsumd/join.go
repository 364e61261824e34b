package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/store"
)

func join(ctx context.Context, args []string, std streams) error {
	f := flags("join", "join --server URL --identity FILE --train COMMAND|--gradients COMMAND|--rows "+
		"FILE [flags]", `
It takes part in a federation. First it explains what that means and asks for consent; what was
accepted is pinned in the folder, and after any change it asks again. All connections are made from
here; HTTPS_PROXY may name a proxy.

The roster must come over a channel that the server's operator does not control: give it with
--roster, or its fingerprint, received by telephone or on paper, with --roster-fingerprint.

In each round the training command finds round.json and the model, as model.safetensors and
model.npz, in the folder that HUSHSUM_WORK names. It leaves update.safetensors or update.npz (the
change), or trained.safetensors or trained.npz (the weights) there, and metrics.json with "loss" and
"accuracy" if the federation sums them, and exits with 0; any other code counts as an absence in
that round, or with noise as a submission of zeros, which only this log reports. If the unit is a
record, "coins" in round.json says how many records the command may draw from (count), with what
probability each (rate), how many at most (most, else it leaves zeros), and to what norm it clips
the gradient of each (clip); the update is minus their sum, in float64. A record on which the
command fails then takes the sum of all others away, so that no epsilon is proved for that round.

For records rather give --gradients: a command that makes the gradient of each, while this program
tosses the coins, clips and adds up. It is started ahead, twice, and prints "ready" on a line
whenever it waits for work. Then it gets a line such as {"round": 3, "units": [4, 17]}, with numbers
from 0 below --records, reads the model as above, leaves gradients.safetensors or gradients.npz with
a gradient of each unit, in their order, along a first dimension, and is ready again. Where it fails
on several (it ends, is killed, leaves none, or has not done them in time) it is asked for each
alone, and one on which it fails alone adds nothing. One unit has a fifth of privacy.submit_after,
and several at once have no more. This log says that some records add nothing, and not how many;
what the command prints gets there too, so it should name no units.

If the federation declares the training, give --rows instead of a command: a CSV file of numbers
without a header, the last of each line the class, from 0.

If it asks queries, --rows is a CSV file whose first line (or --header) names the columns, a Parquet
file, a SQLite file, or the address of a PostgreSQL database, postgres://user@host/name; for both
databases --sql selects the rows, and can only read. A password belongs in PGPASSWORD, in the file
that PGPASSFILE names, or in an address in a variable: --rows env:DATABASE_URL. Rows are read once
for each federation; what is clipped, missing or unknown in them is reported here, by column and
line, and to nobody else.`, std)
	var j joining
	j.flags(f, "hushsum-party")
	f.StringVar(&j.train, "train", "", "`command` that trains, run by the shell")
	f.StringVar(&j.gradients, "gradients", "", "`command` that makes gradients of records, run by the "+
		"shell")
	f.IntVar(&j.records, "records", 0, "with --gradients: `number` of this party's records, or groups "+
		"of them")
	f.StringVar(&j.rows.Rows, "rows", "", "`file` of this party's rows, or postgres://…, where the "+
		"training is declared or queries are asked")
	f.StringVar(&j.rows.SQL, "sql", "", "`statement` that selects its rows from a database")
	f.StringVar(&j.rows.Header, "header", "", "`names` of the columns, separated by commas, for "+
		"queries of a CSV file without a header")
	f.DurationVar(&j.limit, "train-time", 10*time.Minute, "longest time that it may take")
	f.StringVar(&j.out, "out", "", "`file` for the last model, .safetensors or .npz")
	f.IntVar(&j.spent, "spent", 0, "last `round` that may contain your submission, if the state is "+
		"lost for good")
	f.StringVar(&j.receipts, "receipts", "", "`folder` for receipts of rounds, by federation; default: "+
		"receipts in --folder")
	f.BoolVar(&j.witness, "witness", false, "cosign the server's public log, if it continues what "+
		"this party has seen of it")
	f.StringVar(&j.book, "book", "", "`file` of what this party spends in all federations; default: "+
		"book in the folder")
	f.Uint64Var(&j.least, "least-number", 0, "with --spent: `number` above those of all sessions so far")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	switch {
	case given(j.train)+given(j.gradients)+given(j.rows.Rows) != 1:
		return misuse("give one of --train, --gradients and --rows")
	case (j.gradients == "") != (j.records == 0) || j.records < 0:
		return misuse("--gradients takes --records, how many this party has")
	case j.limit <= 0:
		return misuse("--train-time must be a time above 0, such as 10m")
	case !slices.Contains([]string{"", ".safetensors", ".npz"}, filepath.Ext(j.out)):
		return misuse("--out %s: its name says the format, so end it with .safetensors or .npz", j.out)
	}
	p, err := j.peer(ctx, std)
	if err != nil {
		return err
	}
	p.Receipts, p.Witness = j.receipts, j.witness
	p.Book = &consent.Book{File: cmp.Or(j.book, filepath.Join(j.folder, "book")), Key: p.Key}
	if err := j.resume(p); err != nil {
		return err
	}
	if err := permitted(p); err != nil {
		return err
	}
	if p.Trainer, err = j.trainer(ctx, p.Federation, p.Identity, j.folder, std); err != nil {
		return err
	}
	defer func() { over(p.Trainer) }()
	if err := j.agree(p.Federation, std); err != nil {
		return err
	}
	if err := started(); err != nil {
		return err
	}
	for {
		model, err := p.Run(ctx)
		if err := j.ran(model, err, std.out); err != nil || !j.followed {
			return err
		}
		over(p.Trainer)
		for p.Trainer = nil; p.Trainer == nil; {
			if err := j.follow(ctx, p, p.Successor, std); err != nil {
				return err
			}
			p.Trainer, err = j.trainer(ctx, p.Federation, p.Identity, p.Folder, std)
			if errors.Is(err, query.ErrRows) { // the party repairs them, or they fit the next one again
				fmt.Fprintln(std.out, err)
				err = p.Book.Decline(p.Federation.Settled)
			}
			if err != nil {
				return err
			}
		}
	}
}

// ran takes what a party's Run has returned, and returns why the command ends, nil if it need not.
// One that follows may have more to submit in the next federation.
func (j *joining) ran(model []byte, err error, w io.Writer) error {
	absent := errors.Is(err, party.ErrAbsent)
	if err != nil && !absent {
		return advise(err)
	}
	if err := j.ended(model, w); err != nil {
		return err
	}
	if absent && j.followed {
		fmt.Fprintln(w, err)
		return nil
	}
	return err
}

// writeModel writes the file of a model, as safetensors, in the format that a name says.
func writeModel(name string, model []byte) error {
	if filepath.Ext(name) == ".npz" {
		spec, values, _, err := tensor.Parse(model)
		if err != nil {
			return err
		}
		if model, err = spec.AppendNPZ(nil, values); err != nil {
			return err
		}
	}
	return os.WriteFile(name, model, 0o600)
}

// joining holds the flags of join or member.
type joining struct {
	address, fingerprint, name    string
	rosterFile, rosterPrint       string
	committeeFile, committeePrint string
	identity, key, policy, log    string
	folder, train, gradients, out string
	records                       int
	rows                          sources.Source
	limit                         time.Duration
	spent                         int
	least                         uint64
	book, receipts                string
	accept, followed, witness     bool
	resumes                       string // see resume
}

// flags defines the flags that join and member have in common.
func (j *joining) flags(f *flag.FlagSet, folder string) {
	f.StringVar(&j.address, "server", "", "the server's `URL`, https://host:port; or its nodes', "+
		"separated by commas")
	f.StringVar(&j.fingerprint, "fingerprint", "", "of its certificate, if no authority knows it")
	f.StringVar(&j.identity, "identity", "", "`file` of your identity")
	f.StringVar(&j.name, "federation", "", "`name` or identifier; default: the only one")
	f.StringVar(&j.rosterFile, "roster", "", "`file` of the roster")
	f.StringVar(&j.rosterPrint, "roster-fingerprint", "", "of the roster, instead of the file")
	f.StringVar(&j.committeeFile, "committee", "", "`file` of the committee, for one-message sums")
	f.StringVar(&j.committeePrint, "committee-fingerprint", "", "of it, instead of the file")
	f.StringVar(&j.folder, "folder", folder, "`folder` of your state")
	f.StringVar(&j.key, "key", "", "`file` with the key that seals it; default: one in the folder")
	f.StringVar(&j.policy, "policy", "", "TOML `file` with the terms that you insist on")
	f.BoolVar(&j.followed, "follow", false, "continue in federations that continue it, as --policy "+
		"says")
	f.BoolVar(&j.accept, "accept", false, "accept without asking")
	f.StringVar(&j.log, "log", "info", "lowest `level` that is logged")
}

// peer makes the party or member that the flags describe, in a federation that may not be within
// the policy: see permitted.
func (j *joining) peer(ctx context.Context, std streams) (*party.Party, error) {
	switch {
	case j.address == "" || j.identity == "":
		return nil, misuse("--server and --identity are required")
	case (j.rosterFile == "") == (j.rosterPrint == ""):
		return nil, misuse("give --roster or --roster-fingerprint")
	case j.committeeFile != "" && j.committeePrint != "":
		return nil, misuse("give --committee or --committee-fingerprint")
	}
	for _, of := range []struct{ list, print string }{{"roster", j.rosterPrint},
		{"committee", j.committeePrint}} {
		b, err := hex.DecodeString(of.print)
		if of.print != "" && (err != nil || len(b) != sha256.Size) {
			return nil, misuse("--%s-fingerprint: %.80q is not a fingerprint, which has 64 hexadecimal "+
				"digits", of.list, of.print)
		}
	}
	identity, err := keyfile.ReadIdentity(j.identity)
	if err != nil {
		return nil, err
	}
	p := &party.Party{Identity: identity, Folder: j.folder}
	if p.Log, err = logger(std.err, j.log); err != nil {
		return nil, err
	}
	if j.policy != "" {
		if p.Policy, err = consent.ReadPolicy(j.policy); err != nil {
			return nil, err
		}
	}
	if err := j.follows(p.Policy); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(j.folder, 0o700); err != nil {
		return nil, err
	}
	key, create := j.key, j.key == ""
	if create {
		key = filepath.Join(j.folder, "seal.key")
	}
	if p.Key, err = keyfile.SealKey(key, create); err != nil {
		return nil, err
	}
	if p.Server, err = party.NewServer(j.address, j.fingerprint, identity); err != nil {
		return nil, err
	}
	if err := p.Server.KeepCertificates(filepath.Join(j.folder, "certificates.json")); err != nil {
		return nil, err
	}
	if p.Federation, err = j.find(ctx, p.Server); err != nil {
		return nil, advise(err)
	}
	return p, nil
}

// permitted fails with [consent.ErrPolicy] if a federation is not within its party's policy. One
// that has ended by the party's book is not judged anew: nothing is sent in it, and with a policy
// that was tightened since the party could follow no other.
func permitted(p *party.Party) error {
	if p.Policy == nil {
		return nil
	}
	if p.Book != nil {
		entries, err := p.Book.Entries()
		if err != nil || slices.ContainsFunc(entries, func(e consent.Entry) bool {
			return e.ID == p.Federation.ID && !e.Ended.IsZero()
		}) {
			return err
		}
	}
	return p.Policy.Check(p.Federation.Settled)
}

// find works the federation out from the server's description and the roster that this party
// trusts, and refuses one whose identifier then differs.
func (j *joining) find(ctx context.Context, server *party.Server) (*federation.Federation, error) {
	listed, err := server.List(ctx)
	if err != nil {
		return nil, err
	}
	before, err := j.accepted()
	if err != nil {
		return nil, err
	}
	id, err := choose(listed, j.name, before.ID)
	if err != nil {
		return nil, err
	}
	said, err := server.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	var files federation.Files
	files.Roster, err = trusted("roster", j.rosterFile, j.rosterPrint,
		func() ([]byte, error) { return server.Roster(ctx, id) })
	if err != nil {
		return nil, err
	}
	if said.Committee != "" {
		if j.committeeFile == "" && j.committeePrint == "" {
			return nil, errors.New("a committee opens its one-message sums: give --committee or " +
				"--committee-fingerprint, as the members report it")
		}
		files.Committee, err = trusted("committee", j.committeeFile, j.committeePrint,
			func() ([]byte, error) { return server.Committee(ctx, id) })
		if err != nil {
			return nil, err
		}
	}
	return server.WorkOut(ctx, id, said, files)
}

// choose returns the identifier of the federation that a name stands for: among several, the one
// that was accepted before, so that a party that is started again continues in it, whatever the
// operator has declared since.
func choose(listed []exchange.Listed, name, accepted string) (id string, err error) {
	var found []exchange.Listed
	for _, l := range listed {
		if l.Forgotten && (l.ID == accepted || name != "" && (l.Name == name || l.ID == name)) {
			return "", fmt.Errorf("the federation %q ended, and its operator had its models and states "+
				"erased (forgotten): there is nothing to take part in; keep your book and receipts", l.Name)
		}
	}
	listed = slices.DeleteFunc(listed, func(l exchange.Listed) bool { return l.Forgotten })
	for _, l := range listed {
		if name == "" || l.Name == name || l.ID == name {
			found = append(found, l)
		}
	}
	switch {
	case len(listed) == 0:
		return "", errors.New("the server has no federation yet; try again when its operator has " +
			"declared one")
	case len(found) == 0:
		return "", fmt.Errorf("the server has no federation %q; --federation names one of %s", name,
			naming(listed))
	case len(found) == 1:
		return found[0].ID, nil
	}
	for _, l := range found {
		if l.ID == accepted {
			return l.ID, nil
		}
	}
	return "", fmt.Errorf("the server has several federations, and none of them was accepted in this "+
		"--folder; name one with --federation: %s", naming(found))
}

// naming lists names by which --federation tells federations apart: identifiers for those that
// share a name.
func naming(list []exchange.Listed) string {
	often := make(map[string]int)
	for _, l := range list {
		often[l.Name]++
	}
	var names []string
	for _, l := range list {
		if often[l.Name] > 1 {
			names = append(names, fmt.Sprintf("%s (%q)", l.ID, l.Name))
		} else {
			names = append(names, strconv.Quote(l.Name))
		}
	}
	return strings.Join(names, ", ")
}

// trusted reads a list that this side trusts: a file, or the server's copy if it has a fingerprint
// that was received over another channel.
func trusted(what, file, fingerprint string, fetch func() ([]byte, error)) ([]byte, error) {
	if file != "" {
		return os.ReadFile(file)
	}
	text, err := fetch()
	if err != nil {
		return nil, err
	}
	parsed, err := keyexchange.ParseRoster(text)
	if err != nil {
		return nil, err
	}
	if digest := parsed.Digest(); !strings.EqualFold(fingerprint, hex.EncodeToString(digest[:])) {
		return nil, fmt.Errorf("the server's %s does not have the given fingerprint; check that it was "+
			"copied correctly, and otherwise ask the operator and the others which list is genuine",
			what)
	}
	return text, nil
}

// advise explains what to do about an error that a server's address, certificate or roster causes.
func advise(err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var refusal *party.RefusalError
	var dialed *net.OpError
	var certificate x509.CertificateInvalidError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w; --server takes its door, which speaks HTTPS; the page, for operators, "+
			"does not", err)
	case errors.As(err, &refusal) && refusal.Kind == "" && refusal.Status == http.StatusBadRequest:
		return fmt.Errorf("%w; a door speaks HTTPS: is it --server https://… ?", err)
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired:
		return fmt.Errorf("%w; if the clock here is right, its operator must renew the certificate", err)
	case errors.As(err, &dialed) && dialed.Op == "dial":
		return fmt.Errorf("%w; is the server running, and --server its door's address? A proxy is taken "+
			"from HTTPS_PROXY", err)
	case errors.As(err, &unknown), errors.As(err, &name):
		return fmt.Errorf("%w; give --fingerprint, which the server prints when it starts and its "+
			"operator passes on", err)
	case errors.Is(err, party.ErrServer):
		return fmt.Errorf("%w; compare --server and --fingerprint with the operator's values, and do "+
			"not continue with another certificate", err)
	case errors.As(err, &refusal) && refusal.Kind == "stranger":
		return fmt.Errorf("%w; this identity's key is in no roster there: send the operator the line of "+
			"'hushsumd roster line NAME IDENTITY'", err)
	}
	return err
}

// accepted holds what the folder pins.
type accepted struct {
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Server string    `json:"server"`
	Text   string    `json:"text"`
	Digest string    `json:"text_digest"`
	Key    string    `json:"key"` // that signs the federation's decisions
	Time   time.Time `json:"time"`
}

// Files of a folder.
const (
	fileAccepted = "accepted.json"
	fileState    = "state.begun" // of package party, once it has a state
)

// accepted returns what the folder pins, zero if nothing was accepted.
func (j *joining) accepted() (before accepted, err error) {
	name := filepath.Join(j.folder, fileAccepted)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return before, nil
	}
	if err != nil {
		return before, err
	}
	if err := strict.JSON(text, &before); err != nil {
		return before, fmt.Errorf("%s: %w", name, err)
	}
	return before, nil
}

// agree shows what taking part means, unless exactly this was accepted before.
func (j *joining) agree(f *federation.Federation, std streams) error {
	before, err := j.accepted()
	switch {
	case err != nil:
		return err
	case before.ID == f.ID && before.Key != hex.EncodeToString(f.Key):
		return party.ErrKey
	case before.ID == f.ID:
		return nil
	case before.ID != "":
		if _, err := os.Stat(filepath.Join(j.folder, fileState)); err == nil {
			return fmt.Errorf("%s has the state of %q, which was accepted on %s, and a folder is for one "+
				"federation; for %q give another --folder, and so that what was spent counts --key %s, "+
				"and of a party --book %s", j.folder, before.Name, before.Time.Format(time.DateOnly),
				f.Job.Name, cmp.Or(j.key, filepath.Join(j.folder, "seal.key")),
				cmp.Or(j.book, filepath.Join(j.folder, "book")))
		}
		fmt.Fprintf(std.out, "This is not what was accepted on %s (%s).\n",
			before.Time.Format(time.DateOnly), before.Name)
	}
	fmt.Fprintf(std.out, "%s at %s\n\n", f.Job.Name, j.address)
	for _, line := range f.Meaning() {
		fmt.Fprintln(std.out, line)
	}
	digest := f.Settled.Roster().Digest()
	fmt.Fprintf(std.out, "\nidentifier         %s\n", f.ID)
	fmt.Fprintf(std.out, "digest of the job  %s\n", f.JobDigest)
	fmt.Fprintf(std.out, "roster fingerprint %x\n", digest)
	fmt.Fprintf(std.out, "key of decisions   %x\n", []byte(f.Key))
	if one := f.Settled.Oneshot(); one != nil {
		fmt.Fprintf(std.out, "of the committee   %x\n", one.Committee.Digest())
	}
	if !j.accept {
		fmt.Fprint(std.out, "Take part? [y/N] ")
		line, _ := bufio.NewReader(std.in).ReadString('\n')
		if line = strings.ToLower(strings.TrimSpace(line)); line != "y" && line != "yes" {
			return errors.New("not accepted; answer y to take part, or give --accept if nobody can answer")
		}
	}
	sum := sha256.Sum256(f.Text)
	b, err := json.MarshalIndent(accepted{f.ID, f.Job.Name, j.address, string(f.Text),
		hex.EncodeToString(sum[:]), hex.EncodeToString(f.Key), time.Now().UTC()}, "", "  ")
	if err != nil {
		return err
	}
	return store.FileStore(filepath.Join(j.folder, fileAccepted)).Save(b)
}
