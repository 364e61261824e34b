package job

import (
	"github.com/hushsum/hushsum/accounting"
)

// Unit returns whom epsilon protects.
func (j *Job) Unit() accounting.Unit {
	switch {
	case !j.PerRecord():
		return accounting.PartyUnit
	case j.Privacy.Group != "":
		return accounting.RecordsOf(j.Privacy.Group)
	}
	return accounting.RecordUnit
}

// assumes lists what an ε of the job assumes besides what its sessions promise.
func (j *Job) assumes() (a accounting.Assumptions) {
	for _, proved := range j.runs().derivation() {
		a |= proved.assumes
	}
	if j.Asks() && j.Parties.Hidden == 0 {
		a &^= accounting.AssumesCoins // in answers all records count, and nobody tosses a coin
	}
	return a
}

// learns says against whom sums hold, by what the job declares: of its committee it has no list.
func (j *Job) learns() accounting.Terms {
	t := accounting.Terms{Unit: j.Unit(), Server: servers[j.Adversary()],
		Colluders: accounting.Colluders(j.Parties.Colluders)}
	if j.Oneshot() {
		t.Committees = []accounting.Committee{{Members: j.Sum.Members, InLeague: j.inLeague()}}
	}
	return t
}

var servers = map[string]accounting.Server{
	"cheating":       accounting.CheatingServer,
	"semi-malicious": accounting.SemiMaliciousServer,
	"curious":        accounting.CuriousServer,
}

// statement says what an ε of the job is about, as far as the job declares it.
func (j *Job) statement() accounting.Statement {
	t := j.learns()
	t.Assumes = j.assumes()
	if j.noisyMembers() {
		t.Colluders = accounting.AnyColluders
	}
	if j.Sum.Sparse {
		t.Assumes |= accounting.AssumesGraph
	}
	if j.Privacy.Before != "" && j.Privacy.Study == 0 {
		t.Assumes |= accounting.AssumesAhead
	}
	return stated(t)
}

// stated is the statement of terms of a valid job.
func stated(t accounting.Terms) accounting.Statement {
	s, err := t.Statement()
	if err != nil {
		panic("job: " + err.Error())
	}
	return s
}
