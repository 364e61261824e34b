package observation

import (
	"testing"

	"github.com/hushsum/hushsum/attacks"
)

func TestSamplerTimingWithoutClock(t *testing.T) {
	report, err := runSamplerTiming(t.Context(), attacks.Options{})
	if err != nil || len(report.Rows) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
