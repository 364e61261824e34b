package protocol

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"testing"

	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// The vectors of testdata/parts.json: single steps, for who writes a client one
// section of SPEC.md at a time.
type (
	partPermutation struct { // §7.1
		N    int      `json:"n"`
		Seed hexBytes `json:"seed"`
		P    []int    `json:"permutation"`
	}
	partExpansion struct { // §8.2, §8.3
		Seed   hexBytes   `json:"seed"`
		Layout [][2]int   `json:"layout"` // length and bits, by segment
		Masks  [][]string `json:"masks"`
		Packed hexBytes   `json:"packed"`
	}
	partShare struct { // §6.3
		Channel hexBytes `json:"channel_key"`
		Session hexBytes `json:"session"`
		Round   uint64   `json:"round"`
		Purpose int      `json:"purpose"`
		From    int      `json:"from"`
		To      int      `json:"to"`
		Binding hexBytes `json:"binding"`
		Nonce   hexBytes `json:"nonce"`
		Share   hexBytes `json:"share"`
		Sealed  hexBytes `json:"sealed"` // with the nonce
	}
	partKey struct { // §2.2, §4.4
		Kind     string   `json:"kind"` // identity, x25519
		Key      hexBytes `json:"key"`
		Accepted bool     `json:"accepted"`
		About    string   `json:"about"`
	}
	partTree struct { // §4.3
		To          []int      `json:"to"`
		Ciphertexts []hexBytes `json:"ciphertexts"` // shorter than real ones
		Root        hexBytes   `json:"root"`
		Paths       [][]string `json:"paths"`
	}
	parts struct {
		Permutations []partPermutation `json:"permutations"`
		Expansions   []partExpansion   `json:"expansions"`
		Shares       []partShare       `json:"sealed_shares"`
		Keys         []partKey         `json:"keys"`
		Trees        []partTree        `json:"trees"`
	}
)

func makeParts(t *testing.T) *parts {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := new(parts)
	bytesOf := func(label string, n int) []byte {
		s := &stream{seed: hash("hushsum vectors parts " + label)}
		b := make([]byte, n)
		_, err := s.Read(b)
		must(err)
		return b
	}
	for _, n := range []int{2, 7, 100} {
		seed := [32]byte(bytesOf(fmt.Sprint("permutation ", n), 32))
		order, err := graph.Permutation(n, seed)
		must(err)
		p.Permutations = append(p.Permutations, partPermutation{n, seed[:], order})
	}
	for _, layout := range []masking.Layout{{{Length: 130, Bits: 1}}, {{Length: 11, Bits: 7}},
		{{Length: 5, Bits: 33}, {Length: 3, Bits: 64}, {Length: 9, Bits: 12}}} {
		seed := masking.Seed(bytesOf(fmt.Sprint("expansion ", layout), 28))
		v, err := masking.NewVector(layout)
		must(err)
		v.AddMask(&seed)
		e := partExpansion{Seed: seed[:], Masks: decimal(v.Values()), Packed: v.AppendPacked(nil)}
		for _, s := range layout {
			e.Layout = append(e.Layout, [2]int{s.Length, s.Bits})
		}
		p.Expansions = append(p.Expansions, e)
	}
	for purpose := range 2 {
		key := keyexchange.SealKey(bytesOf(fmt.Sprint("channel ", purpose), 32))
		nonce := keyexchange.Nonce(bytesOf(fmt.Sprint("nonce ", purpose), 24))
		s := partShare{Channel: key[:], Session: bytesOf("session", 32), Round: 1 << 40, Purpose: purpose,
			From: 300, To: 2,
			Binding: bytesOf(fmt.Sprint("binding ", purpose), 32), Nonce: nonce[:], Share: scalar(t,
				bytesOf("share", 64))}
		var err error
		s.Sealed, err = keyexchange.Seal(&nonce, &key, s.Share,
			shareData(keyexchange.Purpose(purpose), [32]byte(s.Session), s.Round, s.From, s.To,
				[32]byte(s.Binding)))
		must(err)
		p.Shares = append(p.Shares, s)
	}
	p.Keys = partKeys(bytesOf)
	for _, n := range []int{1, 2, 3, 6} {
		tree := partTree{}
		var leaves [][32]byte
		for i := range n {
			ct := bytesOf(fmt.Sprint("ciphertext ", i), 40)
			tree.To, tree.Ciphertexts = append(tree.To, 3*i+2), append(tree.Ciphertexts, ct)
			leaves = append(leaves, leafHash(3*i+2, ct))
		}
		root, paths := treePaths(leaves)
		tree.Root = root[:]
		for i, path := range paths {
			if len(path) != pathLength(i, n) || climb(leaves[i], i, n, path) != root ||
				treeRoot(leaves) != root {
				t.Fatalf("leaf %d of %d: its path does not lead to the root", i, n)
			}
			nodes := []string{}
			for _, node := range path {
				nodes = append(nodes, fmt.Sprintf("%x", node))
			}
			tree.Paths = append(tree.Paths, nodes)
		}
		p.Trees = append(p.Trees, tree)
	}
	return p
}

// partKeys lists keys to take and keys to refuse.
func partKeys(bytesOf func(label string, n int) []byte) []partKey {
	var out []partKey
	prime := bytes.Repeat([]byte{0xff}, 32) // p = 2^255 − 19
	prime[0], prime[31] = 0xed, 0x7f
	with := func(b []byte, first, last byte) []byte {
		b = bytes.Clone(b)
		b[0], b[31] = first, last
		return b
	}
	add := func(kind, about string, key []byte) {
		var err error
		if kind == "x25519" {
			_, err = keyexchange.ParsePublicKey(key)
		} else {
			other := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
			_, err = keyexchange.NewRoster([]keyexchange.Entry{{Name: "a", Key: key},
				{Name: "b", Key: other}})
		}
		out = append(out, partKey{kind, key, err == nil, about})
	}
	base := make([]byte, 32)
	base[0] = 9
	add("x25519", "the base point", base)
	add("x25519", "p − 2, on the curve or its twist", with(prime, 0xeb, 0x7f))
	add("x25519", "p: not canonical", prime)
	add("x25519", "p + 9: not canonical", with(prime, 0xf6, 0x7f))
	add("x25519", "9 with the highest bit", with(base, 9, 0x80))
	add("x25519", "0: of low order", make([]byte, 32))
	add("x25519", "1: of low order", with(make([]byte, 32), 1, 0))
	add("x25519", "p − 1: of low order", with(prime, 0xec, 0x7f))
	add("x25519", "31 bytes", base[:31])
	add("identity", "of a private key",
		ed25519.NewKeyFromSeed(bytesOf("identity", 32)).Public().(ed25519.PublicKey))
	add("identity", "the neutral element", with(make([]byte, 32), 1, 0))
	add("identity", "of order 2", with(prime, 0xec, 0x7f))
	add("identity", "of order 4", make([]byte, 32))
	add("identity", "the neutral element, not canonical", with(prime, 0xee, 0x7f))
	add("identity", "not on the curve", with(make([]byte, 32), 2, 0))
	add("identity", "31 bytes", base[:31])
	return out
}

// The code still makes all that testdata/parts.json says.
func TestParts(t *testing.T) {
	checkGolden(t, "parts", makeParts(t))
}
