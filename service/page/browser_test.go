package page_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/hushsum/hushsum/service/runner"
)

// These tests draw pages by Chromium, and skip without it.

// open starts a browser.
func open(t *testing.T) context.Context {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			browser = found
		}
	}
	if browser == "" {
		t.Skip("needs chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser),
		chromedp.NoSandbox, chromedp.WindowSize(1100, 1500))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%.200s: %v", expression, err)
	}
	return out
}

// logIn has the browser's cookie be an operator's.
func logIn(t *testing.T, ctx context.Context, server *httptest.Server, token string) {
	t.Helper()
	do(t, ctx, chromedp.Navigate(server.URL+"/login"), chromedp.SendKeys("#token", token+"\r"),
		chromedp.WaitVisible("#live"))
}

// scene is a page in a state of the federation, as it is looked at.
type scene struct {
	name, path string // of the page; of a federation's, under it
	width      int64
	dark       bool
	media      string // print, or empty for a screen
	set        func(s *runner.Status)
}

// show has the browser at a scene.
func (c *scene) show(t *testing.T, ctx context.Context, server *httptest.Server, s *shown) {
	t.Helper()
	s.mutex.Lock()
	s.status = newShown().status
	if c.set != nil {
		c.set(&s.status)
	}
	s.mutex.Unlock()
	colours := "light"
	if c.dark {
		colours = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Media: c.media, Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: colours}}}
	path := c.path
	if !strings.HasPrefix(path, "/") {
		path = "/federations/" + s.status.ID + strings.TrimSuffix("/"+path, "/")
	}
	do(t, ctx, chromedp.EmulateViewport(c.width, 900),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, media)
			return err
		}), chromedp.Navigate(server.URL+path), chromedp.WaitVisible("main"))
}

// at is a time this many seconds from now.
func at(seconds float64) *time.Time {
	t := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	return &t
}

// hospitals has nine parties that are here, and how long steps took.
func hospitals(s *runner.Status) {
	s.Stage, s.Parties, s.Committee = "submitting", nil, nil
	for name := range strings.FieldsSeq("north south east west coast hills lakes plains islands") {
		s.Parties = append(s.Parties, runner.PartyStatus{Name: name, State: "here"})
	}
	for i, step := range []string{"preparing", "revealing", "signing", "submitting"} {
		x := runner.StepTimes{Step: step, Seconds: 4 * float64(i*i+1)}
		x.Within = make([]uint64, len(runner.StepBounds)+1)
		x.Within[len(runner.StepBounds)] = 7
		s.Steps = append(s.Steps, x)
	}
}

func inRound(s *runner.Status) {
	hospitals(s)
	s.Since, s.Until = at(-3), at(57)
	for i := range s.Parties[:4] {
		s.Parties[i].Awaited = true
	}
}

func hangs(s *runner.Status) {
	hospitals(s)
	s.Since, s.Until = at(-42), at(18)
	s.Parties[1].State, s.Parties[1].Awaited = "late", true
	s.Parties[8].State, s.Parties[8].Awaited = "gone", true
}

func leaderless(s *runner.Status) {
	hospitals(s)
	s.State, s.Stage, s.Leader, s.Recorded, s.Steps = runner.Leaderless, "", "", at(-95), nil
	for i := range s.Parties {
		s.Parties[i].State = "gone"
	}
}

func nearlySpent(s *runner.Status) {
	hospitals(s)
	s.Round, s.Lost, s.Spent, s.State, s.Stage, s.Why = 19, 3, spentOf(7.6), "paused", "", "by ann"
	s.Parties[1].State = "left out"
	s.History = nil
	for i := range 19 {
		p := runner.Past{Round: i + 1, Parties: 7 + i%3, Seconds: 31, Share: 0.95 * float64(i+1) / 19,
			Accuracy: 0.6 + 0.25*float64(i)/float64(i+4), Began: time.Now()}
		if i%7 == 4 {
			p.Parties, p.Accuracy, p.Lost = 0, 0, "5 parties submitted; a sum takes 7"
		}
		s.History = append(s.History, p)
	}
}

// several has a list of federations in all states.
func several(s *runner.Status) { hospitals(s); s.Why = "several" }

// scenes are all pages, in states in which an operator needs them.
var scenes = []scene{
	{name: "round", width: 1100, set: inRound},
	{name: "committee", width: 360},
	{name: "no-leader", width: 1100, set: leaderless},
	{name: "hanging-party", width: 1100, set: hangs},
	{name: "nearly-spent", width: 1100, set: nearlySpent},
	{name: "phone", width: 360, set: hangs},
	{name: "dark", width: 1100, dark: true, set: hangs},
	{name: "answers", width: 1100, set: answers},
	{name: "answers-phone", width: 360, dark: true, set: answers},
	{name: "questions", width: 360, set: planned},
	{name: "more-questions", path: "plan", width: 360, set: answers},
	{name: "wide", width: 1440, set: hangs},
	{name: "wide-dark", width: 1440, dark: true, set: nearlySpent},
	{name: "phone-dark", width: 390, dark: true, set: nearlySpent},
	{name: "list", path: "/", width: 1440, set: several},
	{name: "list-phone", path: "/", width: 390, dark: true, set: several},
	{name: "list-light-phone", path: "/", width: 390, set: several},
	{name: "report", path: "report", width: 900, set: nearlySpent},
	{name: "report-print", path: "report", width: 900, media: "print", set: nearlySpent},
	{name: "report-phone", path: "report", width: 360},
	{name: "node", path: "/node", width: 1100},
	{name: "node-phone", path: "/node", width: 360, dark: true},
	{name: "login", path: "/login", width: 360},
	{name: "problem", path: "/federations/none", width: 360},
	{name: "end", path: "end", width: 360},
	{name: "exclude", path: "parties/south/exclude", width: 1100, dark: true},
}

// Every page is drawn, without an error of the content-security policy, and no wider than a phone;
// HUSHSUM_SCREENS names a folder where the screens are left.
func TestScreens(t *testing.T) {
	ctx := open(t)
	s, server, tokens := newPage(t, false)
	logIn(t, ctx, server, tokens[1])
	folder := os.Getenv("HUSHSUM_SCREENS")
	for _, c := range scenes {
		c.show(t, ctx, server, s)
		if wide := eval[int64](t, ctx, "document.documentElement.scrollWidth"); wide > c.width {
			t.Errorf("%s: %d wide on a screen of %d", c.name, wide, c.width)
		}
		shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil || len(shot) < 2000 {
			t.Fatalf("%s: %d bytes, %v", c.name, len(shot), err)
		}
		if folder != "" {
			if err := os.WriteFile(filepath.Join(folder, c.name+".png"), shot, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// axe-core finds nothing in any page, in light or dark. HUSHSUM_AXE names its axe.min.js; without
// it the test skips.
func TestAccessible(t *testing.T) {
	file := os.Getenv("HUSHSUM_AXE")
	if file == "" {
		t.Skip("needs HUSHSUM_AXE, the path of axe.min.js")
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx := open(t)
	s, server, tokens := newPage(t, false)
	logIn(t, ctx, server, tokens[1])
	for _, c := range scenes {
		for _, c.dark = range []bool{false, true} {
			c.show(t, ctx, server, s)
			eval[any](t, ctx, string(axe)+"; 0")
			found := eval[string](t, ctx, "window.found = \"\"; axe.run().then(r => { window.found = "+
				"JSON.stringify(r.violations.map(v => [v.id, v.help, v.nodes.map(n => n.html)])) + "+
				"(r.passes.length < 10 ? \"few rules ran\" : \"\") }); \"\"")
			for deadline := time.Now().Add(time.Minute); found == ""; time.Sleep(20 * time.Millisecond) {
				if found = eval[string](t, ctx, "window.found"); time.Now().After(deadline) {
					t.Fatal("axe does not end")
				}
			}
			if found != "[]" {
				t.Errorf("%s, dark %v: %s", c.name, c.dark, found)
			}
		}
	}
}

// An update changes what is shown and leaves what has the focus, is pressed or open: a click that
// began before it is one after it.
func TestLiveUpdates(t *testing.T) {
	ctx := open(t)
	s, server, tokens := newPage(t, false)
	logIn(t, ctx, server, tokens[1])
	c := scene{width: 1100}
	c.show(t, ctx, server, s)
	do(t, ctx, chromedp.WaitVisible(`#live[data-updates]`), chromedp.Focus("#pause button"))
	eval[any](t, ctx, `document.querySelector("#pause button").mark = true;
		document.querySelector("#order-parties").open = true;
		window.clicks = 0;
		document.querySelector("#pause").addEventListener("submit", (e) => {
			e.preventDefault(); window.clicks++; }); 0`)
	where := eval[[]float64](t, ctx, `(() => { const r = document.querySelector("#pause button")
		.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
	press := func(kind input.DispatchMouseEventType) {
		t.Helper()
		do(t, ctx, chromedp.MouseEvent(kind, where[0], where[1], chromedp.ButtonLeft,
			chromedp.ClickCount(1)))
	}
	press(input.DispatchMouseEventTypeMousePressed)
	s.mutex.Lock()
	s.status.Stage, s.status.Why, s.status.Committee = "revealing", "so", nil
	s.status.Parties[2].State = "here"
	s.mutex.Unlock()
	do(t, ctx, chromedp.WaitVisible(`#live[data-held]`)) // what would move the button
	press(input.DispatchMouseEventTypeMouseReleased)
	do(t, ctx, chromedp.WaitVisible(`#live[data-updates="2"]`))
	if clicks := eval[int](t, ctx, "window.clicks"); clicks != 1 {
		t.Errorf("%d clicks of one", clicks)
	}
	text := eval[string](t, ctx, `document.getElementById("live").textContent`)
	if !strings.Contains(text, "revealing") || strings.Contains(text, "Committee") ||
		!strings.Contains(text, "2 here") {
		t.Errorf("after the update: %s", text)
	}
	for _, kept := range []string{`document.activeElement.mark === true`,
		`document.querySelector("#order-parties").open`} {
		if !eval[bool](t, ctx, kept) {
			t.Errorf("after the update not: %s", kept)
		}
	}
	server.CloseClientConnections()
	do(t, ctx, chromedp.WaitVisible("#cut"))
}
