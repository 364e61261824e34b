package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

// Claims prints claims, each in a paragraph, and then what proves them and what they assume.
func Claims(std cli.Streams, claims ...accounting.Claim) {
	var words, explained []string
	for _, c := range claims {
		words = append(words, c.String())
		for _, line := range c.Explain() {
			if !slices.Contains(explained, line) {
				explained = append(explained, line)
			}
		}
	}
	for _, text := range append(words, strings.Join(explained, " ")) {
		if text != "" {
			fmt.Fprintf(std.Out, "\n%s\n", strings.Join(cli.Wrap(text, cli.Width), "\n"))
		}
	}
}
