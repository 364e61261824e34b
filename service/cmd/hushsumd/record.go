package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/service/page"
)

// errRecord: a check has found damage.
var errRecord = errors.New("the record is damaged: see docs/service-mend.md, When a disk lies")

func recordCommand(ctx context.Context, args []string, std streams) error {
	f := flags("record", "record check|heal|choose [NAME HASH] [flags]", `
"check" has a node read everything that is recorded: definitions, decisions in JetStream and in its
own file, and the objects that they name; it prints what is damaged, and ends with exit code 1 if
anything is. Each node also does so once a day. "heal --from BACKUP" takes from a backup what the
record has lost, by the digests that decisions name, and nothing else. "choose NAME HASH" says which
of several histories of a federation stands, by the hash that check prints: what the others have is
named as lost, and stays in the nodes' files as evidence.

`+about, std)
	o, read := operatorFlags(f)
	from := f.String("from", "", "of heal, the `FILE` of a backup")
	asJSON := f.Bool("json", false, "of check, print JSON")
	words, err := parseAmong(f, args, 3)
	if err != nil {
		return err
	}
	what := ""
	if len(words) > 0 {
		what = words[0]
	}
	switch {
	case !slices.Contains([]string{"check", "heal", "choose"}, what):
		return misuse("use check, heal or choose")
	case what == "choose" != (len(words) == 3), what != "choose" && len(words) > 1:
		return misuse("choose takes a name and a hash, and the others nothing")
	case (what == "heal") != (*from != ""):
		return misuse("heal takes --from BACKUP, and the others do not")
	case *asJSON && what != "check":
		return misuse("--json is for check")
	}
	if err := read(); err != nil {
		return err
	}
	switch what {
	case "check":
		return o.checkRecord(ctx, *asJSON, std)
	case "heal":
		took := make(map[string]int)
		if err := o.upload(ctx, "/v1/record/heal", *from, &took); err != nil {
			return err
		}
		fmt.Fprintf(std.out, "taken from %s: %d definitions, %d decisions, %d objects\n", *from,
			took["definitions"], took["entries"], took["objects"])
		return nil
	}
	all, err := o.checks(ctx)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Name == words[1] || x.ID == words[1] {
			path := "/v1/federations/" + x.ID + "/histories/" + words[2] + "/choose"
			answer, err := o.send(ctx, http.MethodPost, path, nil, nil, "")
			if err != nil {
				return err
			}
			return answer.Body.Close()
		}
	}
	return fmt.Errorf("there is no federation %q; see 'hushsumd record check'", words[1])
}

// checks has a node read all of its record.
func (o *operator) checks(ctx context.Context) (all []page.Checked, err error) {
	return all, o.ask(ctx, http.MethodGet, "/v1/record", nil, "", &all)
}

// checkRecord prints what a node finds.
func (o *operator) checkRecord(ctx context.Context, asJSON bool, std streams) error {
	all, err := o.checks(ctx)
	if err != nil {
		return err
	}
	damaged := slices.ContainsFunc(all, func(x page.Checked) bool {
		return len(x.Problems) > 0 || len(x.Missing) > 0
	})
	if asJSON {
		err = json.NewEncoder(std.out).Encode(all)
	} else {
		for _, x := range all {
			fmt.Fprintf(std.out, "%s: %s", cmp.Or(x.Name, x.ID), numbers.Plural(x.Entries, "decision"))
			if len(x.Problems) == 0 && len(x.Missing) == 0 {
				fmt.Fprint(std.out, ", whole")
			}
			fmt.Fprintln(std.out)
			for _, lost := range x.Missing {
				fmt.Fprintf(std.out, "  number %v: in no copy\n", lost)
			}
			for _, note := range x.Notes {
				fmt.Fprintf(std.out, "  no harm: %s\n", note)
			}
			for _, problem := range x.Problems {
				fmt.Fprintf(std.out, "  %s\n", problem)
			}
			for _, h := range x.Forks {
				fmt.Fprintf(std.out, "  history %s\n    of %s, the last by node %s at %s, in round %d; "+
					"its own from number %d on\n", h.Last, numbers.Plural(h.Entries, "decision"), h.Node,
					h.Time.Format("2006-01-02 15:04:05"), h.Round, h.From)
			}
		}
	}
	if err == nil && damaged {
		err = errRecord
	}
	return err
}
