package falsify

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// draft is a job as text: lists of tables, and fields that are set one by one, so that a field can
// be left out.
type draft struct {
	lists []string // tables such as [[query]], each with its fields
	set   []string // PATH=VALUE
}

// String writes a draft as a file of testdata has it.
func (d draft) String() string {
	return strings.Join(d.lists, "") + "-- set --\n" + strings.Join(d.set, "\n") + "\n"
}

// put sets a field, in place of what was set.
func (d *draft) put(path string, value any) {
	d.drop(path)
	text := fmt.Sprint(value)
	if x, is := value.(float64); is {
		text = float(x)
	}
	d.set = append(d.set, path+"="+text)
}

func (d *draft) drop(path string) {
	d.set = slices.DeleteFunc(slices.Clone(d.set), func(s string) bool {
		return strings.HasPrefix(s, path+"=")
	})
}

// float writes a number as TOML has it.
func float(x float64) string {
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eIN") {
		s += ".0"
	}
	return s
}

// errOdd marks a refusal that is no mistake of a job: the program is at fault.
var errOdd = errors.New("it is refused in a way that no job is")

// settle settles a draft for a roster of its size.
func (d draft) settle() (s *job.Settled, err error) {
	j, err := job.Parse("job.toml", []byte(strings.Join(d.lists, "")), d.set...)
	if err != nil {
		return nil, mistake(err)
	}
	n := j.Size()
	if n < 2 || n > mostParties {
		return nil, errors.New("no roster has that many")
	}
	with := job.Files{Roster: roster("party", n)}
	if j.Oneshot() {
		with.Committee = roster("member", j.WithDefaults().Sum.Members)
	}
	if s, err = j.Settle(with); err != nil {
		return nil, mistake(err)
	}
	return s, nil
}

func mistake(err error) error {
	if len(job.Errors(err)) == 0 || strings.Contains(err.Error(), "fault of the program") {
		return fmt.Errorf("%w: %w", errOdd, err)
	}
	return err
}

// rosters are made once.
var rosters sync.Map

func roster(kind string, n int) *keyexchange.Roster {
	name := fmt.Sprint(kind, n)
	if r, found := rosters.Load(name); found {
		return r.(*keyexchange.Roster)
	}
	var members []keyexchange.Entry
	for i := range n {
		seed := binary.BigEndian.AppendUint64([]byte(fmt.Sprintf("%-24s", kind)), uint64(i))
		key, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		members = append(members, keyexchange.Entry{Name: fmt.Sprintf("%s-%d", kind, i+1), Key: key})
	}
	r, err := keyexchange.NewRoster(members)
	if err != nil {
		panic(err)
	}
	rosters.Store(name, r)
	return r
}

// Bounds of fields that make work: a fault shows in a small job too.
const mostParties = 130

var small = map[string]float64{
	"parties.count": mostParties, "parties.group[].count": 40, "model.length": 1500,
	"model.features": 40, "model.classes": 5, "query[].bins": 200, "query[].by_bins": 60,
	"query[].top": 20, "model.tensor[].shape": 30, "sum.members": 40,
	"training.epochs": 2, "training.steps": 3, "rounds": 5000,
}

// limits are those of a field in the schema that editors read.
type limits struct {
	Minimum          *float64 `json:"minimum"`
	Maximum          *float64 `json:"maximum"`
	ExclusiveMinimum *float64 `json:"exclusiveMinimum"`
	ExclusiveMaximum *float64 `json:"exclusiveMaximum"`
	Items            *limits  `json:"items"`
}

// field is a row of the table with its range.
type field struct {
	job.Field
	lo, hi float64 // Inf: none
}

// fields are all rows of the table: a new one comes by itself.
var fields = sync.OnceValue(func() (out []field) {
	type node struct {
		limits
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
	}
	ranges := map[string]limits{}
	var walk func(raw json.RawMessage, path string)
	walk = func(raw json.RawMessage, path string) {
		var n node
		if err := json.Unmarshal(raw, &n); err != nil {
			return // a list of types, which has no range
		}
		var item node
		if n.Items != nil && json.Unmarshal(n.Items, &item) == nil && item.Properties != nil {
			n, path = item, path+"[]"
		} else if n.Items != nil {
			n.limits = item.limits
		}
		if n.Properties == nil {
			ranges[path] = n.limits
			return
		}
		for name, one := range n.Properties {
			walk(one, strings.TrimPrefix(path+"."+name, "."))
		}
	}
	walk(job.Schema(), "")
	for f := range job.Fields() {
		r, found := ranges[f.Path]
		if !found {
			panic("the schema has no " + f.Path)
		}
		x := field{f, math.Inf(-1), math.Inf(1)}
		for _, end := range []struct {
			at   *float64
			into *float64
		}{{r.Minimum, &x.lo}, {r.ExclusiveMinimum, &x.lo}, {r.Maximum, &x.hi},
			{r.ExclusiveMaximum, &x.hi}} {
			if end.at != nil {
				*end.into = *end.at
			}
		}
		if most, bounded := small[f.Path]; bounded {
			x.hi = min(x.hi, most)
		}
		out = append(out, x)
	}
	return out
})

// texts are values of fields that are text, by the last part of their path.
var texts = map[string][]string{
	"model.name":   {"logistic", "softmax", "mlp:3", "mlp:4,3", "lenet", "lenet-norm", ""},
	"roster":       {"roster.txt", ""},
	"committee":    {"committee.txt", ""},
	"before":       {"before.json"},
	"file":         {"model.npz"},
	"group":        {"patient", "person"},
	"column":       {"x", "y", "z", "c", "t"},
	"by":           {"x", "y", "z", "c"},
	"on":           {`["x"]`, `["x", "c"]`},
	"where":        {"x >= 20", "c = a", "y != 0 and c != a", "x > 1 and x < 30"},
	"event":        {"c = a", "y >= 1"},
	"personal":     {`["w*"]`, `["b"]`},
	"categories":   {`["a", "b", "d"]`},
	"blank":        {`["?"]`},
	"name":         {"a", "another", "x", "w"},
	"about":        {"why"},
	"unit":         {"years"},
	"between":      {`["a", "b"]`},
	"servers":      {`["a", "b"]`},
	"set":          {"adult", "synthetic"},
	"place":        {"a"},
	"server":       {"a"},
	"training.set": {""},
}

// value draws one of a field's values, as Set takes it.
func (f field) value(random *rand.Rand) string {
	pick := func(of []string) string { return of[random.IntN(len(of))] }
	switch f.Kind {
	case job.Word:
		return pick(f.Words)
	case job.Truth:
		return pick([]string{"true", "true", "false"})
	case job.Span:
		return pick([]string{"0s", "1ms", "1s", "29s", "30s", "40s", "1h"})
	case job.Spans:
		return `["1s"]`
	case job.Instant:
		return "2027-01-31T08:00:00Z"
	case job.Whole:
		return strconv.FormatFloat(f.whole(random), 'f', -1, 64)
	case job.Number:
		return float(f.number(random))
	case job.Wholes:
		return fmt.Sprintf("[%v]", f.whole(random))
	case job.Numbers:
		if strings.HasSuffix(f.Path, ".at") {
			return "[0.25, 0.5]"
		}
		r := ranges[random.IntN(len(ranges))]
		return fmt.Sprintf("[%s, %s]", float(r[0]), float(r[1]))
	}
	if of, found := texts[f.Path]; found {
		return pick(of)
	}
	if of, found := texts[f.Path[strings.LastIndexByte(f.Path, '.')+1:]]; found {
		return pick(of)
	}
	return "a" // of a field that is new
}

// whole draws a number: an end of the range, a small number, or one of any size.
func (f field) whole(random *rand.Rand) float64 {
	lo, hi := max(f.lo, 0), min(f.hi, 1<<30)
	var x float64
	switch random.IntN(5) {
	case 0:
		x = lo
	case 1:
		x = lo + 1
	case 2, 3:
		x = lo + float64(random.IntN(12))
	default:
		x = math.Floor(math.Exp(random.Float64() * math.Log(hi+1)))
	}
	return min(max(x, lo), hi)
}

func (f field) number(random *rand.Rand) float64 {
	lo, hi := max(f.lo, 0), f.hi
	x := math.Exp(math.Log(1e-6) + random.Float64()*math.Log(1e12))
	switch {
	case random.IntN(12) == 0:
		x = []float64{5e-324, 1e-300, 0x1p-500, 1e300, 1e-12}[random.IntN(5)]
	case hi <= 1 && random.IntN(4) == 0:
		x = 1 - 0x1p-53
	case hi <= 1:
		x = lo + (hi-lo)*random.Float64()
	}
	return x
}

// elements counts the tables of each list in a draft, by their first line.
func (d *draft) elements(path string) (n int) {
	for _, l := range d.lists {
		if strings.HasPrefix(l, "[["+path+"]]") {
			n++
		}
	}
	return n
}

// change sets a random field to a random value of its range, if the draft has room for it.
func (d *draft) change(random *rand.Rand) {
	f := fields()[random.IntN(len(fields()))]
	if f.Part == job.Simulated && random.IntN(10) > 0 || f.Path == "privacy.before" {
		return // of no consequence; and a record, which F4 is about
	}
	path := f.Path
	if list, rest, is := strings.Cut(path, "[]."); is {
		n := d.elements(list)
		if n == 0 {
			return
		}
		path = fmt.Sprintf("%s.%d.%s", list, random.IntN(n), rest)
	}
	d.put(path, f.value(random))
}

// draftOf makes a job of a seed: nine of ten are near a valid one.
func draftOf(seed uint64) draft {
	random := rand.New(rand.NewPCG(seed, 51))
	d := shapes[random.IntN(len(shapes))](random)
	changes := []int{0, 0, 0, 1, 1, 1, 2, 2, 3, 12}[random.IntN(10)]
	for range changes {
		d.change(random)
	}
	return d
}
