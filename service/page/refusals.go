package page

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/signature"
)

// refusals are the kinds of problems, each with its status and title.
var refusals = map[string]exchange.Refusal{
	"query":      {Status: http.StatusBadRequest, Title: "The body cannot be read"},
	"parameters": {Status: http.StatusBadRequest, Title: "The parameters of the address are invalid"},
	"token": {Status: http.StatusUnauthorized, Title: "The request does not come from an " +
		"operator"},
	"unsigned":   {Status: http.StatusUnauthorized, Title: "The request is not signed as required"},
	"signature":  {Status: http.StatusUnauthorized, Title: "The signature does not verify"},
	"clock":      {Status: http.StatusUnauthorized, Title: "The request was signed at another time"},
	"stranger":   {Status: http.StatusForbidden, Title: "The key is not an operator's"},
	"role":       {Status: http.StatusForbidden, Title: "The operator may only read"},
	"origin":     {Status: http.StatusForbidden, Title: "A page of another site sends the request"},
	"unknown":    {Status: http.StatusNotFound, Title: "There is no such federation or party"},
	"route":      {Status: http.StatusNotFound, Title: "There is no such resource"},
	"method":     {Status: http.StatusMethodNotAllowed, Title: "The resource lacks this method"},
	"exists":     {Status: http.StatusConflict, Title: "The federation is already declared"},
	"quorum":     {Status: http.StatusConflict, Title: "The remaining nodes would not be enough"},
	"node":       {Status: http.StatusConflict, Title: "The node cannot be removed"},
	"occupied":   {Status: http.StatusConflict, Title: "The server has federations"},
	"keys":       {Status: http.StatusConflict, Title: "The file of seal keys cannot be used"},
	"state":      {Status: http.StatusConflict, Title: "The federation's state does not allow it"},
	"stale":      {Status: http.StatusPreconditionFailed, Title: "It has changed since you looked"},
	"oversized":  {Status: http.StatusRequestEntityTooLarge, Title: "The body is too long"},
	"federation": {Status: http.StatusUnprocessableEntity, Title: "The federation cannot be declared"},
	"backup":     {Status: http.StatusUnprocessableEntity, Title: "The backup cannot be restored"},
	"name":       {Status: http.StatusUnprocessableEntity, Title: "The name was not typed"},
	"match": {Status: http.StatusPreconditionRequired, Title: "The order must name the state " +
		"that it was based on"},
	"leader": {Status: http.StatusServiceUnavailable,
		Title: "No node leads the federation at the moment"},
}

// Refusals returns the kinds of problems that the page answers with.
func Refusals() map[string]exchange.Refusal { return refusals }

// forPeople reports whether a request comes from a person's browser.
func forPeople(r *http.Request) bool {
	return !forPrograms(r) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// problem answers with a problem of a kind; people get a page.
func problem(w http.ResponseWriter, r *http.Request, kind, detail string) {
	p := refusals[kind]
	switch p.Status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if forPeople(r) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(p.Status)
		_ = templates.ExecuteTemplate(w, "problem.html", struct {
			exchange.Refusal
			Detail string
		}{p, detail})
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(exchange.Problem{
		Type:   exchange.ProblemPrefix + kind,
		Title:  p.Title,
		Status: p.Status,
		Detail: detail,
	})
}

// fail answers with the problem that an error stands for.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	kind := "state"
	for _, k := range []struct {
		is   error
		kind string
	}{
		{signature.ErrClock, "clock"},
		{signature.ErrSignature, "signature"},
		{signature.ErrUnsigned, "unsigned"},
		{errStranger, "stranger"},
		{errOversized, "oversized"},
		{errBroken, "query"},
		{ErrAddress, "parameters"},
		{record.ErrNone, "unknown"},
		{record.ErrHistory, "unknown"},
		{runner.ErrParty, "unknown"},
		{federation.ErrAsks, "route"},
		{runner.ErrStale, "stale"},
		{ErrStale, "stale"},
		{ErrQuorum, "quorum"},
		{ErrNode, "node"},
		{ErrKeys, "keys"},
		{record.ErrCut, "backup"},
		{record.ErrAltered, "backup"},
		{record.ErrOtherKey, "backup"},
		{record.ErrNoBackup, "backup"},
		{record.ErrExists, "exists"},
		{record.ErrNotEmpty, "occupied"},
		{job.ErrConfig, "federation"},
		{federation.ErrSuccession, "federation"},
		{runner.ErrStopped, "leader"},
		{record.ErrUnavailable, "leader"},
		{record.ErrLost, "leader"},
	} {
		if errors.Is(err, k.is) {
			kind = k.kind
			break
		}
	}
	problem(w, r, kind, err.Error())
}

var (
	errOversized = errors.New("page: at most " + strconv.Itoa(maxDeclared) + " bytes are read")
	errBroken    = errors.New("page: the body broke off")
)
