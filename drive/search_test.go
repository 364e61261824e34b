package drive_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// search is a search of every job that can come of one.
type search struct {
	*testing.T
	begun time.Time
	seen  map[shape]*visited
	path  []string
	edges int
	hits  int
	again int
}

// choice is something that may happen next.
type choice struct {
	name string
	do   func(n *node)
}

// shape is a digest of what all that follows from a job follows from.
type shape [16]byte

func shapeOf(common string, each ...[]string) shape {
	for _, x := range each {
		common += "\x00\x00" + strings.Join(x, "\x00")
	}
	sum := sha256.Sum256([]byte(common))
	return shape(sum[:])
}

// visited is a shape that was seen.
type visited struct {
	open bool  // what follows is being visited
	next shape // a digest of the shapes that follow at once
}

// report logs what was seen.
func (s *search) report() {
	s.Helper()
	s.Logf("complete: %d states, %d edges; %d states looked at again; %.1f s", len(s.seen), s.edges,
		s.again, time.Since(s.begun).Seconds())
}

// fail ends the test with how it came.
func (s *search) fail(format string, values ...any) {
	s.Helper()
	s.Fatalf("%s, after %d steps:\n%s", fmt.Sprintf(format, values...), len(s.path),
		strings.Join(s.path, "\n"))
}

// must fails on errors of machines.
func (s *search) must(err error) {
	s.Helper()
	if err != nil {
		s.fail("%v", err)
	}
}

// visit visits a job and all that follow.
func (e *explorer) visit(n *node) shape {
	key := e.shape(n)
	if was := e.seen[key]; was != nil {
		if was.open {
			e.fail("it goes round in circles")
		}
		// Now and then, what follows is compared: a shape that leaves out what matters shows.
		if e.hits++; e.hits%100 == 0 {
			e.again++
			if e.follow(n, e.shape) != was.next {
				e.fail("what follows is not what followed from the same shape")
			}
		}
		return key
	}
	if len(e.path) > 2000 {
		e.fail("it does not end")
	}
	now := &visited{open: true}
	e.seen[key] = now
	now.next = e.follow(n, e.visit)
	now.open = false
	return key
}

// follow does something with all jobs that follow at once, and returns a digest of their shapes.
func (e *explorer) follow(n *node, do func(next *node) shape) shape {
	choices := e.choices(n)
	if len(choices) == 0 {
		e.finish(n)
	}
	var shapes []string
	for _, c := range choices {
		next := *n
		next.seats = slices.Clone(n.seats)
		e.path = append(e.path, c.name)
		e.edges++
		c.do(&next)
		e.check(&next)
		key := do(&next)
		shapes = append(shapes, string(key[:]))
		e.path = e.path[:len(e.path)-1]
	}
	slices.Sort(shapes)
	return shapeOf("", shapes)
}
