package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/runner"
)

func federationCommand(ctx context.Context, args []string, std streams) error {
	f := flags("federation", "federation ORDER [FILE|NAME] [FOLDER|PARTY]", `
The orders are check, create, list, show, audit, head, chain, pause, resume, end, exclude, readmit,
after and forget.

"check FILE" reads a job's file and the roster next to it, and explains what it means for a party
and what the server needs. The others ask a server, at its page's address: "create FILE" declares a
federation from a job, whose [world] is not sent, and prints its identifier last, "list" lists them,
"show NAME" shows one, "audit NAME" writes its whole audit log, a line for each event, "head NAME"
prints the signed head of its decisions, a few lines to note somewhere, "chain NAME" prints all its
decisions with their head, for 'hushsum verify chain', and "pause", "resume" and "end" do as they
say; an ended federation cannot be resumed. "exclude NAME PARTY" leaves a party out of all later
sums, until "readmit NAME PARTY", which also works for a party that has spoilt a round; the audit
log has both. "after NAME FOLDER" writes the files of a federation that continues one that has
ended: its job, roster and last model, and what its parties have spent, which counts. Edit these
files, and create it with --identity: this operator signs that it continues the other, so that
parties follow. "forget NAME NAME", with the name twice since it is final, erases the models, states
and sums of a federation that has ended, and with --names all names of it too; its decisions stay,
"list --all" lists it, and its parties are told; print its report first. All but check take an
operator's token from --token-file or HUSHSUM_TOKEN, or --identity FILE of a key in the server's
--operators, which signs the requests.`, std)
	o, read := operatorFlags(f)
	o.unsignedFlag(f)
	asJSON := f.Bool("json", false, "print JSON; of audit, an object a line")
	var as audited
	f.BoolVar(&as.orders, "orders", false, "of audit, only what was ordered")
	f.BoolVar(&as.csv, "csv", false, "of audit, print CSV")
	all := f.Bool("all", false, "of list, also those that were forgotten")
	names := f.Bool("names", false, "of forget, erase all names too")
	words, err := parseAmong(f, args, 3)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return misuse("name an order: %s", strings.Join(orders, ", "))
	}
	what, argument := words[0], ""
	if len(words) > 1 {
		argument = words[1]
	}
	switch {
	case what == "after" && len(words) < 3:
		return misuse("after takes a name and a folder")
	case what == page.Forget && (len(words) < 3 || words[1] != words[2]):
		return misuse("forget takes the name twice: what it erases does not come back")
	case ofParty(what) && len(words) < 3:
		return misuse("%s takes a name and a party", what)
	case what != "after" && what != page.Forget && !ofParty(what) && len(words) == 3:
		return misuse("%q is one argument too many", words[2])
	}
	if !slices.Contains(orders, what) {
		return misuse("%q is none of %s", what, strings.Join(orders, ", "))
	}
	if what != "list" && argument == "" {
		return misuse("%s takes a name or file", what)
	}
	switch as.json = *asJSON; {
	case o.unsigned && what != "create":
		return misuse("--unsigned is for create")
	case as.any() && what != "audit":
		return misuse("--orders and --csv are for audit")
	case *all && what != "list":
		return misuse("--all is for list")
	case *names && what != page.Forget:
		return misuse("--names is for forget")
	case as.csv && as.json:
		return misuse("--csv and --json exclude each other")
	}
	if err := read(); err != nil {
		return err
	}
	switch what {
	case "check":
		return check(argument, std)
	case "create":
		return o.create(ctx, argument, std)
	case "list":
		return o.list(ctx, *all, *asJSON, std)
	case "show":
		s, err := o.find(ctx, argument)
		if err != nil {
			return err
		}
		return show(s, *asJSON, std)
	case "audit":
		return o.audit(ctx, argument, as, std)
	case "head", "chain":
		return o.signed(ctx, what, argument, std)
	case page.Forget:
		return o.forget(ctx, argument, *names, std)
	case "after":
		return o.after(ctx, argument, words[2], std)
	case "pause", "resume", "end", "exclude", "readmit":
		party := ""
		if ofParty(what) {
			party = words[2]
		}
		after, err := o.order(ctx, what, argument, party)
		if err != nil {
			return err
		}
		if what == "exclude" {
			fmt.Fprint(std.err, lacking(after, party))
		}
		return show(after, *asJSON, std)
	}
	return nil
}

// order gives an order that is based on the federation's present status, and returns its status
// after that. The end is final: where its answer is lost, order looks again and asks once more,
// which succeeds if the federation has ended. Any other order is the operator's to repeat, who may
// want something else by then.
func (o *operator) order(ctx context.Context, what, name, party string) (*runner.Status, error) {
	for again := what == "end"; ; again = false {
		s, err := o.find(ctx, name)
		if err != nil {
			return nil, err
		}
		path := "/v1/federations/" + s.ID + "/"
		if party != "" {
			path += "parties/" + url.PathEscape(party) + "/"
		}
		after := new(runner.Status)
		err = o.ask(ctx, http.MethodPost, path+what, nil, strconv.Quote(s.Orders), after)
		if !again || !isLost(err) {
			return after, err
		}
	}
}

// lacking warns that no sum is possible without a party that is left out; empty: sums are possible.
func lacking(s *runner.Status, party string) string {
	left := 0
	for _, p := range s.Parties {
		if p.State != "left out" {
			left++
		}
	}
	if left >= s.Least || s.State == "ended" {
		return ""
	}
	return fmt.Sprintf("a sum needs %d of %s, and without %s %d are left: no round has a sum until "+
		"'hushsumd federation readmit %s %s', or end it\n", s.Least,
		numbers.Plural(len(s.Parties), "party"), party, left, s.Name, party)
}

var orders = []string{"check", "create", "list", "show", "pause", "resume", "end", "exclude",
	"readmit", "after", "audit", "head", "chain", page.Forget}

// ofParty reports whether an order concerns one party.
func ofParty(what string) bool { return what == "exclude" || what == "readmit" }

// check explains what a file declares.
func check(file string, std streams) error {
	f, files, err := federation.ReadFiles(file)
	if err != nil {
		return inFile(file, err)
	}
	digest := f.Settled.Roster().Digest()
	for _, note := range append(notes(f), f.Left(files)...) {
		fmt.Fprintf(std.out, "%s\n\n", note)
	}
	fmt.Fprintf(std.out, "%s\nidentifier          %s\n", f.Job.Name, f.ID)
	fmt.Fprintf(std.out, "digest of the job   %s\n", f.JobDigest)
	fmt.Fprintf(std.out, "roster fingerprint  %x\n\n", digest)
	for _, line := range slices.Concat(f.Meaning(), []string{""}, f.Needs()) {
		fmt.Fprintln(std.out, line)
	}
	return nil
}

// notes lists what the operator who declares a federation should know about its file.
func notes(f *federation.Federation) (list []string) {
	if f.World {
		list = append(list, "[world] is for simulations and is left out: it is sent to nobody")
	}
	return list
}

func (o *operator) create(ctx context.Context, file string, std streams) error {
	f, files, err := federation.ReadFiles(file)
	if err != nil {
		return inFile(file, err)
	}
	for _, note := range append(notes(f), f.Left(files)...) {
		fmt.Fprintln(std.out, note)
	}
	if files.Succession, err = o.succession(f); err != nil {
		return err
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := o.ask(ctx, http.MethodPost, "/v1/federations", page.Declared(*files), "",
		&made); err != nil {
		return err
	}
	fmt.Fprintln(std.out, made.ID)
	return nil
}

// succession has the operator sign that a federation continues another. Without a key it refuses,
// unless the operator wants that: it cannot be signed later, and a study continues along one path.
func (o *operator) succession(f *federation.Federation) ([]byte, error) {
	switch {
	case f.Settled.Before() == nil, o.unsigned:
		return nil, nil
	case o.identity == nil:
		return nil, fmt.Errorf("no operator's key signs that %s continues the last federation: "+
			"parties with --follow would continue neither in it nor in any after it, and would have to "+
			"join by hand, each in a new folder; sign it with --identity FILE, or add --unsigned",
			f.Job.Name)
	}
	return f.Sign(o.identity)
}

// unsignedFlag declares the flag by which an operator wants no signature.
func (o *operator) unsignedFlag(f *flag.FlagSet) {
	f.BoolVar(&o.unsigned, "unsigned", false, "declare without a signature a federation that "+
		"continues another: its parties do not follow")
}

// after writes the files of a federation that continues one that has ended.
func (o *operator) after(ctx context.Context, name, folder string, std streams) error {
	s, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	var next page.Declared
	err = o.ask(ctx, http.MethodGet, "/v1/federations/"+s.ID+"/after", nil, "", &next)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	job := filepath.Join(folder, "job.toml")
	if _, err := os.Stat(job); err == nil {
		return fmt.Errorf("%s already exists; name another folder", job)
	}
	for _, x := range []struct {
		name string
		text []byte
	}{
		{"roster.txt", next.Roster}, {"committee.txt", next.Committee}, {"before.json", next.Before},
		{"model.safetensors", next.Model}, {"job.toml", next.Text},
	} {
		if x.text == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, x.name), x.text, 0o600); err != nil {
			return err
		}
	}
	others, err := o.all(ctx)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Before == s.ID {
			fmt.Fprintf(std.out, "%s continues %s already: before.json has nothing of what it spends, and "+
				"parties follow one of the two\n", other.Name, s.Name)
		}
	}
	fmt.Fprintf(std.out, "edit these files, roster.txt too; run 'hushsumd federation check %s' and "+
		"declare it with 'hushsumd federation create %s --identity FILE'\n", job, job)
	return nil
}

func (o *operator) all(ctx context.Context) (list []*runner.Status, err error) {
	return list, o.ask(ctx, http.MethodGet, "/v1/federations?all=1", nil, "", &list)
}

// find finds a federation by its name or identifier.
func (o *operator) find(ctx context.Context, name string) (*runner.Status, error) {
	list, err := o.all(ctx)
	if err != nil {
		return nil, err
	}
	var found []*runner.Status
	for _, s := range list {
		if s.Name == name || s.ID == name {
			found = append(found, s)
		}
	}
	if len(found) > 1 { // one that was forgotten may have had the name
		found = slices.DeleteFunc(found, func(s *runner.Status) bool {
			return s.State == runner.Forgotten && s.ID != name
		})
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no federation %q; see 'hushsumd federation list'", name)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d federations are called %q; use the identifier", len(found), name)
}

// signed prints the signed head of a federation's decisions, or all of them.
func (o *operator) signed(ctx context.Context, what, name string, std streams) error {
	s, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	answer, err := o.send(ctx, http.MethodGet, "/v1/federations/"+s.ID+"/"+what, nil, nil, "")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(std.out, answer.Body)
	return err
}

// forget erases what a federation that has ended no longer needs, and its names if that is wanted.
func (o *operator) forget(ctx context.Context, name string, names bool, std streams) error {
	s, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	do := func(what string) error {
		path := "/v1/federations/" + s.ID + "/" + what
		return o.ask(ctx, http.MethodPost, path, nil, strconv.Quote(s.Orders), s)
	}
	if s.State != runner.Forgotten {
		err = do(page.Forget)
	}
	if err == nil && names {
		err = do(page.ForgetNames)
	}
	if err == nil {
		fmt.Fprintf(std.out, "%s: %s\n", s.Name, s.Why)
	}
	return err
}

func (o *operator) list(ctx context.Context, all, asJSON bool, std streams) error {
	list, err := o.all(ctx)
	if err != nil {
		return err
	}
	if !all {
		list = slices.DeleteFunc(list, func(s *runner.Status) bool { return s.State == runner.Forgotten })
	}
	if asJSON {
		return json.NewEncoder(std.out).Encode(list)
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tROUND\tLOST\tEPSILON\tPARTIES\tID\tABOUT")
	for _, s := range list {
		round, lost, parties := fmt.Sprint(s.Round), fmt.Sprint(s.Lost), fmt.Sprint(len(s.Parties))
		epsilon, about := "none", ""
		if !s.Known() {
			round, lost, parties = "-", "-", "-"
		}
		if b := s.Budget; b != nil {
			epsilon, about = "-", fmt.Sprintf("at delta %v for %v", b.Target().Delta, b.Statement())
			if s.Spent != nil {
				epsilon = s.Spent.Most()
			}
			epsilon += fmt.Sprintf(" of %v", b.Target().Epsilon)
		}
		fmt.Fprintf(w, "%s\t%s\t%s/%d\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.State, round, s.Rounds, lost,
			epsilon, parties, s.ID, about)
	}
	return w.Flush()
}

func show(s *runner.Status, asJSON bool, std streams) error {
	if asJSON {
		return json.NewEncoder(std.out).Encode(s)
	}
	fmt.Fprintf(std.out, "%s  %s\n", s.Name, s.ID)
	if s.Job != "" {
		fmt.Fprintf(std.out, "job  %s\n", s.Job)
	}
	if s.State == runner.Forgotten {
		fmt.Fprintf(std.out, "%s: %s\n%s begun\n", s.State, s.Why, numbers.Plural(s.Round, "round"))
		if s.Spent != nil {
			wrap(std.out, "the party with most has spent %v", s.Spent)
		}
		return nil
	}
	fmt.Fprint(std.out, s.State)
	for _, more := range []string{s.Stage, s.Why} {
		if more != "" {
			fmt.Fprintf(std.out, ", %s", more)
		}
	}
	fmt.Fprintln(std.out)
	if lacks := s.Lacks(); lacks != "" {
		fmt.Fprintln(std.out, lacks)
	}
	leader := "led by " + s.Leader
	if s.Leader == "" {
		fmt.Fprintln(std.out, "no node answers for it at the moment: one leads it again soon, if more "+
			"than half of the nodes are up and its record opens")
		if !s.Known() {
			return nil
		}
		leader = "as recorded at " + s.Recorded.UTC().Format(time.RFC3339)
	}
	session := ""
	if s.Session > 0 { // which a party that has lost its state asks for
		session = fmt.Sprintf("session %d, ", s.Session)
	}
	fmt.Fprintf(std.out, "%sround %d of %d, %d lost, %s\n", session, s.Round, s.Rounds, s.Lost, leader)
	if s.Head != "" {
		fmt.Fprintf(std.out, "decision %d, head %s\n", s.Decisions, s.Head)
	}
	if s.Spent != nil {
		wrap(std.out, "the party with most has spent %v", s.Spent)
	}
	if s.Budget != nil {
		wrap(std.out, "no party spends more than %v", s.Budget)
	}
	if s.Study != nil {
		wrap(std.out, "its study may spend %v", s.Study.Budget)
		if s.Study.Spent != nil {
			wrap(std.out, "by its plan, %v, the party with most has spent %v", s.Study.Plan, s.Study.Spent)
		}
	}
	if s.Asks > 0 {
		fmt.Fprintf(std.out, "it asks %s: see 'hushsumd query %s'\n", numbers.Plural(s.Asks, "query"),
			s.Name)
	}
	if s.Since != nil {
		fmt.Fprintf(std.out, "the step began at %s", s.Since.UTC().Format(time.RFC3339))
		if s.Until != nil {
			fmt.Fprintf(std.out, ", and waits until %s at the latest", s.Until.UTC().Format(time.RFC3339))
		}
		fmt.Fprintln(std.out)
	}
	for _, p := range s.Parties {
		fmt.Fprintf(std.out, "  %-30s %s\n", p.Name, standing(s, &p))
	}
	for _, p := range s.Committee {
		fmt.Fprintf(std.out, "  %-30s %s, of the committee\n", p.Name, standing(s, &p))
	}
	return nil
}

// standing returns a party's state, and whether the round waits for the party. Whether a party is
// there after the end says nothing, and is left out.
func standing(s *runner.Status, p *runner.PartyStatus) string {
	switch {
	case s.State == "ended" && p.State == "gone":
		return "-"
	case p.Awaited:
		return p.State + ", waited for"
	}
	return p.State
}
