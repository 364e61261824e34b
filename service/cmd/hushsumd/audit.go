package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
)

// audited is how "federation audit" writes a log.
type audited struct{ orders, csv, json bool }

// any reports whether a flag of "federation audit" is given besides --json, which others have too.
func (a audited) any() bool { return a.orders || a.csv }

// audit writes the whole audit log of a federation, page by page.
func (o *operator) audit(ctx context.Context, name string, as audited, std streams) error {
	s, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	kind := ""
	if as.orders {
		kind = "&kind=" + record.KindOrder
	}
	out, missing := bufio.NewWriter(std.out), 0
	for from := 1; from > 0; {
		var p page.AuditPage
		path := fmt.Sprintf("/v1/federations/%s/audit?from=%d%s", s.ID, from, kind)
		err := o.ask(ctx, http.MethodGet, path, nil, "", &p)
		if err != nil && from > 1 {
			err = fmt.Errorf("the log is written up to line %d, and is cut there: %w", from-1, err)
		}
		if err == nil {
			err = writeAudit(out, p.Lines, as, from == 1)
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
		from, missing = p.Next, p.Missing
	}
	if missing > 0 {
		return fmt.Errorf("the log lacks %s, which the server cannot read; see "+
			"'hushsumd federation show %s' and the server's log", numbers.Plural(missing, "decision"),
			s.Name)
	}
	return nil
}

// writeAudit writes a page of an audit log; first is whether it is the first.
func writeAudit(out *bufio.Writer, lines []record.Line, as audited, first bool) error {
	if as.csv {
		return page.WriteAudit(out, lines, first)
	}
	for _, l := range lines {
		if as.json {
			b, err := json.Marshal(l)
			if err != nil {
				return err
			}
			_, _ = out.Write(append(b, '\n')) // Flush fails if this does
			continue
		}
		fmt.Fprintf(out, "%d  %s  %s", l.Number, l.Time.UTC().Format(time.RFC3339), l.Event)
		if l.Round > 0 {
			fmt.Fprintf(out, ", round %d", l.Round)
		}
		if l.Parties > 0 {
			fmt.Fprintf(out, ", %s", numbers.Plural(l.Parties, "party"))
		}
		if l.Spent != nil {
			fmt.Fprintf(out, ", spent %v", l.Spent)
		}
		if l.Note != "" {
			fmt.Fprintf(out, ": %s", l.Note)
		}
		fmt.Fprintln(out)
	}
	return nil
}
