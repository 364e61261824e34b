package exchange

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Of several mistakes in a query the same one is told every time.
func TestTellsOneMistake(t *testing.T) {
	query := url.Values{"c": {"1"}, "b": {"1"}, "a": {"1"}, "d": {"1"}}
	for range 20 {
		if _, _, err := ParseAsk(query, longestPoll); err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Fatalf("%v, want what is wrong with a", err)
		}
	}
}

// A door reads the question that a party has asked, and a party the answer that a door has given.
func TestBothSides(t *testing.T) {
	item := rapid.StringMatching(`[0-9a-z.]{1,64}`)
	rapid.Check(t, func(t *rapid.T) {
		ask := Ask{
			Least:   rapid.Uint64Max(1<<62-1).Draw(t, "least"),
			Absent:  rapid.Uint64Max(1<<31-1).Draw(t, "absent"),
			Offer:   rapid.Uint64Max(1<<31-1).Draw(t, "offer"),
			Working: rapid.Bool().Draw(t, "working"),
			Number:  rapid.Uint64Max(1<<63-1).Draw(t, "number"),
			Process: rapid.Uint64Max(1<<63-1).Draw(t, "process"),
		}
		if rapid.Bool().Draw(t, "some") {
			ask.Sessions = rapid.SliceOfN(rapid.Uint64Max(1<<63-1), 1, 4).Draw(t, "sessions")
			ask.Seen = rapid.SliceOfN(item, 1, 4).Draw(t, "seen")
		}
		query, err := url.ParseQuery(ask.Query().Encode())
		if err != nil {
			t.Fatal(err)
		}
		got, wait, err := ParseAsk(query, longestPoll)
		if err != nil || !reflect.DeepEqual(got, ask) || wait != longestPoll {
			t.Fatalf("%+v, %v, %v, want %+v", got, wait, err, ask)
		}
		next := Next{
			Kind:    rapid.SampledFrom([]Kind{Join, Message, Upload, End}).Draw(t, "kind"),
			Item:    item.Draw(t, "item"),
			Session: rapid.Uint64().Draw(t, "session"),
			Round:   rapid.IntRange(0, 1<<31-1).Draw(t, "of"),
		}
		h := make(http.Header)
		next.Set(h)
		if got, err := ParseNext(h); err != nil || !reflect.DeepEqual(got, next) {
			t.Fatalf("%+v, %v, want %+v", got, err, next)
		}
	})
}
