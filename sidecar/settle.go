package sidecar

import (
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/fault"
	declared "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/training"
)

var settleCalls = map[string]handler{
	"job.settle":  settleJob,
	"job.explain": explainJob,
	"job.spent":   jobSpent,
}

// memberJSON is a party of a roster.
type memberJSON struct {
	Name string `json:"name"`
	Key  string `json:"key"` // 64 hexadecimal digits
}

// parseRoster returns nil for an empty list.
func parseRoster(members []memberJSON) (*keyexchange.Roster, error) {
	if members == nil {
		return nil, nil
	}
	var list []keyexchange.Entry
	for i, m := range members {
		key, err := hex.DecodeString(m.Key)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, fieldError("roster", "give the public key that the party generated",
				"party %d: its key is not 64 hexadecimal digits", i)
		}
		list = append(list, keyexchange.Entry{Name: m.Name, Key: key})
	}
	return keyexchange.NewRoster(list)
}

func membersOf(r *keyexchange.Roster) (list []memberJSON) {
	for i := range r.Len() {
		list = append(list, memberJSON{r.Name(i), hex.EncodeToString(r.Key(i))})
	}
	return list
}

// settledJSON describes a job that was settled with its parties.
type settledJSON struct {
	Settled uint64 `json:"settled"`
	// Digest covers all that the sides must agree on, in 64 hexadecimal digits.
	Digest    string       `json:"digest"`
	Roster    []memberJSON `json:"roster"`
	Committee []memberJSON `json:"committee,omitempty"`
	Rounds    int          `json:"rounds"` // each of one sum
	Length    int          `json:"length"` // of a vector
	// Tensors make up a vector, if the job declares them.
	Tensors      []tensorJSON `json:"tensors,omitempty"`
	Trains       bool         `json:"trains"`   // it trains its model itself, on rows
	Weighs       bool         `json:"weighs"`   // vectors have weights
	Measures     bool         `json:"measures"` // loss and accuracy come with vectors
	MaxWeight    int          `json:"max_weight"`
	MinSurvivors int          `json:"min_survivors"`
	StdDev       float64      `json:"std_dev"` // of the noise in a mean of the fewest parties
	// Budget bounds what a party spends, null without one.
	Budget *accounting.Budget `json:"budget"`
	// Coins say how a program of one's own sums over records, where the unit is a record.
	Coins *declared.Coins `json:"coins,omitempty"`
}

type tensorJSON struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// settled keeps a settled job.
func (s *sidecar) settled(settled *declared.Settled) (any, [][]byte, error) {
	id, err := s.add(settled)
	if err != nil {
		return nil, nil, err
	}
	digest := settled.Digest()
	out := settledJSON{
		Settled:      id,
		Digest:       hex.EncodeToString(digest[:]),
		Roster:       membersOf(settled.Roster()),
		Rounds:       settled.Rounds(),
		Length:       settled.Length(),
		Trains:       settled.Trains(),
		Weighs:       weighs(settled),
		Measures:     settled.Job().Metrics.Share > 0,
		MaxWeight:    maxWeight(settled),
		MinSurvivors: settled.MinSurvivors(),
		StdDev:       settled.StdDev(settled.MinSurvivors()),
		Budget:       settled.Budget(),
		Coins:        settled.Coins(),
	}
	if o := settled.Oneshot(); o != nil {
		out.Committee = membersOf(o.Committee)
	}
	for _, t := range settled.Job().Model.Tensor {
		out.Tensors = append(out.Tensors, tensorJSON{t.Name, t.Shape})
	}
	return out, nil, nil
}

// maxWeight returns the largest weight of a vector; 0: they have none.
func maxWeight(s *declared.Settled) int {
	return s.Job().MaxRows()
}

// weighs reports whether vectors come with weights.
func weighs(s *declared.Settled) bool { return maxWeight(s) > 0 }

func delta(s *declared.Settled) float64 { return s.Job().Privacy.Delta }

// settleJob takes the text of a job.
func settleJob(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Folder    string       `json:"folder"`    // that holds the files that it names
		Roster    []memberJSON `json:"roster"`    // left out: from the file that the job names
		Committee []memberJSON `json:"committee"` // the same
		tryout
	}
	if err := r.take(&with, 1); err != nil {
		return nil, nil, err
	}
	j, err := declared.Parse("job", r.blobs[0].private())
	if err != nil {
		return nil, nil, err
	}
	if err := serves(j); err != nil {
		return nil, nil, err
	}
	var files declared.Files
	if with.Parties > 0 {
		j, files.Roster, err = s.tryout(j, with.tryout)
	} else {
		files, err = filesOf(j, with.Folder, with.Roster, with.Committee)
	}
	if err != nil {
		return nil, nil, err
	}
	settled, err := j.Settle(files)
	if err != nil {
		return nil, nil, err
	}
	return s.settled(settled)
}

// serves refuses jobs that only the service or the simulator can run.
func serves(j *declared.Job) error {
	const advice = "leave it out, or have the service run the job"
	switch {
	case j.Model.File != "":
		return j.Mistake("model.file", "write model.tensor or model.length, and give the first model",
			"only the service reads it")
	case len(j.Model.Personal) > 0:
		return j.Mistake("model.personal", advice, "tensors stay with parties only in the service")
	case j.Privacy.ClipQuantile > 0:
		return j.Mistake("privacy.clip_quantile", "leave it out, or use hushsum simulate",
			"only a simulation has a clip that follows a quantile")
	}
	return nil
}

// filesOf returns the given rosters, and for one that is missing the one in the job's file.
func filesOf(
	j *declared.Job, folder string, roster, committee []memberJSON,
) (f declared.Files, err error) {
	named := j.Clone()
	for _, file := range []*string{&named.Parties.Roster, &named.Sum.Committee} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(folder, *file)
		}
	}
	if roster != nil {
		named.Parties.Roster = ""
	}
	if committee != nil {
		named.Sum.Committee = ""
	}
	if f, err = named.Files(); err != nil {
		return f, err
	}
	given, err := parseRoster(roster)
	if err != nil {
		return f, err
	}
	members, err := parseRoster(committee)
	f.Roster, f.Committee = cmp.Or(f.Roster, given), cmp.Or(f.Committee, members)
	return f, err
}

// tryout describes the parties of a job that is tried out.
type tryout struct {
	Parties int      `json:"parties"` // made up; 0: the job is not tried out
	Rows    []uint64 `json:"rows"`    // theirs, from which features and classes follow
	Records int      `json:"records"` // of all parties, or groups of them; 0: nobody counted them
	Clear   bool     `json:"clear"`   // without noise, and where the unit is a party without clip
}

// Values of a job that is tried out: for sums without noise, in the clear,
const (
	clearRange        = 1 << 16
	clearFractionBits = 30
	// For noise that changes nothing, where the unit is a record: a millionth of the clip.
	clearMultiplier = 1e-6
	clearBits       = 62
	// For privacy.submit_after, which no result depends on: nobody waits in a job that is tried out.
	triedAfter = time.Millisecond
)

// tryout fills in the fields that a job to be tried out may leave out, and makes up parties.
func (s *sidecar) tryout(j *declared.Job, with tryout) (
	*declared.Job, *keyexchange.Roster, error,
) {
	if n := j.Size(); n != 0 && n != with.Parties {
		return nil, nil, j.Mistake("parties.count",
			fmt.Sprintf("write %d, or give as many parties", with.Parties),
			"it says %d, and there are %d", n, with.Parties)
	}
	if j.Oneshot() {
		return nil, nil, j.Mistake("sum.protocol", "leave it out, or use hushsum simulate",
			"one-message sums cannot be tried here")
	}
	if with.Parties > declared.MaxParties {
		return nil, nil, fieldError("parties", "use fewer", "%d are too many", with.Parties)
	}
	own := j.Clone()
	if len(own.Parties.Group) == 0 {
		own.Parties.Count = with.Parties
	}
	if len(with.Rows) > 0 {
		var sets []*learning.Dataset
		for _, id := range with.Rows {
			rows, err := lookup[*learning.Dataset](s, id, "rows")
			if err != nil {
				return nil, nil, err
			}
			sets = append(sets, rows)
		}
		var err error
		if own, err = training.WithRows(own, sets...); err != nil {
			return nil, nil, err
		}
	}
	if p := &own.Privacy; own.PerRecord() {
		p.Records = cmp.Or(p.Records, with.Records)
		p.SubmitAfter = cmp.Or(p.SubmitAfter, triedAfter)
	}
	switch p := &own.Privacy; {
	case with.Clear && own.PerRecord(): // steps use clipped gradients, with noise or without
		p.Epsilon, p.Multiplier, p.Bits = 0, clearMultiplier, clearBits
	case with.Clear:
		own.Privacy = declared.Privacy{}
		own.Sum.Range, own.Sum.FractionBits = clearRange, clearFractionBits
	}
	var list []keyexchange.Entry
	for i := range with.Parties {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, keyexchange.Entry{Name: fmt.Sprintf("party-%d", i+1),
			Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(list)
	return own, roster, err
}

// settledCall finds the job of a call that has no blobs.
type settledCall struct {
	Settled uint64 `json:"settled"`
	Rounds  int    `json:"rounds"`
}

func (s *sidecar) settledOf(r *request) (*declared.Settled, *settledCall, error) {
	with := new(settledCall)
	if err := r.take(with, 0); err != nil {
		return nil, nil, err
	}
	settled, err := lookup[*declared.Settled](s, with.Settled, "job")
	return settled, with, err
}

// explainJob explains in sentences what a job declares.
func explainJob(s *sidecar, r *request) (any, [][]byte, error) {
	settled, _, err := s.settledOf(r)
	if err != nil {
		return nil, nil, err
	}
	return struct {
		Explain []string `json:"explain"`
	}{settled.Job().Explain()}, nil, nil
}

// jobSpent returns what rounds of a job spend of every unit's privacy, no claim without noise.
func jobSpent(s *sidecar, r *request) (any, [][]byte, error) {
	settled, with, err := s.settledOf(r)
	if err != nil {
		return nil, nil, err
	}
	if most := settled.Rounds(); with.Rounds < 0 || with.Rounds > most {
		return nil, nil, fieldError("rounds", "", "%d is outside 0 to the job's %d", with.Rounds, most)
	}
	if settled.Mechanism() == nil {
		return struct { // nothing bounds what it spends
			Claim *accounting.Claim `json:"claim"`
		}{}, nil, nil
	}
	if with.Rounds == 0 {
		return said(accounting.NewClaim(settled.Statement(), accounting.Figures{Delta: delta(settled)})),
			nil, nil
	}
	spent, err := settled.Round().Spent(accounting.ServerView,
		settled.Charges(with.Rounds), delta(settled))
	return said(spent), nil, err
}

// sessions fails for a job that has no sessions of bare vectors: parties and servers of sessions
// are made for such jobs.
func sessions(s *declared.Settled) error {
	if s.Trains() {
		return fault.New(declared.ErrConfig, "join it, or coordinate it, with rows",
			"the job trains its model itself")
	}
	if j := s.Job(); j.Privacy.SubmitAfter > 0 { // and no coin either
		return j.Mistake("privacy.submit_after", "leave it out, or join the job, or coordinate it",
			"a program's own loop has no instant")
	}
	if err := unmeasured(s); err != nil {
		return err
	}
	return pairwise(s)
}

// unmeasured fails for a job that sums metrics: in a program's own loop nobody says them.
func unmeasured(s *declared.Settled) error {
	if s.Job().Metrics.Share == 0 {
		return nil
	}
	return s.Job().Mistake("metrics.share", "leave it out, or join the job, or coordinate it",
		"a program's own loop has no metrics")
}

// pairwise fails for a job whose sums are of one message.
func pairwise(s *declared.Settled) error {
	if s.Oneshot() == nil {
		return nil
	}
	return fault.New(declared.ErrConfig, "use the parties, members and servers of oneshot",
		"the job has one-message sums")
}
