package show

import (
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{
		0:       "0",
		999:     "999",
		1000:    "1,000",
		12345:   "12,345",
		1234567: "1,234,567",
	} {
		if got := Grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{
		0:          "0.00",
		1234567:    "1.23",
		12345678:   "12.3",
		1234567890: "1,235",
	} {
		if got := Short(time.Duration(n)); got != want {
			t.Errorf("short(%d ns) = %q, want %q", n, got, want)
		}
	}
	if got := Percent(5, 0); got != 0 {
		t.Errorf("a share of nothing is %v, want 0", got)
	}
}
