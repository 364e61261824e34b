package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/signature"
)

const mostAnswer = 1 << 30 // bytes of an answer in JSON: some have models

// operator is the way to a server's operators' interface.
type operator struct {
	admin, token string
	identity     ed25519.PrivateKey // nil: the token
	unsigned     bool               // what it declares may go on from another federation unsigned
}

// operatorFlags declares an operator's flags; once they are parsed, read reads the files that they
// name.
func operatorFlags(f *flag.FlagSet) (o *operator, read func() error) {
	o = new(operator)
	var tokenFile, identityFile string
	f.StringVar(&o.admin, "admin", "http://127.0.0.1:8080",
		"address of the server's page; HUSHSUM_ADMIN where it is left out")
	f.StringVar(&tokenFile, "token-file", "", "`file` with an operator's token")
	f.StringVar(&identityFile, "identity", "", "`file` of an operator's identity, instead of a token")
	return o, func() (err error) {
		named := false
		f.Visit(func(one *flag.Flag) { named = named || one.Name == "admin" })
		if admin := strings.TrimSpace(os.Getenv("HUSHSUM_ADMIN")); admin != "" && !named {
			o.admin = admin
		}
		if !strings.Contains(o.admin, "://") {
			o.admin = "http://" + o.admin
		}
		o.token = strings.TrimSpace(os.Getenv("HUSHSUM_TOKEN"))
		if tokenFile != "" {
			text, err := os.ReadFile(tokenFile)
			if err != nil {
				return err
			}
			if o.token, err = tokenOf(string(text)); err != nil {
				return fmt.Errorf("%s: %w", tokenFile, err)
			}
		}
		if identityFile == "" {
			return nil
		}
		if tokenFile != "" {
			return misuse("--identity and --token-file exclude each other")
		}
		if o.unsigned {
			return misuse("--identity signs that a federation goes on from another, and --unsigned " +
				"declares it without; give one of them")
		}
		o.identity, err = keyfile.ReadIdentity(identityFile)
		return err
	}
}

// tokenOf returns the token in a file: in tokens.txt, which a node writes at its first start,
// the one whose role is operate.
func tokenOf(text string) (string, error) {
	tokens := strings.Fields(text)
	for _, one := range tokens {
		if strings.HasPrefix(one, "operate-") {
			return one, nil
		}
	}
	if len(tokens) != 1 {
		return "", fmt.Errorf("it has %s, and no token that may operate; write one into it",
			numbers.Plural(len(tokens), "word"))
	}
	return tokens[0], nil
}

// parseOperator parses the flags of a command that takes an operator and one file.
func parseOperator(f *flag.FlagSet, args []string) (o *operator, file string, err error) {
	o, read := operatorFlags(f)
	words, err := parseAmong(f, args, 1)
	if err != nil {
		return nil, "", err
	}
	if len(words) == 0 {
		return nil, "", misuse("name the file")
	}
	return o, words[0], read()
}

// ask sends a request and reads its answer.
func (o *operator) ask(ctx context.Context, method, path string, body any, match string, into any,
) error {
	var reader io.ReadSeeker
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
		reader = bytes.NewReader(sent)
	}
	answer, err := o.send(ctx, method, path, reader, sent, match)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return err
	}
	return strict.JSON(b, into)
}

// send sends a request, signing its body if there is an identity, and returns the answer if the
// request was accepted.
func (o *operator) send(
	ctx context.Context, method, path string, body io.ReadSeeker, signed []byte, match string,
) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(o.admin, "/")+path, body)
	if err != nil {
		return nil, err
	}
	if match != "" {
		r.Header.Set("If-Match", match)
	}
	switch {
	case o.identity != nil:
		if err := signature.Sign(r, signed, o.identity, time.Now()); err != nil {
			return nil, err
		}
	case o.token != "":
		r.Header.Set("Authorization", "Bearer "+o.token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w; is 'hushsumd serve' running, and is %s the page's address that it "+
			"printed? Name it with --admin", err, o.admin)
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return nil, err
	}
	return nil, &refused{answer.StatusCode, o.explain(answer, b)}
}

// refused is an answer of the server, or of a proxy before it, to a request that it did not accept.
type refused struct {
	status int
	text   string
}

func (e *refused) Error() string { return e.text }

// isLost reports whether an error leaves open what became of a request: nothing answered, the
// answer broke off, or nobody knew what the leader did.
func isLost(err error) bool {
	r := new(refused)
	return err != nil && (!errors.As(err, &r) || r.status >= http.StatusInternalServerError)
}

// explain says why a request was not accepted.
func (o *operator) explain(answer *http.Response, b []byte) string {
	var p exchange.Problem
	_ = strict.JSON(b, &p) // another program may answer, such as a proxy
	switch {
	case answer.StatusCode == http.StatusUnauthorized && o.identity == nil && o.token == "":
		return "the server requires an operator: set HUSHSUM_TOKEN, or give --token-file or --identity"
	case answer.StatusCode == http.StatusUnauthorized && o.identity == nil:
		return "the server does not know this token: compare HUSHSUM_TOKEN, or what --token-file " +
			"names, with a line of tokens.txt in the server's folder; tokens are not in a backup, and " +
			"each node makes its own"
	case p.Title == "":
		return fmt.Sprintf("%s answers %s; is it the page's address, and not the door's?", o.admin,
			answer.Status)
	}
	return fmt.Sprintf("the server answers %d %s: %s", answer.StatusCode, p.Title, p.Detail)
}
