package specdecode

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/hushsum/hushsum/internal/labels"
)

// VerifyParts checks the vectors of single steps (§14): permutations, expansions of mask seeds,
// sealed shares and hash trees. It does not check keys, since this package has no curve
// arithmetic.
func VerifyParts(data []byte) error {
	var p struct {
		Permutations []struct {
			N    int
			Seed octets
			P    []int `json:"permutation"`
		}
		Expansions []struct {
			Seed   octets
			Layout [][2]int
			Masks  []values
			Packed octets
		}
		Shares []struct {
			Channel                 octets `json:"channel_key"`
			Session, Binding, Nonce octets
			Share, Sealed           octets
			Round                   uint64
			Purpose, From, To       int
		} `json:"sealed_shares"`
		Trees []struct {
			To          []int
			Ciphertexts []octets
			Root        octets
			Paths       [][]string
		}
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("specdecode: %w", err)
	}
	for _, v := range p.Permutations {
		if !slices.Equal(permutation(v.N, v.Seed), v.P) {
			return fail("a permutation of %d", v.N)
		}
	}
	for i, v := range p.Expansions {
		var layout []segment
		for _, s := range v.Layout {
			layout = append(layout, segment{s[0], s[1]})
		}
		got, err := unpack(layout, v.Packed)
		if err != nil {
			return err
		}
		want := mask(layout, v.Seed)
		for k := range layout {
			if !slices.Equal(want[k], v.Masks[k]) || !slices.Equal(got[k], v.Masks[k]) {
				return fail("segment %d of expansion %d", k, i)
			}
		}
	}
	for i, v := range p.Shares {
		aead, err := chacha20poly1305.NewX(v.Channel)
		if err != nil {
			return err
		}
		data := bytes.Join([][]byte{[]byte(labels.Share), v.Session, u64(v.Round), {byte(v.Purpose)},
			u32(v.From), u32(v.To), v.Binding}, nil)
		if !bytes.Equal(aead.Seal(bytes.Clone(v.Nonce), v.Nonce, v.Share, data), v.Sealed) {
			return fail("sealed share %d", i)
		}
	}
	for i, v := range p.Trees {
		var leaves [][]byte
		for k, to := range v.To {
			leaves = append(leaves, leaf(to, v.Ciphertexts[k]))
		}
		if !bytes.Equal(root(leaves), v.Root) {
			return fail("the root of tree %d", i)
		}
		for k := range leaves {
			var path [][]byte
			for _, node := range v.Paths[k] {
				b, err := hex.DecodeString(node)
				if err != nil {
					return err
				}
				path = append(path, b)
			}
			if len(path) != depth(k, len(leaves)) ||
				!bytes.Equal(rootByPath(leaves[k], k, len(leaves), path), v.Root) {
				return fail("path %d of tree %d", k, i)
			}
		}
	}
	return nil
}
