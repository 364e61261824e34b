package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

// In a job with a bound members deal the noise, which oneshot.coin draws from their candidates.
func TestOneshotCoin(t *testing.T) {
	s := &sidecar{ctx: context.Background(), objects: make(map[uint64]any)}
	with, err := json.Marshal(oneshotRosters())
	if err != nil {
		t.Fatal(err)
	}
	must(t, s, "job.settle", string(with), []byte(oneshotJob+`sum.bounded = true
privacy.noise = "discrete-gaussian"
privacy.multiplier = 1.0
`))
	for i := range 6 { // objects 2 and 3 are parties, and 4 to 7 members
		call := "oneshot.party"
		if i >= 2 {
			call = "oneshot.member"
		}
		must(t, s, call, `{"settled":1}`, oneshotSeed(i))
	}
	must(t, s, "oneshot.server", `{"settled":1}`)
	const server = `{"object":8}`
	object := func(i int) string { return fmt.Sprintf(`{"object":%d}`, i) }
	tell := func(messages ...[]byte) {
		for i := range 4 {
			message := messages[i%len(messages)]
			for _, answer := range must(t, s, "oneshot.answer", object(4+i), message) {
				must(t, s, "oneshot.receive", server, answer)
			}
		}
	}
	tell(must(t, s, "oneshot.invite", server)...)
	opening := must(t, s, "oneshot.open", server, []byte("model"))[0]
	tell(opening)
	tell(must(t, s, "oneshot.coin", server)...)
	tell(must(t, s, "oneshot.batch", server)...)
	tell(must(t, s, "oneshot.settle", server)...)
	for i := range 2 {
		m := must(t, s, "oneshot.submit", object(2+i), opening, []byte("model"), make([]byte, 8))[0]
		must(t, s, "oneshot.receive", server, m)
	}
	tell(must(t, s, "oneshot.batch", server)...)
	tell(must(t, s, "oneshot.settle", server)...)
	tell(must(t, s, "oneshot.close", server)...)
	tell(must(t, s, "oneshot.certificate", server)...)
	must(t, s, "oneshot.sum", server, []byte("model"))
}
