// Package tables reads a party's rows for queries from Parquet files, SQLite files and PostgreSQL
// databases. It is a module of its own, since it brings the libraries that read them:
//
//	source := sources.Source{Rows: "rows.parquet", Reader: tables.Read}
//	rows, report, err := source.Read(ctx, schema)
//
// Of Parquet it reads, to the bit:
//
//   - BOOLEAN, INT32, INT64, FLOAT, DOUBLE; signed and unsigned integers of 8 to 64 bits, FLOAT16,
//     DECIMAL, DATE, TIMESTAMP, STRING, ENUM, and columns of nulls alone
//   - pages of version 1 and 2 in the encodings PLAIN, dictionaries, RLE, DELTA_BINARY_PACKED,
//     DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT
//   - the codecs SNAPPY, GZIP, BROTLI, ZSTD, LZ4_RAW, and LZ4 as Hadoop and others write it
//
// It refuses a column by name, and reads the others: INT96, whose zone no file says; bytes without
// a meaning; TIME, INTERVAL, UUID, JSON, BSON, VARIANT, GEOMETRY, GEOGRAPHY and meanings that it
// does not know; lists, maps and groups; the codec LZO, levels in BIT_PACKED, encryption, columns
// in other files, pages of 256 MiB or more.
//
// A SQLite file that has a log (-wal), or a journal of a transaction that did not end, is copied
// into a private folder of the system's temporary one, which is removed after the last row.
//
// The program hushsum-rows of this module reads for programs that do not bring the libraries.
package tables

import (
	"context"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
)

// Read is a [sources.Reader] of all forms. It reads rows one after the other, those of a database
// by one statement, in a transaction that can only read.
func Read(ctx context.Context, r sources.Request, read func(query.Table) error) error {
	s := source{r}
	switch r.Form {
	case sources.Parquet:
		return s.readParquet(ctx, read)
	case sources.SQLite:
		return s.readSQLite(ctx, read)
	case sources.PostgreSQL:
		return s.readPostgres(ctx, read)
	}
	return s.wrong("", "%s is not read here", r.Form)
}

// source reads what a request asks for.
type source struct{ sources.Request }

// refused makes an error about a column of a type that no column takes.
func (s *source) refused(column, kind, advice string) *query.RowsError {
	return &query.RowsError{File: s.Name, Column: column, Advice: advice,
		Reason: "its type, " + kind + ", is not one that a column takes"}
}

// wrong makes an error of this source.
func (s *source) wrong(advice, reason string, a ...any) error {
	return fault.At(s.Name, fault.New(sources.ErrSource, advice, reason, a...), "")
}

// failed wraps an error of none of the libraries.
func (s *source) failed(advice string, err error) error {
	return &fault.Error{Kind: sources.ErrSource, Reason: s.Name + ": " + err.Error(), Advice: advice,
		Err: err}
}
