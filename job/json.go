package job

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// MarshalJSON returns as JSON what [Job.MarshalText] writes.
func (j *Job) MarshalJSON() ([]byte, error) {
	return json.Marshal(treeOf(j, &theJob, func(*row) bool { return true }))
}

// UnmarshalJSON reads what [Parse] reads.
func (j *Job) UnmarshalJSON(text []byte) error {
	read, err := Parse("", text)
	if err != nil {
		return err
	}
	*j = *read
	return nil
}

// treeOf returns the rows of a table that are asked for and differ from their defaults, as maps,
// lists and values.
func treeOf(owner any, t *table, asked func(r *row) bool) map[string]any {
	tree := map[string]any{}
	for _, e := range t.entries {
		var v any
		switch {
		case e.list != nil:
			var elements []any
			for i := range e.list.len(owner) {
				elements = append(elements, treeOf(e.list.of(owner, i), &e.list.rows, asked))
			}
			if elements == nil {
				continue
			}
			v = elements
		case !asked(e.row) || e.row.zero(owner) || reflect.DeepEqual(e.row.get(owner), e.row.preset):
			continue
		default:
			v = plain(e.row.get(owner))
		}
		names := strings.Split(e.path(), ".")
		at := tree
		for _, name := range names[:len(names)-1] {
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			at = at[name].(map[string]any)
		}
		at[names[len(names)-1]] = v
	}
	return tree
}

// plain writes times as files have them.
func plain(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return v.String()
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case []time.Duration:
		var texts []string
		for _, d := range v {
			texts = append(texts, d.String())
		}
		return texts
	}
	return v
}
