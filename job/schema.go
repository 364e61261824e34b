package job

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON schema of a job, with which editors complete and check files, including
// TOML ones. What it takes may still be refused: rules across fields, and forms of texts, are not
// in it.
func Schema() []byte { return slices.Clone(schema) }
