package job

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON schema of a job, with which editors complete and check files, including
// TOML ones. [Parse] may still refuse a file that fits the schema, which lacks rules across fields
// and forms of texts.
func Schema() []byte { return slices.Clone(schema) }
