package learning

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// Folders of data sets hold what somebody fetched, which may unpack to a thousand times its length.
func TestWorstFiles(t *testing.T) {
	packed := func(head, piece string) func(n int) []byte {
		return func(n int) []byte {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err := io.WriteString(w, head); err != nil {
				t.Fatal(err)
			}
			text := []byte(strings.Repeat(piece, max(1, 1<<16/len(piece))))
			for b.Len() < n-(1<<10) {
				if _, err := w.Write(text); err != nil {
					t.Fatal(err)
				}
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
	}
	unpacked := func(parse func(r io.Reader) error) func(b []byte) error {
		return func(b []byte) error {
			zr, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return err
			}
			return parse(zr)
		}
	}
	packs := map[string]func(n int) []byte{"zeros": packed("", "\x00"),
		"images": packed("\x00\x00\x08\x03\x00\x00\xea\x60\x00\x00\x00\x1c\x00\x00\x00\x1c", "\x00"),
		"lines":  packed("", "\n"), "digits": packed("", strings.Repeat("0,", 64)+"0\n")}
	suite.WorstFiles(t,
		suite.Worst{Name: "data set, idx", Most: 64 << 20, Try: 16 << 10, Files: packs, Room: 128 << 20,
			Parse: unpacked(func(r io.Reader) error {
				_, err := parseIDX(r, idxByte, 60_000, 28, 28)
				return err
			})},
		suite.Worst{Name: "data set, digits", Most: 64 << 20, Try: 16 << 10, Files: packs,
			Parse: unpacked(func(r io.Reader) error {
				_, err := parseDigits(r)
				return err
			})},
		suite.Worst{Name: "data set, KDD", Most: 64 << 20, Try: 16 << 10, Files: packs,
			Parse: unpacked(func(r io.Reader) error {
				_, err := parseKDD(r, make([]bool, kddRows))
				return err
			})},
		suite.Worst{Name: "data set, Adult", Most: mostAdult, Try: 1 << 20,
			Files: map[string]func(n int) []byte{"one line": suite.Repeated("", "1,", ""),
				"commas": suite.Repeated("", ",", ""), "lines": suite.Repeated("", "?\n", "")},
			Parse: func(b []byte) error {
				_, err := adultFiles[0].parse(bytes.NewReader(b), "adult.data")
				return err
			}})
}
