package page

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/service/runner"
)

// Signals holds a node's figures for monitors.
type Signals struct {
	Ready              bool // the record takes decisions and all federations have leaders
	Decides            bool // the record takes decisions
	DiskFree, DiskSize uint64
	OpenFiles          int // 0: not known
	MostFiles          int
	// Connections at the parties' door, and how many there may be; 0: not known.
	Known, Strangers, MostConnections int
	// CertificateEnd is the end of validity of the certificate that the door shows; zero: HTTP.
	CertificateEnd time.Time
	// Damaged is how many federations were found damaged, by the last check at Checked or when they
	// were claimed since, and Healed how many times this node has put back what was lost.
	Damaged, Healed int
	Checked         time.Time // zero: not since the start
	Federations     []Figures
}

// Figures holds the figures of a federation.
type Figures struct {
	Name string
	Led  bool // by some node
	// Status is nil if another node leads the federation, which then reports it.
	Status *runner.Status
}

// family is a metric: its name after hushsum_, its description, and its type.
type family struct{ name, help, kind string }

// families lists all metrics, in the order in which they are written. No label names a party.
var families = []family{
	{"ready", "1 if the record takes decisions and each federation has a leader", "gauge"},
	{"record_ready", "1 if the record takes this node's decisions", "gauge"},
	{"record_damaged", "federations found damaged, by the last check or a claim", "gauge"},
	{"record_healed_total", "claims at which this node put back what JetStream had lost", "counter"},
	{"record_checked_age_seconds", "since this node has read all of its record", "gauge"},
	{"disk_free_bytes", "bytes free on the disk of the node's folder", "gauge"},
	{"disk_size_bytes", "bytes of the disk of the node's folder", "gauge"},
	{"open_files", "files that the process has open", "gauge"},
	{"open_files_limit", "files that the process may open", "gauge"},
	{"certificate_end_seconds", "Unix time at which the door's certificate ends", "gauge"},
	{"door_connections", "connections at the parties' door, of the known and of strangers", "gauge"},
	{"door_connections_limit", "connections that the parties' door may have", "gauge"},
	{"door_requests_total", "requests at the parties' door", "counter"},
	{"door_refused_total", "requests that the door refused, by kind", "counter"},
	{"door_bytes_in_total", "bytes of bodies received by the door", "counter"},
	{"door_bytes_out_total", "bytes of bodies sent by the door", "counter"},
	{"has_leader", "1 if this node hears a leader of the federation, or leads it", "gauge"},
	{"figures_age_seconds", "age of the figures of a federation; 0 if its leader answers", "gauge"},
	{"paused", "1 if the federation is paused", "gauge"},
	{"ended", "1 if the federation has ended", "gauge"},
	{"rounds_planned", "rounds that the federation has in total", "gauge"},
	{"rounds_begun_total", "rounds that were begun", "counter"},
	{"rounds_lost_total", "rounds without a sum", "counter"},
	{"rounds_lost_in_outages_total", "of those, rounds in which the record was away", "counter"},
	{"last_round_end_seconds", "Unix time at which the last round ended, with a sum or lost", "gauge"},
	{"last_sum_seconds", "Unix time of the last sum", "gauge"},
	{"decisions_total", "decisions that were recorded", "counter"},
	{"epsilon_spent", "most epsilon that any party has spent, of what its status says", "gauge"},
	{"epsilon_budget", "epsilon that no party spends more than; 0 without one", "gauge"},
	{"parties_least", "fewest parties that a sum takes", "gauge"},
	{"parties", "parties by state", "gauge"},
	{"members", "members of the committee by state", "gauge"},
	{"step_seconds", "how long steps took since this node began to lead", "histogram"},
}

// samples holds lines of the text form of Prometheus, by the name of their metric.
type samples map[string][]string

// add adds a value; labels alternates names and values.
func (s samples) add(name string, value float64, labels ...string) {
	s.addTo(name, "", value, labels...)
}

// addTo adds a value to one of the series of a histogram.
func (s samples) addTo(name, suffix string, value float64, labels ...string) {
	var b strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s="%s"`, labels[i], escape.Replace(labels[i+1]))
	}
	all := b.String()
	if all != "" {
		all = "{" + all + "}"
	}
	s[name] = append(s[name], fmt.Sprintf("hushsum_%s%s%s %s\n", name, suffix, all,
		strconv.FormatFloat(value, 'g', -1, 64)))
}

// escape escapes the values of labels.
var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// write writes all metrics that have a sample.
func (s samples) write(w io.Writer) {
	for _, f := range families {
		if len(s[f.name]) == 0 {
			continue
		}
		fmt.Fprintf(w, "# HELP hushsum_%s %s\n# TYPE hushsum_%s %s\n", f.name, f.help, f.name, f.kind)
		for _, line := range s[f.name] {
			_, _ = io.WriteString(w, line)
		}
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// metrics serves the metrics in the text form of Prometheus.
func (s *site) metrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	out := samples{}
	if c := s.Counts; c != nil {
		out.add("door_requests_total", float64(c.Requests.Load()))
		refused := c.Refused()
		for _, kind := range slices.Sorted(maps.Keys(refused)) {
			out.add("door_refused_total", float64(refused[kind]), "kind", kind)
		}
		out.add("door_bytes_in_total", float64(c.BytesIn.Load()))
		out.add("door_bytes_out_total", float64(c.BytesOut.Load()))
	}
	at := s.Federations.Signals(r.Context())
	out.add("ready", one(at.Ready))
	out.add("record_ready", one(at.Decides))
	out.add("record_damaged", float64(at.Damaged))
	out.add("record_healed_total", float64(at.Healed))
	if !at.Checked.IsZero() {
		out.add("record_checked_age_seconds", time.Since(at.Checked).Seconds())
	}
	if at.DiskSize > 0 {
		out.add("disk_free_bytes", float64(at.DiskFree))
		out.add("disk_size_bytes", float64(at.DiskSize))
	}
	if at.OpenFiles > 0 && at.MostFiles > 0 {
		out.add("open_files", float64(at.OpenFiles))
		out.add("open_files_limit", float64(at.MostFiles))
	}
	if !at.CertificateEnd.IsZero() {
		out.add("certificate_end_seconds", float64(at.CertificateEnd.Unix()))
	}
	if at.MostConnections > 0 {
		out.add("door_connections", float64(at.Known), "of", "known")
		out.add("door_connections", float64(at.Strangers), "of", "strangers")
		out.add("door_connections_limit", float64(at.MostConnections))
	}
	for _, f := range at.Federations {
		out.add("has_leader", one(f.Led), "federation", f.Name)
		if f.Status != nil {
			out.figures(f.Status)
		}
	}
	out.write(w)
}

// figures adds the figures of a federation. Unknown ones are left out rather than 0.
func (s samples) figures(f *runner.Status) {
	add := func(name string, value float64, labels ...string) {
		s.add(name, value, append([]string{"federation", f.Name}, labels...)...)
	}
	add("rounds_planned", float64(f.Rounds))
	budget, spent := 0., 0.
	if f.Budget != nil {
		budget = f.Budget.Target().Epsilon
	}
	if f.Spent != nil {
		spent = f.Spent.Bare().Upper
	}
	add("epsilon_budget", budget)
	add("parties_least", float64(f.Least))
	if !f.Known() {
		return
	}
	age := 0.
	if f.Recorded != nil {
		age = time.Since(*f.Recorded).Seconds()
	}
	add("figures_age_seconds", age)
	add("paused", one(f.State == "paused"))
	add("ended", one(f.State == "ended"))
	add("rounds_begun_total", float64(f.Round))
	add("rounds_lost_total", float64(f.Lost))
	add("rounds_lost_in_outages_total", float64(f.Outages))
	add("decisions_total", float64(f.Decisions))
	add("epsilon_spent", spent)
	s.history(f)
	for _, of := range []struct {
		name  string
		peers []runner.PartyStatus
	}{{"parties", f.Parties}, {"members", f.Committee}} {
		counts := states(of.peers)
		for _, state := range slices.Sorted(maps.Keys(counts)) {
			if of.peers != nil {
				add(of.name, float64(counts[state]), "state", state)
			}
		}
	}
	for _, x := range f.Steps {
		labels := []string{"federation", f.Name, "step", x.Step}
		all := x.Within[len(x.Within)-1]
		for i, n := range x.Within {
			bound := "+Inf"
			if i < len(runner.StepBounds) {
				bound = strconv.FormatFloat(runner.StepBounds[i], 'g', -1, 64)
			}
			s.addTo("step_seconds", "_bucket", float64(n), append(slices.Clone(labels), "le", bound)...)
		}
		s.addTo("step_seconds", "_sum", x.Seconds, labels...)
		s.addTo("step_seconds", "_count", float64(all), labels...)
	}
}

// history adds when the last round and the last sum were.
func (s samples) history(f *runner.Status) {
	ended := func(p runner.Past) float64 { return float64(p.Began.UnixNano())/1e9 + p.Seconds }
	for k, p := range slices.Backward(f.History) {
		if k == len(f.History)-1 {
			s.add("last_round_end_seconds", ended(p), "federation", f.Name)
		}
		if p.Parties > 0 {
			s.add("last_sum_seconds", ended(p), "federation", f.Name)
			return
		}
	}
}
