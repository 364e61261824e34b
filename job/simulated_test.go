package job

import (
	"slices"
	"testing"
)

// A job that parties cannot run between machines says by which fields that is so; with them mended
// it is none.
func TestSimulated(t *testing.T) {
	const plain = "name = \"x\"\nrounds = 2\nmodel.length = 3\nparties.roster = \"roster.txt\"\n"
	for _, c := range []struct {
		text string
		set  []string
		want []string
	}{
		{text: plain},
		{text: "name = \"x\"\nrounds = 2\nmodel.length = 3\nparties.count = 5\n",
			want: []string{"parties.roster"}},
		{text: plain, set: []string{"privacy.clip=1", "privacy.noise=discrete-gaussian",
			"privacy.epsilon=1", "privacy.clip_quantile=0.5"}, want: []string{"privacy.clip_quantile"}},
		{text: plain, set: []string{"privacy.clip=1", "privacy.noise=discrete-gaussian",
			"privacy.epsilon=1", "privacy.unit=record", "training.batch=2"},
			want: []string{"privacy.records", "privacy.submit_after"}},
		{text: "name = \"x\"\nrounds = 2\nmodel.name = \"logistic\"\nparties.roster = \"roster.txt\"\n",
			want: []string{"model"}},
		{text: "name = \"x\"\nrounds = 2\nmodel.name = \"logistic\"\nparties.roster = \"roster.txt\"\n",
			set: []string{"model.features=4", "model.classes=2"}},
	} {
		j, err := Parse("x.toml", []byte(c.text), c.set...)
		if err != nil {
			t.Errorf("%s %v: %v", c.text, c.set, err)
			continue
		}
		var got []string
		for _, e := range j.Simulated() {
			got = append(got, e.Path)
			if e.Reason == "" || e.Advice == "" {
				t.Errorf("%+v", e)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %v: %v, want %v", c.text, c.set, got, c.want)
		}
	}
}

// A mistake in an element that has a name says it, and the name sets its fields too; one that has
// none, or that of another, goes by its number.
func TestNamed(t *testing.T) {
	const text = "name = \"x\"\nparties.count = 5\n[[column]]\nname = \"age\"\ntype = \"whole\"\n" +
		"range = [0, 9]\n[[query]]\nname = \"old\"\nkind = \"count\"\n" +
		"[[query]]\nname = \"young\"\nkind = \"count\"\n"
	for set, want := range map[string]string{
		"query.1.where=aeg > 1":   "query.young.where",
		"query.old.where=aeg > 1": "query.old.where",
		"query.old.column=age":    "query.old.column",
		"column.age.range=9,0":    "column.age.range",
		"query.old.knd=count":     "query.old.knd",
		"query.older.where=a":     "query.older.where",
		"query.0.name=young":      "query.1.name", // of which there are two then
		"query.1.name=":           "query.young.name",
	} {
		_, err := Parse("x.toml", []byte(text), set)
		all := Errors(err)
		if len(all) == 0 {
			t.Errorf("%s is taken", set)
			continue
		}
		if got := all[0].Place(); got != want {
			t.Errorf("%s: %s, want %s (%v)", set, got, want, err)
		}
	}
	j, err := Parse("x.toml", []byte(text), "query.young.where=age < 3", "query.0.where=age > 3")
	if err != nil || j.Query[1].Where != "age < 3" || j.Query[0].Where != "age > 3" {
		t.Errorf("%v, %+v", err, j)
	}
}
