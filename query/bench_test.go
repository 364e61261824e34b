package query

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/hushsum/hushsum/job"
)

// columns5 declares five columns of numbers.
const columns5 = `name = "five"
parties = { count = 2, rows = 9 }
column = [
  { name = "a", type = "number", range = [0.0, 1000.0] },
  { name = "b", type = "number", range = [0.0, 1000.0] },
  { name = "c", type = "number", range = [0.0, 1000.0] },
  { name = "d", type = "whole", range = [0, 1000] },
  { name = "e", type = "number", range = [0.0, 1000.0] },
]
query = [{ name = "n", kind = "count" }]
`

// A file of a million rows of five numbers.
func BenchmarkRead(b *testing.B) {
	j, err := job.Parse("job.toml", []byte(columns5))
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	text := []byte("a,b,c,d,e\n")
	for range 1_000_000 {
		for k := range 5 {
			x := random.Float64() * 1000
			if k == 3 {
				text = strconv.AppendInt(text, int64(x), 10)
			} else {
				text = strconv.AppendFloat(text, x, 'f', 1+4*k, 64)
			}
			text = append(text, ",\n"[k/4])
		}
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		rows, _, err := NewSchema(j).Read("five.csv", bytes.NewReader(text), nil)
		if err != nil || rows.Len() != 1_000_000 {
			b.Fatal(err)
		}
	}
}
