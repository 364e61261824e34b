package tensor

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// Models come from operators and from programs of parties.
func TestWorstFiles(t *testing.T) {
	headed := func(text func(n int) []byte) func(n int) []byte {
		return func(n int) []byte {
			header := text(n - 8)
			return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
		}
	}
	const none = `"%d":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},`
	const all = `"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	suite.WorstFiles(t,
		suite.Worst{Name: "model's header, safetensors", Most: maxHeader,
			Parse: func(b []byte) error {
				_, _, _, err := Parse(b)
				return err
			},
			Files: map[string]func(n int) []byte{
				"empty":   headed(suite.Repeated("{", `"%d":{},`, all)),
				"tensors": headed(suite.Repeated("{", none, all)),
				"notes":   headed(suite.Repeated(`{"__metadata__":{`, `"%d":"",`, `"":""}}`)),
				"shape":   headed(suite.Repeated(`{"x":{"dtype":"F32","shape":[`, "1,", `1]}}`)),
				"nested":  headed(suite.Repeated(`{"x":`, "[", `}`)),
			}},
		suite.Worst{Name: "model, safetensors", Most: 1 << 30, Try: 1 << 20,
			Parse: func(b []byte) error {
				_, _, _, err := Parse(b)
				return err
			},
			Files: map[string]func(n int) []byte{"numbers": func(n int) []byte {
				n = (n - 128) / 4
				header := fmt.Sprintf(`{"x":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, n, 4*n)
				b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
				return append(b, make([]byte, 4*n)...)
			}}},
		suite.Worst{Name: "model, npz", Most: 1 << 30, Try: 1 << 20, Room: 256 << 20,
			Parse: func(b []byte) error {
				_, _, err := ParseNPZ(b)
				return err
			},
			Files: map[string]func(n int) []byte{
				"zeros": zipped(t, zip.Deflate, 1<<20, 20), "arrays": zipped(t, zip.Store, 1, 1<<20),
				"stored": zipped(t, zip.Store, 1<<17, 1<<20)}})
}

// zipped makes archives of arrays of zeros, each of a name. The first is stored, and takes half of
// what the archive may have if the others are deflated: then they unpack to as much as is read.
func zipped(t *testing.T, method uint16, numbers, arrays int) func(n int) []byte {
	return func(n int) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for i := range arrays {
			length, how := min(numbers, n/8), method
			if method == zip.Deflate && i > 0 {
				length = numbers
			} else {
				how = zip.Store
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			room := n - b.Len() - 300*(i+3)
			if room < 6<<10 && how == zip.Deflate || how == zip.Store && room < 4*length {
				break
			}
			text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }\n", length)
			head := binary.LittleEndian.AppendUint16([]byte(npyMagic+"\x01\x00"), uint16(len(text)))
			out, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%d.npy", i), Method: how})
			if err == nil {
				_, err = io.WriteString(out, string(head)+text)
			}
			if err == nil {
				_, err = out.Write(make([]byte, 4*length))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
}
