package cli

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/suggest"
)

// DidYouMean suggests the known name that is most like a mistyped one. If there is none it returns
// the other advice. quote is the format in which a name is written.
func DidYouMean(typed string, known []string, quote, other string) string {
	if name := suggest.Nearest(typed, known); name != "" {
		return fmt.Sprintf("Did you mean "+quote+"?", name)
	}
	return other
}
