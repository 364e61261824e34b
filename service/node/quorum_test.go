package node

import (
	"fmt"
	"testing"

	"github.com/hushsum/hushsum/service/record"
)

// Of all clusters of one to five nodes, some of them away, and of all streams with whole copies on
// some, a removal is free of loss exactly if those that are left decide, may do without one if they
// might before, and have most copies of each stream.
func TestWhatRemovalsLose(t *testing.T) {
	cases := 0
	for size := 1; size <= 5; size++ {
		for away := range 1 << size {
			for whole := range 1 << size {
				c := &record.Cluster{Streams: []record.Copies{{CurrentOn: map[string]bool{}}}}
				s := &c.Streams[0]
				for i := range size {
					name := fmt.Sprint("n", i)
					c.Voters = append(c.Voters, record.Voter{Name: name, Here: away>>i&1 == 0})
					if i >= 3 {
						continue
					}
					s.On = append(s.On, name)
					if (away|whole)>>i&1 == 0 {
						s.Current++
						s.CurrentOn[name] = true
					}
				}
				for i := range size {
					cases++
					here, before, copies, on := 0, 0, 0, 0
					for k := range size {
						if away>>k&1 == 0 {
							before++
							if k != i {
								here++
							}
						}
						if k < 3 {
							on++
							if k != i && (away|whole)>>k&1 == 0 {
								copies++
							}
						}
					}
					spareBefore, spare := before-size/2-1, here-(size-1)/2-1
					free := spare > 0 || spare == 0 && spareBefore <= 0
					if i < 3 && copies < min(on, size-1)/2+1 {
						free = false
					}
					if words := lost(c, fmt.Sprint("n", i)); (len(words) == 0) != free {
						t.Fatalf("%+v without %d: %q, want free of loss %v", c, i, words, free)
					}
				}
			}
		}
	}
	if cases != 4+2*16+3*64+4*256+5*1024 {
		t.Errorf("%d cases", cases)
	}
}
