package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/service/record"
)

// world is a record with some federations, each with a history, in which a nemesis strikes between
// the record's starts, or while it runs. All of it follows from a seed.
type world struct {
	random  *rand.Rand
	nemesis string
	// external says that two nodes have files of their own, and an operator's NATS.
	external bool
	folder   string
	disk     *disk
	all      []*played
	struck   []string // what the nemesis did
	ended    string   // why the record no longer starts, by name
	stuck    string   // JetStream does not answer any more
}

// played is a federation.
type played struct {
	*history
	w      *world
	id     string
	values int
	kept   []byte              // by a party: the lines of what was shown; of nemesis noBoth
	holds  map[string]*holding // by node
	named  int                 // losses that were named, or refusals
}

// Nemeses of histories without processes.
const (
	kills   = "kills"                 // in steps of decisions, and of the whole record
	stopped = "damage while stopped"  // flips and cuts
	running = "damage while it runs"  // the same, to files that are open
	noFile  = "an old copy of files"  // of decisions: the stream is newer
	noLog   = "an old copy of stream" // JetStream's files: the file of decisions is newer
	noBoth  = "an old copy of all"    // but what a party has kept
	several = "damage to several"     // files of one federation, while stopped
)

var nemeses = []string{kills, stopped, stopped, running, running, several, noFile, noLog, noBoth}

const (
	federations = 8 // of a world
	starts      = 3 // of its record
)

func newWorld(seed uint64, folder string) *world {
	random := rand.New(rand.NewPCG(seed, 53))
	w := &world{random: random, nemesis: nemeses[random.IntN(len(nemeses))],
		external: random.IntN(2) == 0,
		folder:   filepath.Join(folder, "0")}
	for k := range federations {
		w.all = append(w.all, &played{history: newHistory(), w: w,
			id: strings.Repeat(fmt.Sprintf("%02x", 16+k), 32)})
	}
	return w
}

// play plays the histories of a world. It fails for what no history has.
func (w *world) play(ctx context.Context) error {
	if err := os.Mkdir(w.folder, 0o700); err != nil {
		return err
	}
	older := ""
	for k := range starts {
		var err error
		if w.disk, err = start(ctx, w.folder, w.external); err != nil {
			result, unnamed := resultOf(err)
			switch {
			case errors.Is(err, record.ErrUnavailable) && k > 0:
				w.stuck = err.Error()
				return nil
			case result != refused:
				return fmt.Errorf("start %d, after %v: %w", k, w.struck, unnamed)
			}
			w.ended = err.Error()
			return nil
		}
		for _, p := range w.all {
			if k == 0 {
				if err := w.disk.create(ctx, p.id); err != nil {
					return err
				}
			}
			if err := w.disk.looks(ctx, p.id); err != nil {
				return err
			}
			p.holds = make(map[string]*holding)
			for _, node := range nodes {
				if len(p.kept) == 0 {
					continue
				}
				if err := w.disk.given(ctx, node, p.id, p.kept); err != nil {
					return err
				}
			}
		}
		w.round(ctx)
		if w.nemesis == running && k < starts-1 {
			if err := w.damage(); err != nil {
				return err
			}
			w.round(ctx)
		}
		if k == starts-1 {
			for _, p := range w.all {
				p.audits(ctx)
			}
		}
		if w.stuck != "" {
			return nil
		}
		if err := w.stop(k); err != nil {
			return err
		}
		if k == starts-1 {
			return nil
		}
		switch w.nemesis {
		case stopped, several:
			err = w.damage()
		case noFile, noLog, noBoth:
			if k == 0 {
				older = filepath.Join(w.folder, "..", "older")
				err = os.CopyFS(older, os.DirFS(w.folder))
			} else {
				err = w.putBack(older)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// round has something done to each federation.
func (w *world) round(ctx context.Context) {
	for _, p := range w.all {
		for range 2 + w.random.IntN(5) {
			if p.step(ctx, true); w.stuck != "" {
				return // a node ends, and says why
			}
		}
	}
}

// stop ends the record, or kills it: then the files go on as they are now.
func (w *world) stop(k int) error {
	if w.random.IntN(2) == 0 {
		return w.disk.close()
	}
	next := filepath.Join(w.folder, "..", fmt.Sprint(k+1))
	if err := os.CopyFS(next, os.DirFS(w.folder)); err != nil {
		return err
	}
	err := w.disk.close()
	if err == nil {
		err = os.RemoveAll(w.folder)
	}
	w.folder = next
	return err
}

// damage damages a file that all federations have in common, or one of each federation's own: to
// each federation one fault is done. Of nemesis several it damages whatever it meets.
func (w *world) damage() error {
	block := func(name string) bool { return strings.HasSuffix(name, ".blk") }
	if w.nemesis == several {
		for range 2 + w.random.IntN(federations) {
			if err := w.damageOne(func(string) bool { return true }); err != nil {
				return err
			}
		}
		return nil
	}
	switch w.random.IntN(4) {
	case 0: // any file
		return w.damageOne(func(string) bool { return true })
	case 1: // what names decisions, definitions or lines
		return w.damageOne(func(name string) bool {
			return block(name) && !strings.Contains(name, objects)
		})
	}
	for _, of := range w.all {
		what := w.random.IntN(3)
		err := w.damageOne(func(name string) bool {
			switch what {
			case 0:
				return strings.HasSuffix(name, of.id+".chain")
			case 1:
				return strings.Contains(name, objects+of.id[:16]) && block(name)
			}
			return strings.Contains(name, objects+of.id[:16]) || strings.HasSuffix(name, of.id+".chain")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// objects is how the stream of a federation's objects is called, before digits of its identifier.
const objects = "OBJ_hushsum-objects-"

func (w *world) damageOne(may func(name string) bool) error {
	d, is := damageIn(w.folder, w.random, may)
	if !is {
		return nil
	}
	w.struck = append(w.struck, d.String())
	return d.Do(w.folder)
}

// putBack puts older files in the place of some.
func (w *world) putBack(older string) error {
	if w.nemesis == noBoth {
		w.struck = append(w.struck, "an older copy of all")
		if err := os.RemoveAll(w.folder); err != nil {
			return err
		}
		return os.CopyFS(w.folder, os.DirFS(older))
	}
	part := map[string]string{noFile: "decided", noLog: "jetstream"}[w.nemesis]
	if w.external {
		part = map[string]string{noFile: "a/decided", noLog: "nats/jetstream"}[w.nemesis]
	}
	w.struck = append(w.struck, "an older "+part)
	at := filepath.Join(w.folder, filepath.FromSlash(part))
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	return os.CopyFS(at, os.DirFS(filepath.Join(older, filepath.FromSlash(part))))
}

// clients of a history: nodes, and a reader.
var clients = map[string]int{"a": 0, "b": 1, "reader": 2}

// step does one thing. deep says that others may do something in the middle of it.
func (p *played) step(ctx context.Context, deep bool) {
	node := nodes[p.w.random.IntN(2)]
	h := p.holds[node]
	switch k := p.w.random.IntN(10); {
	case k == 0:
		p.reads(ctx, read)
	case k == 1:
		p.reads(ctx, model)
	case k == 2 && h != nil:
		p.keeps(ctx, node)
	case h == nil || k == 3:
		p.claims(ctx, node)
	default:
		p.decides(ctx, node, deep)
	}
}

// said turns an error into a result.
func (p *played) said(err error) result {
	r, unnamed := resultOf(err)
	if errors.Is(err, record.ErrUnavailable) && len(p.w.struck) > 0 {
		p.w.stuck = err.Error()
	} else if unnamed != nil {
		p.wrong = append(p.wrong, "unnamed: "+unnamed.Error())
	}
	if r == refused {
		p.named++
	}
	return r
}

func (p *played) reads(ctx context.Context, what op) {
	at := nodes[p.w.random.IntN(2)]
	p.do(clients["reader"], input{op: what, node: "reader of " + at}, func() output {
		s, err := p.w.disk.reads(ctx, at, p.id, what == model)
		if err == nil {
			p.keep(ctx, at)
		}
		return output{result: p.said(err), value: s.Value, charged: s.Charged, orders: s.Orders}
	})
}

// audits sees that each decision that was told has its line, or is named as lost.
func (p *played) audits(ctx context.Context) {
	lines, lost, err := p.w.disk.logged(ctx, p.id)
	if p.said(err) != ok || lost > 0 || p.named > 0 {
		return
	}
	for _, number := range slices.Sorted(maps.Keys(p.told)) {
		if value := p.told[number]; !lines[value] {
			p.wrong = append(p.wrong, fmt.Sprintf("decision %d, %s, has no line", number, value))
		}
	}
}

func (p *played) keeps(ctx context.Context, node string) {
	p.do(clients[node], input{op: keep, node: node}, func() output {
		return output{result: p.said(p.holds[node].Keep(ctx))}
	})
}

func (p *played) claims(ctx context.Context, node string) {
	p.holds[node] = nil
	p.do(clients[node], input{op: claim, node: node}, func() output {
		h, named, err := p.w.disk.claims(ctx, p.id, node)
		out := output{result: p.said(err)}
		if err != nil {
			return out
		}
		if out.named = named; named {
			p.named++
		}
		p.holds[node] = h
		p.keep(ctx, node)
		out.value, out.charged, out.orders = h.Value, h.Charged, h.Orders
		return out
	})
}

// decides has a node decide something: a round, or an order of an operator.
func (p *played) decides(ctx context.Context, node string, deep bool) {
	h := p.holds[node]
	p.values++
	to := stored{Value: fmt.Sprint("v", p.values), Charged: h.Charged + 1, Orders: h.Orders}
	if p.w.random.IntN(4) == 0 {
		to.Charged, to.Orders = h.Charged, h.Orders+1
	}
	p.tried[to.Value] = true
	// In one of its steps it is killed, or others go on meanwhile.
	at, what := p.w.random.IntN(3), p.w.random.IntN(6)
	steps := 0
	fault := func(string) {
		steps++
		switch {
		case steps != at+1 || !deep || what > 2:
		case what == 0:
			panic(errCut)
		default:
			for range 1 + p.w.random.IntN(3) {
				p.stepOf(ctx, node)
			}
		}
	}
	in := input{decide, node, to.Value, to.Charged, to.Orders}
	out := p.do(clients[node], in, func() output {
		return output{result: p.said(h.decides(ctx, to, fault))}
	})
	switch {
	case out.result == ok:
		p.tell(h.Number(), to.Value)
		p.keep(ctx, node)
	case p.holds[node] == h:
		p.holds[node] = nil
	}
}

// keep has a party keep the lines of what anybody was shown, of nemesis noBoth.
func (p *played) keep(ctx context.Context, node string) {
	if p.w.nemesis != noBoth {
		return
	}
	var err error
	if p.kept, err = p.w.disk.lines(ctx, node, p.id); err != nil {
		p.wrong = append(p.wrong, err.Error())
	}
}

// stepOf does something while a node is in the middle of a decision.
func (p *played) stepOf(ctx context.Context, busy string) {
	other := map[string]string{"a": "b", "b": "a"}[busy]
	switch k := p.w.random.IntN(4); {
	case k == 0:
		p.reads(ctx, read)
	case k == 1:
		p.reads(ctx, model)
	case p.holds[other] == nil || k == 2:
		p.claims(ctx, other)
	default:
		p.decides(ctx, other, false)
	}
}
