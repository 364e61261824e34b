package job

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// page is the reference page of a job.
const page = "../docs/job.md"

// pageMark begins the part of the page that is made.
const pageMark = "<!-- From here on go generate ./job makes the page of the table of fields. -->\n"

// sections say what the tables of the page are of, by the first part of paths.
var sections = []struct{ name, about string }{
	{"", "What stands at the top of a file."},
	{"parties", "Who takes part."},
	{"sum", "How sums are taken."},
	{"privacy", "Which noise is in sums, and what it may spend of a party's privacy."},
	{"model", "What is summed: the weights of a model, or a bare vector."},
	{"training", "What a party does in a round, where the job has a model that it trains itself."},
	{"server", "How a mean makes the next model."},
	{"metrics", "Loss and accuracy, summed with the updates."},
	{"column", "What the rows look like that parties bring to queries, a table for each column."},
	{"query", "What is asked of the rows of all parties together, a table for each question."},
	{"time", "When rounds are held. It may change while a job runs, and is in no digest."},
	{"world", "What a simulation needs and a deployment has: data, places, links, mishaps. It is " +
		"sent to nobody, and in no digest."},
}

// withTables makes the tables of the page anew, below what is written by hand.
func withTables(present []byte) ([]byte, error) {
	before, _, found := bytes.Cut(present, []byte(pageMark))
	if !found {
		return nil, errors.New("the page has lost the line from which on it is made")
	}
	var b strings.Builder
	b.Write(before)
	b.WriteString(pageMark + "\n## Fields\n")
	told := 0
	for _, s := range sections {
		heading := "[" + s.name + "]"
		if s.name == "" {
			heading = "The job"
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| field | type, unit | values | default | |\n"+
			"|---|---|---|---|---|\n", heading, s.about)
		for f := range Fields() {
			if first, _, within := strings.Cut(f.Path, "."); within &&
				strings.TrimSuffix(first, "[]") == s.name || s.name == "" && !within {
				told++
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Path, typeAndUnit(f),
					wordsOr(f), escaped(f.Default), escaped(f.Sentence))
			}
		}
	}
	for range Fields() {
		told--
	}
	if told != 0 {
		return nil, errors.New("fields of a section that the page does not have")
	}
	b.WriteString("\n## What does not run everywhere\n\nA job is simulated without time if it can " +
		"be, and else in virtual time. What only some of the ways to run a job have:\n\n" +
		"| field | values | not with | because |\n|---|---|---|---|\n")
	for _, e := range theJob.entries {
		for _, l := range e.missing() {
			values := "any"
			switch {
			case l.value != nil:
				values = fmt.Sprintf("`%v`", l.value)
			case e.row != nil && e.row.preset != nil:
				values = fmt.Sprintf("any but `%v`", e.row.preset)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.path(), values, l.runner,
				escaped(l.why))
		}
	}
	return []byte(b.String()), nil
}

func typeAndUnit(f Field) string {
	if f.Unit != "" {
		return escaped(string(f.Kind) + ", " + f.Unit)
	}
	return string(f.Kind)
}

// wordsOr lists the words of a field that has some, or says its range.
func wordsOr(f Field) string {
	if f.Kind == Word {
		return "`" + strings.Join(f.Words, "`, `") + "`"
	}
	return escaped(f.Range)
}

// escaped keeps text within a cell.
func escaped(text string) string {
	return strings.NewReplacer("|", `\|`, "_", `\_`, "*", `\*`).Replace(text)
}

// examples returns the files that the page shows.
func examples(t *testing.T) (texts []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```toml\n")[1:] {
		example, _, _ := strings.Cut(block, "```")
		texts = append(texts, example)
	}
	if len(texts) == 0 {
		t.Fatal("the page shows no file")
	}
	return texts
}

// The files that the page shows are jobs.
func TestExamples(t *testing.T) {
	for _, text := range examples(t) {
		if _, err := Parse("example", []byte(text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
