package fault

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestError(t *testing.T) {
	kind := errors.New("pack: unusable")
	err := New(kind, "use %d", "%d is odd", 3)
	if got, want := err.Error(), "pack: unusable: 3 is odd; use %d"; got != want ||
		!errors.Is(err, kind) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Reason(fmt.Errorf("outer: %w", err)); got != "3 is odd" {
		t.Errorf("reason %q", got)
	}
	if got := Reason(io.EOF); got != "EOF" {
		t.Errorf("reason %q of another error", got)
	}
	behind := &Error{Kind: kind, Reason: "it ends", Err: io.EOF}
	if got := behind.Error(); got != "pack: unusable: it ends" || !errors.Is(behind, io.EOF) ||
		!errors.Is(behind, kind) {
		t.Errorf("%q", got)
	}
}

func TestAt(t *testing.T) {
	kind := errors.New("pack: unusable")
	err := At("file 7", New(kind, "mend it", "it ends"), "")
	if got := err.Error(); got != "pack: unusable: file 7: it ends; mend it" || !errors.Is(err, kind) {
		t.Errorf("%q", got)
	}
	if got := At("file 7", New(kind, "mend it", "it ends"), "fetch it").
		Error(); got != "pack: unusable: file 7: it ends; fetch it" {
		t.Errorf("%q", got)
	}
	if err := At("file 7", io.EOF, "fetch it"); err.Error() != "file 7: EOF" ||
		!errors.Is(err, io.EOF) {
		t.Errorf("%q", err)
	}
	if err := Note(New(kind, "mend it", "it ends"),
		"of 3"); err.Error() != "pack: unusable: it ends (of 3); mend it" {
		t.Errorf("%q", err)
	}
}
