package job

import "reflect"

// Runner is a program that runs jobs, or a way in which one does.
type Runner string

// The runners that lack something which a job can declare. Any other runs every valid job.
const (
	// Sums is a simulation of one sum after the other, in which no time passes.
	Sums Runner = "a simulation without time"
	// Timed is a simulation in virtual time, of places, links and faults.
	Timed Runner = "virtual time"
	// Crowd is the fidelity of that name, in virtual time.
	Crowd Runner = "a crowd"
	// Machines are those of the parties, each with one.
	Machines Runner = "machines of the parties"
	// Programs are those that parties of a service bring, in a job that does not train its model.
	Programs Runner = "the parties' programs of a service"
)

// lack says that a runner does not do what a field declares.
type lack struct {
	runner Runner
	value  any // the one that it lacks; nil: all but zero and the default
	why    string
}

// lacks says that a runner takes no value of the field but its default.
func (r *row) lacks(runner Runner, why string) *row {
	r.missing = append(r.missing, lack{runner: runner, why: why})
	return r
}

// lacks says that a runner takes no element of the list.
func (l *list) lacks(runner Runner, why string) *list {
	l.missing = append(l.missing, lack{runner: runner, why: why})
	return l
}

// lacksOnly says that a runner does not take one value.
func (r *row) lacksOnly(runner Runner, value any, why string) *row {
	r.missing = append(r.missing, lack{runner: runner, value: value, why: why})
	return r
}

// covers reports whether a value is one that the runner lacks.
func (l *lack) covers(r *row, value any) bool {
	if l.value != nil {
		return value == l.value
	}
	return !reflect.DeepEqual(value, r.preset)
}

// Lacks returns the mistake in the first field of a valid job that a runner does not support, nil
// if it supports all of them. The advice is the caller's, who knows what else there is.
func (j *Job) Lacks(runner Runner, advice string) *ConfigError {
	for _, e := range theJob.entries {
		if e.zero(j) {
			continue
		}
		for _, l := range e.missing() {
			if l.runner == runner && (e.row == nil || l.covers(e.row, e.row.get(j))) {
				return j.Mistake(e.path(), advice, "%s", l.why)
			}
		}
	}
	return nil
}
