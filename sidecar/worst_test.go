package sidecar

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// A frame may announce more than comes, and a header may list nothing again and again.
func TestWorstFiles(t *testing.T) {
	framed := func(text func(n int) []byte) func(n int) []byte {
		return func(n int) []byte {
			header := text(n - 4)
			return append(binary.BigEndian.AppendUint32(nil, uint32(len(header))), header...)
		}
	}
	const head = `{"id":1,"call":"job.parse",`
	suite.WorstFiles(t, suite.Worst{Name: "sidecar's header", Most: maxHeader,
		Parse: func(b []byte) error {
			_, err := readRequest(bufio.NewReader(bytes.NewReader(b)), Memory{})
			return err
		},
		Files: map[string]func(n int) []byte{
			"blobs":   framed(suite.Repeated(head+`"blobs":[`, "{},", "{}]}")),
			"offsets": framed(suite.Repeated(head+`"blobs":[`, `{"offset":1},`, "{}]}")),
			"with":    framed(suite.Repeated(head+`"with":[`, "[],", "{}]}")),
			"fields":  framed(suite.Repeated(head+`"with":{`, `"%d":0,`, `"":0}}`)),
			"unknown": framed(suite.Repeated(`{`, `"id%d":0,`, `"id":0}`)),
			"strings": framed(suite.Repeated(head+`"call":"`, `\u0001`, `"}`)),
			"long blob": framed(func(n int) []byte {
				return append([]byte(head+`"blobs":[{"length":2147483648}]}`), make([]byte, n/2)...)
			}),
		}})
}
