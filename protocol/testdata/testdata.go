// Package testdata has the vectors of SPEC.md §14, for programs that test other implementations.
package testdata

import "embed"

// Vectors has the files of this folder.
//
//go:embed *.json
var Vectors embed.FS
