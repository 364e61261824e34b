package page

import (
	"net/http"
	"net/url"

	"github.com/hushsum/hushsum/service/runner"
)

// This file has a person confirm orders: by a button if an order can be undone, otherwise by typing
// the name.

// final explains the orders that cannot be undone.
var final = map[string]string{
	"end": "The federation ends for good. An open round gets no sum, and its epsilon is spent. To " +
		"continue later takes another federation, which every party has to accept.",
	Forget: "Print its report first: there is none afterwards. The federation's models, states and " +
		"sums are erased for good, and its parties are told. Its decisions stay, with the audit log, " +
		"and so does what its parties have spent.",
	ForgetNames: "All that names a party, a member or an operator is erased for good: the roster, " +
		"the texts of the audit log, and what parties have spent by name. Decisions about numbers stay.",
	"exclude": "From now on nobody waits for the party, and it is in no sum, until it is " +
		"readmitted. The audit log names the operator who ordered this.",
}

var titles = map[string]string{"end": "End ", Forget: "Forget ", ForgetNames: "Erase the names of "}

// confirmation is a form that asks for the name.
type confirmation struct {
	ID, Name, Party    string
	Title, Means, Want string
	Action             string
	Wrong              bool
}

// confirmation returns the form of an order.
func (s *site) confirmation(r *http.Request, o Order) (*confirmation, error) {
	status, err := s.Federations.Status(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c := &confirmation{ID: status.ID, Name: status.Name, Party: o.Party, Means: final[o.What],
		Title: titles[o.What] + status.Name, Want: status.Name, Action: "/federations/" + status.ID}
	if o.Party != "" {
		c.Title, c.Want = "Leave "+o.Party+" out", o.Party
		c.Action += "/parties/" + url.PathEscape(o.Party)
	}
	c.Action += "/" + o.What
	return c, nil
}

func (s *site) confirmEnd(w http.ResponseWriter, r *http.Request) {
	s.confirm(w, r, Order{What: "end"})
}

func (s *site) confirmForget(w http.ResponseWriter, r *http.Request) {
	s.confirm(w, r, Order{What: Forget})
}

func (s *site) confirmExclude(w http.ResponseWriter, r *http.Request) {
	s.confirm(w, r, Order{What: "exclude", Party: r.PathValue("party")})
}

func (s *site) confirm(w http.ResponseWriter, r *http.Request, o Order) {
	c, err := s.confirmation(r, o)
	if err != nil {
		fail(w, r, err)
		return
	}
	s.render(w, "confirm.html", c)
}

// form carries out a button's order.
func (s *site) form(w http.ResponseWriter, r *http.Request) {
	o := Order{What: r.PathValue("what"), Party: r.PathValue("party"), Who: who(r).Name}
	switch {
	case !o.known():
		problem(w, r, "route", ordersAre)
		return
	case isSigned(r): // which could be sent again: it names no state
		problem(w, r, "match", "a signed order goes to /v1"+r.URL.Path+", with If-Match")
		return
	}
	if final[o.What] != "" {
		c, err := s.confirmation(r, o)
		if err != nil {
			fail(w, r, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
		if r.PostFormValue("name") != c.Want {
			if !forPeople(r) {
				problem(w, r, "name", "send the name as name=…, as the page's form does")
				return
			}
			c.Wrong = true
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(refusals["name"].Status)
			s.render(w, "confirm.html", c)
			return
		}
	}
	after, err := s.Federations.Do(r.Context(), r.PathValue("id"), o)
	if err != nil {
		fail(w, r, err)
		return
	}
	if after.State == runner.Forgotten {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	http.Redirect(w, r, "/federations/"+r.PathValue("id"), http.StatusSeeOther)
}
