package job

import (
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/protocol"
)

// Failure probabilities of a sparse graph, as powers of a half: that honest survivors are not all
// connected, or a party's secrets not safe, and that secrets cannot be rebuilt.
const (
	sparsePrivacy  = 40
	sparseRecovery = 30
)

// graph returns the numbers of the sparse graph of a job with defaults, for sessions of any number
// of parties between the two given, no sum of which has fewer than least: the least degree with
// which sessions of all these sizes keep their promise, or sum.degree if they do with it. It fails
// with a [ConfigError].
func (j *Job) graph(least, most int) (protocol.Params, error) {
	sizes := protocol.Sizes{Least: least, Most: most, Survivors: least, Colluders: j.Parties.Colluders}
	of := func(degree int) (protocol.Params, error) {
		return protocol.Parameters(sizes, degree, sparsePrivacy, sparseRecovery,
			adversaries[j.Sum.Adversary])
	}
	enough, err := of(0)
	switch {
	case err != nil:
		return enough, j.Mistake("sum.sparse", "leave it out: there are too few parties", "%v", err)
	case enough.Neighbours >= least-1:
		return enough, j.Mistake("sum.sparse", "leave it out: there are too few parties",
			"it takes %d neighbours, and a session may have %d parties", enough.Neighbours, least)
	case j.Sum.Degree == 0 || j.Sum.Degree == enough.Neighbours:
		return enough, nil
	}
	own, err := of(j.Sum.Degree)
	switch {
	case errors.Is(err, protocol.ErrApart):
		return own, j.Mistake("sum.degree",
			fmt.Sprintf("write %d or more, or leave it out", enough.Neighbours),
			"%d neighbours do not keep the survivors of sessions of %d to %d parties together but for "+
				"2^-%d a round", j.Sum.Degree, least, most, sparsePrivacy)
	case err == nil && own.Neighbours >= least-1:
		return own, j.Mistake("sum.degree", within(enough.Neighbours, least-2, "leave it out"),
			"a session may have %d parties, and is then no sparse graph", least)
	case err != nil:
		return own, j.Mistake("sum.degree", fmt.Sprintf("write %d, or leave it out", enough.Neighbours),
			"%v", err)
	}
	return own, nil
}
