package charset

import "testing"

// An encoding is told by its first bytes, and a file's name is quoted for a shell.
func TestForeign(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"a":                         "",
		"\ufeffé":                   "",
		"\xff\xfea\x00":             "UTF-16",
		"\xfe\xff\x00a":             "UTF-16",
		"a\x00b\x00":                "UTF-16LE",
		"\x00a\x00b":                "UTF-16BE",
		"\xff\xfe\x00\x00a\x00\x00": "UTF-32",
		"a\x00bcdefghijk":           "binary",
		"stra\xdfe":                 "Latin-1",
	} {
		if got := Of([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, c := range []struct{ encoding, file, want string }{
		{"UTF-16", "x/rows.csv", "convert it: iconv -f UTF-16 -t UTF-8 rows.csv > utf8.csv"},
		{"Latin-1", "a b's.txt", `convert it: iconv -f WINDOWS-1252 -t UTF-8 'a b'\''s.txt' > utf8.txt`},
		{"UTF-16", "r.csv.gz", "convert it: zcat r.csv.gz | iconv -f UTF-16 -t UTF-8 > utf8.csv"},
		{"binary", "a", "give a text in UTF-8"},
	} {
		if _, advice := Foreign(c.encoding, c.file); advice != c.want {
			t.Errorf("%s of %s: %q, want %q", c.encoding, c.file, advice, c.want)
		}
	}
}
