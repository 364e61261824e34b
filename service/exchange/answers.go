package exchange

import "net/http"

// Listed is an entry in the door's list of federations.
type Listed struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	// Forgotten: it ended, and its operator had it erased.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Description holds all that a party must know to work out a federation itself.
type Description struct {
	Name   string `json:"name"`
	ID     string `json:"id"`
	Job    string `json:"job,omitempty"` // digest of what is declared, see job.Job.Digest
	Text   string `json:"text"`          // of the federation's file
	Roster string `json:"roster"`        // fingerprint: its digest in hexadecimal digits
	// Committee is the fingerprint of the committee of one-message sums.
	Committee string `json:"committee,omitempty"`
	Initial   bool   `json:"initial"` // whether the file names a first model
	// Before reports whether it names what was spent earlier.
	Before  bool     `json:"before,omitempty"`
	Meaning []string `json:"meaning"`
	// Key is the public key that signs the federation's decisions, in 64 hexadecimal digits.
	Key string `json:"key,omitempty"`
}

// Successor is a federation that continues another.
type Successor struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	// Succession is 32 bytes of the operator's key and 64 of its signature, see
	// federation.Federation.Signer. It is empty if no operator signed: nobody follows, and followers
	// log that.
	Succession []byte `json:"succession"`
}

// Problem is an error as a server reports it (RFC 9457).
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
	"receipt":   {http.StatusNotFound, "There is no receipt of the round for this party"},
	"length":    {http.StatusLengthRequired, "The body's length must be given"},
	"oversized": {http.StatusRequestEntityTooLarge, "The body is longer than any message that is due"},
	"due":       {http.StatusConflict, "No such message is due from this party"},
	"copied":    {http.StatusConflict, "The question is a copy, or older than another"},
	"twice":     {http.StatusConflict, "Another process asks by the same identity"},
	"head":      {http.StatusBadRequest, "The head is none that the federation's key has signed"},
	"behind":    {http.StatusConflict, "The record is behind the head that this party has"},
	"offset":    {http.StatusConflict, "The piece does not begin where the upload ends"},
	"busy":      {http.StatusConflict, "Another body from this party is being read"},
	"full":      {http.StatusServiceUnavailable, "Too many bytes are being read"},
	"slow":      {http.StatusRequestTimeout, "The body arrived too slowly, or broke off"},
	"digest":    {http.StatusBadRequest, "The body is not the one that was signed"},
	"match":     {http.StatusPreconditionFailed, "The file is not the one that If-Match names"},
	"range":     {http.StatusRequestedRangeNotSatisfiable, "The file has no such range"},
	"message":   {http.StatusUnprocessableEntity, "The protocol refuses the message"},
	"ended":     {http.StatusGone, "The federation has ended"},
	"forgotten": {http.StatusGone, "The federation was forgotten"},
	"record":    {http.StatusServiceUnavailable, "The record has taken no decisions for a long time"},
	"leader":    {http.StatusServiceUnavailable, "No node leads the federation at the moment"},
}

// Refusals returns the kinds of problems that the door answers with.
func Refusals() map[string]Refusal { return refusals }

// ProblemPrefix begins the type of every problem.
const ProblemPrefix = "urn:hushsum:problem:"
