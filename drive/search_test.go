package drive_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// search visits every job that can come of one.
type search struct {
	*testing.T
	choices func(n *node) []choice
	shape   func(n *node) shape
	check   func(n *node) // fails where something happened that may not
	finish  func(n *node) // checks a job in which nothing happens any more

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
func (s *search) visit(n *node) shape {
	key := s.shape(n)
	if was := s.seen[key]; was != nil {
		if was.open {
			s.fail("it goes round in circles")
		}
		// Now and then, what follows is compared: a shape that leaves out what matters shows.
		if s.hits++; s.hits%100 == 0 {
			s.again++
			if s.follow(n, s.shape) != was.next {
				s.fail("what follows is not what followed from the same shape")
			}
		}
		return key
	}
	if len(s.path) > 2000 {
		s.fail("it does not end")
	}
	now := &visited{open: true}
	s.seen[key] = now
	now.next = s.follow(n, s.visit)
	now.open = false
	return key
}

// follow does something with all jobs that follow at once, and returns a digest of their shapes.
func (s *search) follow(n *node, do func(next *node) shape) shape {
	choices := s.choices(n)
	if len(choices) == 0 {
		s.finish(n)
	}
	var shapes []string
	for _, c := range choices {
		next := *n
		next.seats = slices.Clone(n.seats)
		s.path = append(s.path, c.name)
		s.edges++
		c.do(&next)
		s.check(&next)
		key := do(&next)
		shapes = append(shapes, string(key[:]))
		s.path = s.path[:len(s.path)-1]
	}
	slices.Sort(shapes)
	return shapeOf("", shapes)
}
