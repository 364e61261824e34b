package script

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Width is how many characters a line of help, or of a manual page, may have.
const Width = 80

// WriteFlags writes what help prints about flags, if there are any.
func WriteFlags(w io.Writer, flags []Flag) {
	heading := "\nFlags:\n"
	for _, f := range flags {
		fmt.Fprintln(w, heading+strings.TrimRight("  --"+f.Name+" "+f.Arg, " "))
		heading = ""
		for _, part := range Wrap(f.Usage, Width-8) {
			fmt.Fprintf(w, "        %s\n", part)
		}
	}
}

// Wrap breaks text between words into lines of at most the given number of
// characters; a longer word has a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line, length := "", 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			line, length = word, n
		case length+1+n <= width:
			line, length = line+" "+word, length+1+n
		default:
			lines = append(lines, line)
			line, length = word, n
		}
	}
	return append(lines, line)
}
