package sidecar

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hushsum/hushsum/internal/strict"
)

// maxCalls is how many calls are processed at a time; further ones wait to be read.
const maxCalls = 1024

// endTime is how long work may take to end once the program has ended.
const endTime = 300 * time.Millisecond

// maxObjects is the most jobs, parties, servers and so on that may exist at a time.
const maxObjects = 1 << 16

// Serve answers the calls that arrive on a stream, until it ends. It works on calls concurrently,
// but on those about one object one after another. memory may be the zero Memory. It returns nil
// when the stream ends between two frames, and [ErrFrame] if the bytes were no frame, after it has
// answered so. Work in progress then has a moment to end, and after that goes on behind Serve,
// which has returned.
func Serve(ctx context.Context, stream io.ReadWriter, memory Memory) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &sidecar{
		ctx:     ctx,
		out:     bufio.NewWriterSize(stream, 64<<10),
		objects: make(map[uint64]any),
	}
	var working sync.WaitGroup
	defer func() {
		cancel() // jobs end, and what waits for them
		done := make(chan struct{})
		go func() { working.Wait(); close(done) }()
		select {
		case <-done:
			s.eraseAll()
		case <-time.After(endTime):
		}
	}()
	reader := bufio.NewReaderSize(stream, 64<<10)
	room := make(chan struct{}, maxCalls)
	for greeted := false; ; {
		r, err := readRequest(reader, memory)
		switch {
		case r == nil && err == io.EOF:
			return nil
		case r == nil:
			if errors.Is(err, ErrFrame) {
				_ = s.answer(0, nil, nil, err)
			}
			return err
		case err == nil && !greeted && r.call != "hello":
			err = requestError("send hello with the version first", "the first call is %.40q", r.call)
		}
		if err != nil {
			if err := s.answer(r.id, nil, nil, err); err != nil {
				return err
			}
			continue
		}
		if r.call == "hello" {
			result, err := hello(r)
			greeted = greeted || err == nil
			if err := s.answer(r.id, result, nil, err); err != nil {
				return err
			}
			continue
		}
		room <- struct{}{}
		working.Go(func() {
			defer func() { <-room }()
			result, blobs, err := s.call(r)
			_ = s.answer(r.id, result, blobs, err) // if nobody reads, the stream ends too
		})
	}
}

// sidecar is a connection to one program, and the objects that it has made.
type sidecar struct {
	ctx context.Context

	writing sync.Mutex
	out     *bufio.Writer

	mutex   sync.Mutex
	objects map[uint64]any
	last    uint64 // the identifier given out last
	guards  map[account]*guard
}

// handler handles one call.
type handler func(s *sidecar, r *request) (result any, blobs [][]byte, err error)

// handlers returns all calls. Each family has a file.
func handlers() map[string]handler {
	all := make(map[string]handler)
	for _, family := range []map[string]handler{
		declareCalls, settleCalls, rowCalls, trialCalls, jobCalls, partyCalls, serverCalls, oneshotCalls,
		accountingCalls, noiseCalls, auditCalls, queryCalls,
		{"close": closeObject, "identity": identityCall},
	} {
		for name, h := range family {
			all[name] = h
		}
	}
	return all
}

var byName = sync.OnceValue(handlers)

// call handles one call. A fault of the library is an answer too: the program has other objects
// here.
func (s *sidecar) call(r *request) (result any, blobs [][]byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			// The text of p may contain the caller's numbers: it is not passed on.
			result, blobs, err = nil, nil, fmt.Errorf("%w in %s", errInternal, r.call)
		}
	}()
	h, found := byName()[r.call]
	if !found {
		return nil, nil, requestError(suggestion(r.call), "there is no call %.40q", r.call)
	}
	return h(s, r)
}

// suggestion names the calls of the same family.
func suggestion(call string) string {
	family, _, _ := strings.Cut(call, ".")
	var names []string
	for name := range byName() {
		if strings.HasPrefix(name, family+".") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "see docs/sidecar.md for the calls"
	}
	slices.Sort(names)
	return "use one of " + strings.Join(names, ", ")
}

// streamed is a result whose blob is written in pieces, from data that must stay unchanged until
// then.
type streamed struct {
	result any
	blob   body
	done   func() // is called once it is written, or cannot be
}

// answer writes a result, or an error.
func (s *sidecar) answer(id uint64, result any, blobs [][]byte, err error) error {
	var bodies []body
	for _, b := range blobs {
		bodies = append(bodies, inMemory(b))
	}
	if r, ok := result.(streamed); ok {
		defer r.done()
		result, bodies = r.result, []body{r.blob}
	}
	h := replyHeader{ID: id, Result: result}
	if err != nil {
		h.Result, h.Error, bodies = nil, newFault(err), nil
	} else if result == nil {
		h.Result = struct{}{}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	return writeReply(s.out, h, bodies)
}

// large is how many bytes are returned to the system as soon as they are free.
const large = 64 << 20

// freed returns memory to the system if it is much. The collector would keep it for the next
// allocation, and that may be a training step of the program.
func freed(bytes int) {
	if bytes >= large {
		debug.FreeOSMemory()
	}
}

// helloJSON states facts about the sidecar.
type helloJSON struct {
	Version int `json:"version"`
	Process int `json:"process"`
}

// hello agrees on the version.
func hello(r *request) (any, error) {
	var with struct {
		Version *int `json:"version"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, err
	}
	if with.Version == nil || *with.Version != version {
		return nil, requestError("install one version of both",
			"this sidecar has version %d of the calls", version)
	}
	return helloJSON{version, os.Getpid()}, nil
}

// take decodes the parameters of a call that comes with a given number of blobs.
func (r *request) take(into any, blobs int) error {
	if err := r.takeWith(into); err != nil {
		return err
	}
	if len(r.blobs) != blobs {
		return requestError("", "%s came with %d blobs and takes %d", r.call, len(r.blobs), blobs)
	}
	return nil
}

// takeWith decodes the parameters of a call.
func (r *request) takeWith(into any) error {
	with := r.with
	if with == nil {
		with = []byte("{}")
	}
	if err := strict.JSON(with, into); err != nil {
		return requestError("", "%s: %v", r.call, err)
	}
	return nil
}

// secret returns a blob that is a key of 32 bytes. It must not have been in memory that others can
// read, or change while it is used.
func (r *request) secret(i int, noun string) ([]byte, error) {
	b := r.blobs[i]
	switch {
	case b.shared:
		return nil, requestError("send it in the frame", "%s came through shared memory", noun)
	case len(b.bytes) != 32:
		return nil, requestError("make it once, of 32 random bytes, and keep it in a file "+
			"that nobody else can read", "%s has %d bytes, not 32", noun, len(b.bytes))
	}
	return b.bytes, nil
}

// parseDigest reads the digest of a broadcast.
func parseDigest(text string) (digest [32]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(digest) {
		return digest, fieldError("broadcast", "give SHA-256 over the label and the broadcast",
			"it is not 64 hexadecimal digits")
	}
	return [32]byte(b), nil
}

// add keeps an object.
func (s *sidecar) add(object any) (uint64, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.objects) >= maxObjects {
		return 0, requestError("close what is no longer needed", "there are %d objects", maxObjects)
	}
	s.last++
	s.objects[s.last] = object
	return s.last, nil
}

// lookup finds an object.
func lookup[T any](s *sidecar, id uint64, noun string) (T, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	object, ok := s.objects[id].(T)
	if !ok {
		return object, objectError(noun, id)
	}
	return object, nil
}

// closer is an object that has something to erase or to end.
type closer interface{ close() }

// closeObject forgets an object, and its keys.
func closeObject(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Object uint64 `json:"object"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	s.mutex.Lock()
	object, found := s.objects[with.Object]
	delete(s.objects, with.Object)
	s.mutex.Unlock()
	if !found {
		return nil, nil, objectError("object", with.Object)
	}
	if c, ok := object.(closer); ok {
		c.close()
	}
	return nil, nil, nil
}

// eraseAll forgets all objects.
func (s *sidecar) eraseAll() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, object := range s.objects {
		if c, ok := object.(closer); ok {
			c.close()
		}
	}
	clear(s.objects)
}
