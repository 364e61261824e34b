package page_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// luminance is that of a colour #rrggbb by WCAG 2.2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	var c [3]uint8
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &c[0], &c[1], &c[2]); err != nil {
		t.Fatalf("%q: %v", colour, err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		x := float64(c[i]) / 255
		if x <= 0.04045 {
			x /= 12.92
		} else {
			x = math.Pow((x+0.055)/1.055, 2.4)
		}
		sum += weight * x
	}
	return sum
}

// contrast is the ratio of two colours.
func contrast(t *testing.T, a, b string) float64 {
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// The colours of the stylesheet contrast as level AA of WCAG 2.2 wants it, in light and dark: text
// by 4.5, what else says something by 3. All other rules name colours by these, and none makes them
// transparent.
func TestContrast(t *testing.T) {
	if black := contrast(t, "#000000", "#ffffff"); math.Abs(black-21) > 1e-9 {
		t.Fatalf("black on white has %v", black)
	}
	if grey := contrast(t, "#777777", "#ffffff"); math.Abs(grey-4.478) > 0.001 { // a known answer
		t.Fatalf("#777777 on white has %v", grey)
	}
	b, err := os.ReadFile("assets/page.css")
	if err != nil {
		t.Fatal(err)
	}
	sets := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(string(b), -1)
	if len(sets) != 2 {
		t.Fatalf("%d sets of colours, not light and dark", len(sets))
	}
	rest := string(b)
	for i, set := range sets {
		rest = strings.Replace(rest, set[0], "", 1)
		colours := map[string]string{}
		for _, m := range regexp.MustCompile(`--(\w+): (#\w+);`).FindAllStringSubmatch(set[1], -1) {
			colours[m[1]] = m[2]
		}
		for _, pair := range []struct {
			least        float64
			front, backs string
		}{
			{4.5, "text dim good late bad link", "back"},
			{4.5, "text bad", "panel"},
			{3, "edge bar late bad good link", "back"},
			{3, "bar", "rest"},
		} {
			for _, front := range strings.Fields(pair.front) {
				if ratio := contrast(t, colours[front], colours[pair.backs]); ratio < pair.least {
					t.Errorf("set %d: %s on %s has %.2f, which is less than %g", i, front, pair.backs,
						ratio, pair.least)
				}
			}
		}
	}
	for _, m := range regexp.MustCompile(`#[0-9a-f]{3,8}\b|opacity|rgba?\(`).FindAllString(rest, -1) {
		t.Errorf("%s outside of the sets of colours", m)
	}
	used := regexp.MustCompile(`(?:[^-]color|fill): var\(--(\w+)\)`)
	for _, m := range used.FindAllStringSubmatch(rest, -1) {
		if !slices.Contains([]string{"text", "dim", "good", "late", "bad", "link", "bar", "rest"}, m[1]) {
			t.Errorf("text or a shape has the colour %s, whose contrast nobody looks at", m[1])
		}
	}
}
