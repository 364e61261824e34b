// Package charset names the encoding of a text that is not UTF-8, for files that people bring.
package charset

import (
	"bytes"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Mark is the byte-order mark with which some programs begin UTF-8.
const Mark = "\ufeff"

// Of names the encoding of a text that is not UTF-8, as iconv does, by how it begins. It is
// empty if all of it is UTF-8 that holds no NUL.
func Of(text []byte) string {
	begin := text[:min(len(text), 64)]
	even, odd := 0, 0 // places of NULs
	for i, c := range begin {
		if c == 0 {
			even, odd = even+(i+1)%2, odd+i%2
		}
	}
	switch {
	case bytes.HasPrefix(begin, []byte("\xff\xfe\x00\x00")),
		bytes.HasPrefix(begin, []byte("\x00\x00\xfe\xff")):
		return "UTF-32"
	case bytes.HasPrefix(begin, []byte("\xff\xfe")), bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return "UTF-16"
	case odd > len(begin)/4 && even == 0:
		return "UTF-16LE"
	case even > len(begin)/4 && odd == 0:
		return "UTF-16BE"
	case bytes.IndexByte(text, 0) >= 0:
		return "binary"
	case !utf8.Valid(text):
		return "Latin-1"
	}
	return ""
}

// Foreign says that a file's text is of another encoding than UTF-8, as [Of] names it, and
// which command converts it.
func Foreign(encoding, file string) (reason, advice string) {
	from := encoding
	switch encoding {
	case "binary":
		return "it holds bytes of value 0, which no text does", "give a text in UTF-8"
	case "Latin-1":
		from = "WINDOWS-1252" // of which Latin-1 is a part
		reason = "it is not UTF-8, but Latin-1 or another encoding of one byte a character"
	default:
		reason = "it is " + encoding + ", and not UTF-8"
	}
	name := filepath.Base(file)
	if strings.ContainsAny(name, " \t'\"\\$`&;()<>|*?#!") {
		name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	if filepath.Ext(file) == ".gz" {
		return reason, "convert it: zcat " + name + " | iconv -f " + from + " -t UTF-8 > utf8.csv"
	}
	return reason, "convert it: iconv -f " + from + " -t UTF-8 " + name + " > utf8" +
		filepath.Ext(file)
}
