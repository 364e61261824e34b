package show

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

// JSON prints one object on a line. All numbers in it are finite.
func JSON(std cli.Streams, v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		cli.Complain(std.Err, "hushsum", err)
		return cli.ExitFailure
	}
	fmt.Fprintf(std.Out, "%s\n", b)
	return cli.ExitOK
}

// Finite returns nil, which is null in JSON, for a number that JSON cannot represent.
func Finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
