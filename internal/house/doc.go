// Package house holds tests of what the packages of the project have in common:
// names, errors, encodings, imports and the look of their files. The conventions
// themselves stand in CONTRIBUTING.md.
package house
