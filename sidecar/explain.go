package sidecar

import (
	"fmt"
	"strings"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/protocol"
)

// explainPlan says in words what a plan means for a party.
func explainPlan(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Settled uint64 `json:"settled"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	settled, err := lookup[*hushsum.Settled](s, with.Settled, "plan")
	if err != nil {
		return nil, nil, err
	}
	text, err := explain(settled)
	return struct {
		Text string `json:"text"`
	}{text}, nil, err
}

func explain(s *hushsum.Settled) (string, error) {
	p, n, fewest := s.Plan(), s.Roster().Len(), s.MinSurvivors()
	servers := map[protocol.Adversary]string{
		protocol.CheatingServer: "a server that cheats in any way it likes",
		protocol.SemiMaliciousServer: "a server that is honest while keys are exchanged and may " +
			"cheat later",
		protocol.CuriousServer: "a server that follows the protocol and keeps all it sees",
	}
	together := ", as long as no party tells it what it knows"
	if p.Colluders > 0 {
		together = fmt.Sprintf(", together with up to %d of the parties", p.Colluders)
	}
	lines := []string{
		fmt.Sprintf("%s: in each of %d rounds every party brings a vector of %d numbers, shortened "+
			"to L2 norm %v.", p.Name, p.Rounds, p.Length, p.Clip),
		fmt.Sprintf("Of each round all learn the mean over %d to %d of the %d parties, and nothing "+
			"else: with fewer a round gives nothing.", fewest, n, n),
		fmt.Sprintf("That holds against %s%s.", servers[p.Adversary], together),
	}
	if o := s.Oneshot(); o != nil {
		lines = append(lines, fmt.Sprintf("A party sends one message a round. A committee of %d members "+
			"takes the masks off; up to %d of them may be in league with the server.", o.Committee.Len(),
			o.Terms.Faults))
	}
	if p.Classical {
		lines = append(lines, "Who records the messages and has a quantum computer later reads "+
			"everything: key exchange is classical.")
	}
	if p.Noise == 0 {
		lines = append(lines, "There is no noise: the means themselves may tell about a party, and no "+
			"epsilon holds.")
		return strings.Join(lines, "\n"), nil
	}
	spent, err := s.Round().Spent(accounting.ServerView, p.Rounds, p.Delta)
	if err != nil {
		return "", err
	}
	lines = append(lines,
		fmt.Sprintf("Noise (%v) makes what all rounds together tell about whether a party's vectors "+
			"are its own or zeros (epsilon %.4g, delta %v)-private: of %v allowed.", p.Noise,
			spent.Upper, p.Delta, p.Epsilon),
		fmt.Sprintf("It counts the shares of noise of %d honest parties. In a mean of %d parties "+
			"each number has noise of standard deviation %.3g.", fewest-p.Colluders, fewest,
			s.StdDev(fewest)))
	return strings.Join(lines, "\n"), nil
}
