package door

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Problem is an error as the door reports it (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// Refusal holds what all problems of a kind have in common.
type Refusal struct {
	Status int
	Title  string
}

// refusals are the kinds of problems, each with its status and title.
var refusals = map[string]Refusal{
	"rate":      {http.StatusTooManyRequests, "Too many requests from this party or address"},
	"route":     {http.StatusNotFound, "There is no such resource"},
	"method":    {http.StatusMethodNotAllowed, "The resource does not have this method"},
	"query":     {http.StatusBadRequest, "The query cannot be read"},
	"unsigned":  {http.StatusUnauthorized, "The request is not signed as required"},
	"signature": {http.StatusUnauthorized, "The signature does not verify"},
	"clock":     {http.StatusUnauthorized, "The request was signed at another time"},
	"stranger":  {http.StatusForbidden, "The key is not in the federation's roster"},
	"unknown":   {http.StatusNotFound, "There is no such federation"},
	"length":    {http.StatusLengthRequired, "The body's length must be given"},
	"oversized": {http.StatusRequestEntityTooLarge, "The body is longer than any message that is due"},
	"due":       {http.StatusConflict, "No such message is due from this party"},
	"copied":    {http.StatusConflict, "The question is a copy, or older than another"},
	"offset":    {http.StatusConflict, "The piece does not begin where the upload ends"},
	"busy":      {http.StatusConflict, "Another body from this party is being read"},
	"full":      {http.StatusServiceUnavailable, "Too many bytes are being read"},
	"slow":      {http.StatusRequestTimeout, "The body arrived too slowly, or broke off"},
	"digest":    {http.StatusBadRequest, "The body is not the one that was signed"},
	"match":     {http.StatusPreconditionFailed, "The file is not the one that If-Match names"},
	"range":     {http.StatusRequestedRangeNotSatisfiable, "The file has no such range"},
	"message":   {http.StatusUnprocessableEntity, "The protocol refuses the message"},
	"ended":     {http.StatusGone, "The federation has ended"},
	"record":    {http.StatusServiceUnavailable, "The record has taken no decisions for a long time"},
	"leader":    {http.StatusServiceUnavailable, "No node leads the federation at the moment"},
}

// Refusals returns the kinds of problems that the door answers with.
func Refusals() map[string]Refusal { return refusals }

// ProblemPrefix begins the type of every problem.
const ProblemPrefix = "urn:hushsum:problem:"

// refuse answers with a problem.
func (d *Door) refuse(w http.ResponseWriter, kind, format string, a ...any) {
	d.Counts.refuse(kind)
	p := refusals[kind]
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(Problem{
		Type:   ProblemPrefix + kind,
		Title:  p.Title,
		Status: p.Status,
		Detail: fmt.Sprintf(format, a...),
	})
}
