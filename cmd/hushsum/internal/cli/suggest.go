package cli

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/suggest"
)

// DidYouMean asks whether the known name was meant that is like a mistyped one. If
// there is none it gives the other advice. quote says how a name is written.
func DidYouMean(typed string, known []string, quote, other string) string {
	if name := suggest.Nearest(typed, known); name != "" {
		return fmt.Sprintf("Did you mean "+quote+"?", name)
	}
	return other
}
