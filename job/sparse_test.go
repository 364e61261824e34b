package job_test

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// On a sparse graph a server that cheats after keys are exchanged may take a sum of a party and its
// neighbours, of which t − c + 1 are honest (SPEC.md §13.7): noise of all that remain would be
// counted on 890 shares here, and with 30 of them an epsilon of 4 is 33.
func TestSparse(t *testing.T) {
	const n = 1000
	var members []keyexchange.Entry
	for i := range n {
		seed := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(i))
		key, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party-", i+1), Key: key})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		adversary, noise string
		honest           int // 0: refused
	}{
		{"semi-malicious", "", 30}, {"semi-malicious", noisy, 0}, {"curious", noisy, 890},
	} {
		j, err := job.Parse("job.toml", []byte("name = \"sparse\"\nrounds = 6\nmodel.length = 10\n"+
			"parties = { count = 1000, drop_out = 0.1, colluders = 10 }\n"+
			"sum = { sparse = true, adversary = \""+c.adversary+"\" }\n"+c.noise))
		var s *job.Settled
		if err == nil {
			s, err = j.Settle(job.Files{Roster: roster})
		}
		wrong := job.Errors(err)
		switch {
		case c.honest == 0 && (len(wrong) == 0 || wrong[0].Path != "sum.sparse"):
			t.Errorf("%+v: %v", c, err)
		case c.honest > 0 && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.honest > 0 && s.Honest() != c.honest:
			t.Errorf("%+v: %d honest parties", c, s.Honest())
		}
	}
}
