package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Each patch changes what it says, once: the code around may change, but not these lines without
// somebody who sees to their fault.
func TestPatchesApply(t *testing.T) {
	root, err := clone()
	if err != nil {
		t.Fatal(err)
	}
	all, err := patches(filepath.Join(root, "tools", "mutants", "patches"))
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]bool{}
	for _, p := range all {
		if _, err := p.apply(root); err != nil {
			t.Errorf("%s, %s: %v", p.number, p.words, err)
		}
		if numbers[p.number] {
			t.Errorf("two patches have the number %s", p.number)
		}
		numbers[p.number] = true
	}
}

// A patch that is incomplete, or that no file has once, is refused.
func TestPatchRefused(t *testing.T) {
	const head = "number: 1\nwords: w\noracle: F1\ntest: ./x\n"
	for name, text := range map[string]string{
		"no edit":        head,
		"no words":       strings.Replace(head, "words: w\n", "", 1) + "@ go.mod\n- a\n+ b\n",
		"a strange line": head + "whatever\n",
		"no file":        head + "- a\n",
	} {
		if p, err := parse(text); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	root, err := clone()
	if err != nil {
		t.Fatal(err)
	}
	for name, edits := range map[string]string{
		"not there": "@ go.mod\n- a line that no file has\n+ b\n",
		"twice":     "@ tools/go.mod\n- \n+ // b\n",
		"the same":  "@ go.mod\n- module github.com/hushsum/hushsum\n+ module github.com/hushsum/hushsum\n",
		"no file":   "@ nowhere.go\n- a\n+ b\n",
	} {
		p, err := parse(head + edits)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := p.apply(root); err == nil {
			t.Errorf("%s: it applies", name)
		}
	}
}
