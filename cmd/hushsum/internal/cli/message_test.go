package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.modified", Value: "true"},
		{Key: "GOOS", Value: "plan9"}, {Key: "GOARCH", Value: "arm"},
	}}
	info.Main.Version = "v1.2.3"
	const want = "hushsum v1.2.3, revision 0123456789ab with changes, go1.26.0 plan9/arm"
	if got := describe(info); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"one two three", "one two|three"},
		{"one two  x three", "one two |x three"},
		{"averylongword", "averylongword"},
		{"a averylongword b", "a|averylongword|b"},
		{"öööö öööö", "öööö|öööö"},
		{"ööö öööö", "ööö öööö"},
	} {
		if got := strings.Join(Wrap(c.text, 8), "|"); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
