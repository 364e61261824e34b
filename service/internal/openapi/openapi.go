// Package openapi compares the documents of the service's interfaces (OpenAPI 3.1) with
// its handlers, for tests.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/exchange"
)

// Document is an OpenAPI document that was read.
type Document struct {
	OpenAPI    string                           `json:"openapi"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Components struct {
		Schemas    map[string]schema    `json:"schemas"`
		Parameters map[string]parameter `json:"parameters"`
		Responses  map[string]response  `json:"responses"`
	} `json:"components"`

	mux *http.ServeMux // of the operations, to find which one serves a request
}

type operation struct {
	ID         string              `json:"operationId"`
	Summary    string              `json:"summary"`
	Security   *[]map[string]any   `json:"security"`
	Parameters []parameter         `json:"parameters"`
	Responses  map[string]response `json:"responses"`
}

type schema struct {
	Required   []string                   `json:"required"`
	Properties map[string]json.RawMessage `json:"properties"`
}

type parameter struct {
	Ref  string `json:"$ref"`
	Name string `json:"name"`
	In   string `json:"in"`
}

type response struct {
	Ref     string                     `json:"$ref"`
	Kinds   []string                   `json:"x-kinds"` // of the problems that it stands for
	Content map[string]json.RawMessage `json:"content"`
}

const problemType = "application/problem+json"

// Read reads a document. No key may occur twice, and every reference must resolve.
func Read(t testing.TB, text []byte) *Document {
	t.Helper()
	d := &Document{mux: http.NewServeMux()}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(d.OpenAPI, "3.1.") {
		t.Errorf("version %q", d.OpenAPI)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := unique(decoder, ""); err != nil {
		t.Error(err)
	}
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	lead(t, whole, whole)
	for path, operations := range d.Paths {
		for method, o := range operations {
			for k, p := range o.Parameters {
				if name, found := strings.CutPrefix(p.Ref, "#/components/parameters/"); found {
					o.Parameters[k] = d.Components.Parameters[name]
				}
			}
			for status, r := range o.Responses {
				if name, found := strings.CutPrefix(r.Ref, "#/components/responses/"); found {
					o.Responses[status] = d.Components.Responses[name]
				}
			}
			pattern := strings.ToUpper(method) + " " + path
			if strings.HasSuffix(path, "/") {
				pattern += "{$}"
			}
			d.mux.Handle(pattern, handlerOf{o})
		}
	}
	return d
}

// unique reads a value and fails if an object has a key twice.
func unique(d *json.Decoder, at string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		seen := make(map[any]bool)
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return err
			}
			if seen[key] {
				return fmt.Errorf("%s has %v twice", at, key)
			}
			seen[key] = true
			if err := unique(d, fmt.Sprint(at, "/", key)); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for d.More() {
			if err := unique(d, at+"/…"); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token()
	if err == io.EOF {
		err = nil
	}
	return err
}

// lead follows all references in a part of a document.
func lead(t testing.TB, whole, part any) {
	t.Helper()
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			lead(t, whole, p)
		}
	case map[string]any:
		for key, p := range part {
			lead(t, whole, p)
			to, isText := p.(string)
			if key != "$ref" || !isText {
				continue
			}
			at := whole
			for _, step := range strings.Split(strings.TrimPrefix(to, "#/"), "/") {
				inner, _ := at.(map[string]any)
				at = inner[step]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", to)
			}
		}
	}
}

// handlerOf is an operation as a mux finds it.
type handlerOf struct{ *operation }

// ServeHTTP is never called.
func (handlerOf) ServeHTTP(http.ResponseWriter, *http.Request) {}

// Check compares the document with the patterns of all handlers and the table of refusals: each is
// in the other; path parameters are described; every documented refusal has kinds of the table with
// its status, except those listed in without, such as "login 401".
func (d *Document) Check(
	t testing.TB, routes []string, refusals map[string]exchange.Refusal, without ...string,
) {
	t.Helper()
	described, ids, kinds := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for path, operations := range d.Paths {
		for method, o := range operations {
			described[strings.ToUpper(method)+" "+path] = true
			if o.ID == "" || ids[o.ID] || o.Summary == "" || o.Security == nil {
				t.Errorf("%s %s: no name of its own, no summary, or nothing about security", method, path)
			}
			ids[o.ID] = true
			d.parameters(t, path, o)
			for status, r := range o.Responses {
				code, err := strconv.Atoi(status)
				if err != nil {
					t.Errorf("%s: status %s", o.ID, status)
				}
				if code < 400 || slices.Contains(without, o.ID+" "+status) {
					continue
				}
				if len(r.Kinds) == 0 || r.Content[problemType] == nil {
					t.Errorf("%s: %s is no problem, or not said which", o.ID, status)
				}
				for _, kind := range r.Kinds {
					if refusals[kind].Status != code {
						t.Errorf("%s: %s %s; the table has %d", o.ID, status, kind, refusals[kind].Status)
					}
				}
			}
		}
	}
	for _, r := range d.Components.Responses {
		for _, kind := range r.Kinds {
			kinds[kind] = true
		}
	}
	for kind := range refusals {
		if !kinds[kind] {
			t.Errorf("the document does not have the problem %s", kind)
		}
	}
	for _, route := range routes {
		route = strings.TrimSuffix(route, "{$}")
		if !described[route] {
			t.Errorf("%s is not described", route)
		}
		delete(described, route)
	}
	for route := range described {
		t.Errorf("%s is described, and nothing handles it", route)
	}
}

// parameters compares the parameters of a path with those that are described.
func (d *Document) parameters(t testing.TB, path string, o *operation) {
	t.Helper()
	for _, p := range o.Parameters {
		if in := strings.Contains(path, "{"+p.Name+"}"); in != (p.In == "path") {
			t.Errorf("%s: the parameter %q is in the %s", o.ID, p.Name, p.In)
		}
	}
	for _, step := range strings.Split(path, "/") {
		name, isParameter := strings.CutPrefix(step, "{")
		name = strings.TrimSuffix(name, "}")
		has := func(p parameter) bool { return p.Name == name }
		if isParameter && !slices.ContainsFunc(o.Parameters, has) {
			t.Errorf("%s does not describe %s", o.ID, step)
		}
	}
}

// Allows fails the test if a request got an answer that the document does not have: for its
// operation a status, or a kind of problem; for a path without one anything but route and method.
// kind is empty for an answer that is no problem.
func (d *Document) Allows(t testing.TB, r *http.Request, status int, kind string) {
	t.Helper()
	h, _ := d.mux.Handler(r)
	found, isOperation := h.(handlerOf)
	if !isOperation {
		if kind != "route" && kind != "method" {
			t.Errorf("%s %s: %d %s, and the document does not have it", r.Method, r.URL.Path, status, kind)
		}
		return
	}
	answer, documented := found.Responses[strconv.Itoa(status)]
	if !documented || kind != "" && !slices.Contains(answer.Kinds, kind) {
		t.Errorf("%s: it answers %d %s, which the document does not have", found.ID, status, kind)
	}
}

// Fields compares a schema with the struct that is sent or read as it: each has the fields of the
// other, and the required ones are those that are never omitted.
func (d *Document) Fields(t testing.TB, name string, sent any) {
	t.Helper()
	s, found := d.Components.Schemas[name]
	if !found {
		t.Errorf("there is no schema %s", name)
	}
	has := make(map[string]bool)
	for _, f := range reflect.VisibleFields(reflect.TypeOf(sent)) {
		field, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
		if field == "-" || f.Anonymous || !f.IsExported() {
			continue
		}
		has[field] = true
		if s.Properties[field] == nil {
			t.Errorf("%s lacks %q", name, field)
		}
		if always := !tagged || !strings.Contains(options, "omit"); always !=
			slices.Contains(s.Required, field) {
			t.Errorf("%s: whether %q is always there", name, field)
		}
	}
	for field := range s.Properties {
		if !has[field] {
			t.Errorf("%s has %q, which is never sent", name, field)
		}
	}
}

// Job fails the test unless a field of a schema is a text for which the document has the whole
// schema of a job.
func (d *Document) Job(t testing.TB, name, field string) {
	t.Helper()
	var described struct {
		Schema struct {
			Ref string `json:"$ref"`
		} `json:"contentSchema"`
	}
	err := json.Unmarshal(d.Components.Schemas[name].Properties[field], &described)
	if err != nil || described.Schema.Ref != "#/components/schemas/Job" {
		t.Errorf("%s of %s is not described by the schema of a job: %v", field, name, err)
	}
	seen := 0
	for f := range job.Fields() {
		table, _, _ := strings.Cut(f.Path, ".")
		table = strings.TrimSuffix(table, "[]") // of a list
		if seen++; d.Components.Schemas["Job"].Properties[table] == nil {
			t.Errorf("the schema of a job lacks %s", table)
		}
	}
	if seen < 50 {
		t.Errorf("%d fields: the test does not see them", seen)
	}
}

// Table reads the refusals of a documentation page: rows with status, kinds and what to do,
// under a heading.
func Table(t testing.TB, page, heading string) map[string]int {
	t.Helper()
	_, text, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("there is no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	out := make(map[string]int)
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		status, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		for _, kind := range strings.Split(cells[2], ",") {
			kind = strings.TrimSpace(kind)
			if out[kind] != 0 {
				t.Errorf("%s is there twice", kind)
			}
			out[kind] = status
		}
	}
	return out
}

// Compare compares a table of the documentation with that of the program.
func Compare(t testing.TB, table map[string]int, refusals map[string]exchange.Refusal) {
	t.Helper()
	for kind, r := range refusals {
		if table[kind] != r.Status {
			t.Errorf("%s is %d, and documented as %d", kind, r.Status, table[kind])
		}
		if r.Title == "" {
			t.Errorf("%s has no title", kind)
		}
	}
	for kind := range table {
		if refusals[kind].Status == 0 {
			t.Errorf("%s is documented, and nothing answers it", kind)
		}
	}
}
