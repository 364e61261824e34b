// Package recent keeps the answers to the questions that were asked last, so that nobody works them
// out again.
package recent

import "sync"

// Answers keeps answers to questions, errors too. It is safe for concurrent use: a caller whose
// question another has begun to answer waits for that answer.
type Answers[Question comparable, Answer any] struct {
	most         int
	lock         sync.Mutex
	newer, older map[Question]func() (Answer, error)
}

// New returns an empty Answers. It always keeps the last most answers, and never more than twice as
// many.
func New[Question comparable, Answer any](most int) *Answers[Question, Answer] {
	return &Answers[Question, Answer]{most: most}
}

// Get returns the answer to a question, which it calls find for if none is kept. find must not ask
// the same question.
func (a *Answers[Question, Answer]) Get(q Question, find func() (Answer, error)) (Answer, error) {
	a.lock.Lock()
	answer, kept := a.newer[q]
	if !kept {
		if answer, kept = a.older[q]; !kept {
			answer = sync.OnceValues(find)
		}
		if a.newer == nil || len(a.newer) == a.most {
			a.older, a.newer = a.newer, make(map[Question]func() (Answer, error))
		}
		a.newer[q] = answer
	}
	a.lock.Unlock()
	return answer()
}
