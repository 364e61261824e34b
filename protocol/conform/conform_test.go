package conform

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// twin starts the party of spec/reference, which is written from SPEC.md alone, behind a pipe.
// Without a Python that can run it the test skips, unless HUSHSUM_REQUIRE_PYTHON=1.
func twin(t *testing.T) pipe {
	t.Helper()
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if python == "" && exec.Command(name, "-c", "import cryptography").Run() == nil {
			python = name
		}
	}
	switch {
	case python == "" && os.Getenv("HUSHSUM_REQUIRE_PYTHON") == "1":
		t.Fatal("there is no python3 with cryptography")
	case python == "":
		t.Skip("needs python3 with cryptography, which is not there")
	}
	c := exec.CommandContext(t.Context(), python, "-B", "../../spec/reference/party.py", "--pipe")
	to, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = to.Close()
		_ = c.Wait()
	})
	return pipe{from, to}
}

// pipe has both ends of a program.
type pipe struct {
	io.Reader
	io.Writer
}

// A party that is written from the pages alone conforms: -long alters each message 300 times.
func TestReference(t *testing.T) {
	altered := 1
	if suite.Long() {
		altered = 300
	}
	report, err := Party(t.Context(), twin(t), Options{Altered: altered})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report {
		if r.Failed > 0 {
			t.Errorf("%s, %s: %d of %d: %s", r.Page, r.Requirement, r.Failed, r.Checked, r.First)
		}
	}
	if len(report) < 15 {
		t.Errorf("%d requirements are tested", len(report))
	}
}

// spoiled passes on the answers of another party, and changes some.
type spoiled struct {
	from   *bufio.Reader
	change func(a *answer)
	rest   []byte
}

func (s *spoiled) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		line, err := s.from.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return 0, err
		}
		s.change(&a)
		s.rest, err = json.Marshal(a)
		if err != nil {
			return 0, err
		}
		s.rest = append(s.rest, '\n')
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Deviations are found, each by the requirement that it breaks.
func TestDeviations(t *testing.T) {
	renamed := func(is, now string) func(a *answer) {
		return func(a *answer) {
			if a.Error == is {
				a.Error = now
			}
		}
	}
	for name, c := range map[string]struct {
		change func(a *answer)
		page   string
		broken string
	}{
		"lengths are not told apart":      {renamed("ErrTrailing", "ErrTruncated"), "§11.1", "ErrTrailing"},
		"versions are not looked at":      {renamed("ErrVersion", "ErrSession"), "§11.1", "ErrVersion"},
		"replays are taken":               {func(a *answer) { a.take("ErrStale") }, "§11.1", "ErrStale"},
		"signatures are not verified":     {func(a *answer) { a.take("ErrSignature") }, "§11.1", "ErrSignature"},
		"the party at fault is not named": {func(a *answer) { a.Party = nil }, "§11.1", "ErrSignature"},
		"a refusal changes the state":     {func(a *answer) { a.Changed = a.Error != "" }, "§11.1", "ErrType"},
		"a mask is wrong": {func(a *answer) {
			if len(a.Answer) > 1 && a.Answer[1] == 4 {
				a.Answer[len(a.Answer)-1] ^= 1
			}
		}, "§8.4", "Masked"},
		"a key is signed wrongly": {func(a *answer) {
			if len(a.Answer) > 1 && a.Answer[1] == 1 {
				a.Answer[len(a.Answer)-1] ^= 1
			}
		}, "§4.2", "Announce"},
	} {
		t.Run(name, func(t *testing.T) {
			p := twin(t)
			p.Reader = &spoiled{from: bufio.NewReader(p.Reader), change: c.change}
			report, err := Party(t.Context(), p,
				Options{Altered: 2, Sessions: []string{"plain", "recovery"}})
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, r := range report {
				found = found || r.Failed > 0 && r.Page == "SPEC.md "+c.page && r.Requirement == c.broken
			}
			if !found {
				t.Errorf("it is not found: %+v", report)
			}
		})
	}
}

// take makes a refusal an answer.
func (a *answer) take(refused string) {
	if a.Error == refused {
		a.Error, a.Party = "", nil
	}
}

// A program that says something else than answers is refused by name.
func TestPipe(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "EOF",
		"hello\n":                  "hello",
		"{\"fault\": \"what?\"}\n": "what?",
	} {
		_, err := Party(t.Context(), pipe{strings.NewReader(text), io.Discard}, Options{})
		if !errors.Is(err, ErrPipe) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
