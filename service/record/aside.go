package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// This file has what happens when JetStream does not start on its files: a single bit of a
// message's number makes it count up for ever, and take memory. The files are moved aside. Nothing
// is deleted.

// leastStart is how long JetStream may take to start, on few files.
var leastStart = 20 * time.Second

const (
	readRate = 8 << 20 // bytes a second that a slow disk reads at a start
	aside    = ".damaged-"
)

// startTime returns how long JetStream may take to start on the files of a folder.
func startTime(folder string) time.Duration {
	size := int64(0)
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return leastStart + time.Duration(size)*time.Second/readRate
}

// fatal is a logger that keeps why a server does not start.
type fatal struct {
	mutex sync.Mutex
	text  string
}

func (f *fatal) Fatalf(format string, v ...any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.text = fmt.Sprintf(format, v...)
}

func (f *fatal) said() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.text
}

func (f *fatal) Noticef(string, ...any) {}
func (f *fatal) Warnf(string, ...any)   {}
func (f *fatal) Errorf(string, ...any)  {}
func (f *fatal) Debugf(string, ...any)  {}
func (f *fatal) Tracef(string, ...any)  {}

var _ server.Logger = new(fatal)

// errHung: JetStream does not start, and does not say why.
var errHung = errors.New("it did not start")

// begin starts a server, and returns once it is ready. It fails with [errHung] if its files are the
// likely cause.
func begin(s *server.Server, folder string) error {
	why := new(fatal)
	s.SetLoggerV2(why, false, false, false)
	panicked := make(chan any, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				panicked <- p
			}
		}()
		s.Start()
	}()
	limit := startTime(folder)
	for began := time.Now(); time.Since(began) < limit; {
		if s.ReadyForConnections(pause) {
			return nil
		}
		if text := why.said(); text != "" {
			return fmt.Errorf("it did not start: %s", text)
		}
		select {
		case p := <-panicked:
			return fmt.Errorf("%w: it panicked: %v", errHung, p)
		default:
		}
	}
	return fmt.Errorf("%w in %v", errHung, limit.Round(time.Second))
}

// setAside moves the files of JetStream out of its folder, on which it does not start. It moves
// nothing if the folder's disk is the cause. The error that it returns says what to do.
func setAside(folder string, why error) error {
	if err := writable(folder); err != nil {
		return fmt.Errorf("%w: %w; its disk takes no files: %w", ErrUnavailable, why, err)
	}
	to, err := moveAside(folder, filepath.Join(folder, Subfolder), "")
	if err != nil {
		return fmt.Errorf("%w: %w; move them aside: %w", ErrUnavailable, why, err)
	}
	return &Damage{fmt.Sprintf("JetStream does not start on its files (%v), which are in %s now", why,
		to), "start this node again: in a cluster it gets the record from the others; alone it begins " +
		"an empty one, and you restore a backup"}
}

// moveAside moves a folder next to that of the record, under a name with the time and an ending.
func moveAside(folder, from, ending string) (to string, err error) {
	to = filepath.Join(folder, Subfolder+aside+time.Now().UTC().Format("20060102T150405Z")+ending)
	return to, os.Rename(from, to)
}

// withoutBroken moves aside what JetStream would count on for ever: of a node alone the stream, and
// in a cluster all, which this node then gets from the others. It returns where that is now.
func withoutBroken(folder string, alone bool) (moved []string, err error) {
	all := filepath.Join(folder, Subfolder)
	for {
		stream := brokenStream(all)
		if stream == "" {
			return moved, nil
		}
		from, ending := all, ""
		if alone {
			from, ending = stream, "."+filepath.Base(stream)
		}
		to, err := moveAside(folder, from, ending)
		if err != nil {
			return nil, fmt.Errorf("%w: %s is damaged: move it aside: %w", ErrUnavailable, stream, err)
		}
		moved = append(moved, to)
	}
}

// writable fails if a folder takes no file at once.
func writable(folder string) error {
	done := make(chan error, 1)
	go func() {
		f, err := os.CreateTemp(folder, "probe-*")
		if err == nil {
			_, err = f.Write(make([]byte, 1<<16))
			err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(leastStart):
		return errors.New("it does not answer")
	}
}

// Aside returns the folders next to that of the record which hold all files of an earlier record,
// on which JetStream did not start.
func (e *Embedded) Aside() []string {
	all, _ := filepath.Glob(filepath.Join(e.options.StoreDir, Subfolder+aside+"*"))
	var whole []string
	for _, name := range all {
		if !strings.Contains(strings.TrimPrefix(filepath.Base(name), Subfolder+aside), ".") {
			whole = append(whole, name)
		}
	}
	return whole
}

// Parts of a message in a block of JetStream's: its length, with a bit for headers, and its number,
// with bits for messages that are deleted.
const (
	blockHead   = 4 + 8 + 8 + 2
	headerBit   = 1 << 31
	deletedBits = 1<<63 | 1<<62
	widestGap   = 1 << 24 // between the numbers of a block's messages; a block has 8 MB
)

// brokenStream returns the folder of a stream with a block whose messages' numbers jump, as those
// of a damaged one do; "" if there is none.
func brokenStream(folder string) (stream string) {
	_ = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".blk" {
			return nil
		}
		if jumps(name) {
			stream = filepath.Dir(filepath.Dir(name))
			return fs.SkipAll
		}
		return nil
	})
	return stream
}

// jumps reports whether the numbers of a block's messages have a gap that nothing explains.
func jumps(name string) bool {
	block, err := os.Open(name)
	if err != nil {
		return false
	}
	defer block.Close()
	var head [blockHead]byte
	last := uint64(0)
	for at := int64(0); ; {
		if _, err := block.ReadAt(head[:], at); err != nil {
			return false
		}
		size := binary.LittleEndian.Uint32(head[:]) &^ headerBit
		number := binary.LittleEndian.Uint64(head[4:])
		if size < blockHead {
			return false
		}
		at += int64(size)
		if number&deletedBits != 0 {
			continue
		}
		if last > 0 && number > last+widestGap {
			return true
		}
		last = max(last, number)
	}
}

// forgetIndexes removes what JetStream knows of its files without reading them. A copy of a stream
// that lost a message at the disk would otherwise answer for it as if it had it.
func forgetIndexes(folder string) error {
	return filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && filepath.Base(name) == "index.db" {
			return os.Remove(name)
		}
		return err
	})
}
