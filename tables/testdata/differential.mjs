// Writes tables for TestDifferential by two writers that share no code with the reader:
//
//   npm install @duckdb/node-api parquet-wasm apache-arrow
//   node differential.mjs FOLDER COUNT
//
// differential.json in FOLDER has each table's bytes in base64, and says of each column what it is
// and what a reader gives: a SHA-256 hash of its values, each in a line, as text() writes them.
import { createHash } from "node:crypto"
import { createRequire } from "node:module"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const require = createRequire(join(process.cwd(), "x.js")) // packages of the current folder
const { DuckDBInstance } = require("@duckdb/node-api")
const arrow = require("apache-arrow")
const rust = require("parquet-wasm")

const [folder, count] = [process.argv[2], Number(process.argv[3])]
mkdirSync(folder, { recursive: true })

// draw returns numbers below n, the same in each run (mulberry32).
let seed = 1
function draw(n) {
  seed = (seed + 0x6d2b79f5) | 0
  let x = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
  return Math.floor((((x ^ (x >>> 14)) >>> 0) / 2 ** 32) * n)
}
const pick = (list) => list[draw(list.length)]
const wide = (bits) => {
  let x = 0n
  for (let i = 0; i < bits; i += 16) x = (x << 16n) | BigInt(draw(65536))
  return BigInt.asIntN(bits, x >> BigInt(draw(bits)))
}
const bits32 = new DataView(new ArrayBuffer(8))
const float = (x) => { bits32.setFloat32(0, x); return bits32.getUint32(0).toString(16).padStart(8, "0") }
const double = (x) => { bits32.setFloat64(0, x); return bits32.getBigUint64(0).toString(16).padStart(16, "0") }
const decimal = (x, scale) => {
  const digits = (x < 0n ? -x : x).toString().padStart(scale + 1, "0")
  const cut = digits.length - scale
  return (x < 0n ? "-" : "") + digits.slice(0, cut) + (scale ? "." + digits.slice(cut) : "")
}
const exact = (x) => `'${Object.is(x, -0) ? "-0" : x}'::DOUBLE` // not a DECIMAL, nor 0 for -0
// The one zero is negative, since dictionaries of DuckDB have one of both.
const real = () => pick([() => 1 + draw(1000) / 8, () => (draw(2 ** 30) - 2 ** 29 || 1) * 1.1e-7,
  () => -0.0, () => (1 + draw(100)) * 10 ** (draw(60) - 30)])()
const word = () => pick([() => "", () => "F", () => "größer", () => "x'\"\n," + draw(50),
  () => "prefix/of/all/" + draw(1000), () => "a".repeat(draw(200))])()
const day = (n) => new Date(n * 864e5).toISOString().slice(0, 10)

// A kind of column: how a value is drawn, and how a reader's value is written, SQL and Arrow.
const kinds = {
  int8: { value: () => Number(wide(8)), sql: "TINYINT", arrow: () => new arrow.Int8() },
  int16: { value: () => Number(wide(16)), sql: "SMALLINT", arrow: () => new arrow.Int16() },
  int32: { value: () => Number(wide(32)), sql: "INTEGER", arrow: () => new arrow.Int32() },
  int64: { value: () => wide(64), sql: "BIGINT", arrow: () => new arrow.Int64() },
  uint8: { value: () => draw(256), sql: "UTINYINT", arrow: () => new arrow.Uint8() },
  uint16: { value: () => draw(65536), sql: "USMALLINT", arrow: () => new arrow.Uint16() },
  uint32: { value: () => draw(2 ** 32), sql: "UINTEGER", arrow: () => new arrow.Uint32() },
  uint64: { value: () => BigInt.asUintN(64, wide(64)), sql: "UBIGINT", arrow: () => new arrow.Uint64() },
  float: { value: () => Math.fround(real()), text: float, literal: exact, sql: "FLOAT", arrow: () => new arrow.Float32() },
  double: { value: real, text: double, literal: exact, sql: "DOUBLE", arrow: () => new arrow.Float64() },
  bool: { value: () => draw(2) === 1, sql: "BOOLEAN", arrow: () => new arrow.Bool() },
  text: { value: word, sql: "VARCHAR", arrow: () => new arrow.Utf8() },
  few: { value: () => pick(["F", "M", "other"]), sql: "ENUM('F', 'M', 'other')",
    arrow: () => new arrow.Utf8() },
  date: { value: () => draw(40000) - 10000, text: (n) => day(n), literal: (n) => `DATE '${day(n)}'`,
    sql: "DATE", arrow: () => new arrow.DateDay(), arrowValue: (n) => new Date(n * 864e5) },
  micro: { value: () => BigInt(draw(2 ** 31)) * 1000003n - 10n ** 15n, text: (n) => "us " + n,
    literal: (n) => `make_timestamp(${n}::BIGINT)`, sql: "TIMESTAMP" },
  nano: { value: () => BigInt(draw(2 ** 31)) * 1000000007n - 10n ** 18n, text: (n) => "ns " + n,
    literal: (n) => `make_timestamp_ns(${n}::BIGINT)`, sql: "TIMESTAMP_NS" },
  zoned: { value: () => BigInt(draw(2 ** 31)) * 1000003n, text: (n) => "us " + n,
    literal: (n) => `make_timestamp(${n}::BIGINT) AT TIME ZONE 'UTC'`, sql: "TIMESTAMPTZ" },
  cents: { value: () => BigInt(draw(2 ** 28) - 2 ** 27), text: (n) => decimal(n, 2),
    literal: (n) => decimal(n, 2), sql: "DECIMAL(9,2)" },
  money: { value: () => wide(56), text: (n) => decimal(n, 4), literal: (n) => decimal(n, 4),
    sql: "DECIMAL(18,4)" },
  large: { value: () => wide(112), text: (n) => decimal(n, 7), literal: (n) => decimal(n, 7),
    sql: "DECIMAL(38,7)" },
  half: { value: () => (draw(2048) - 1024) / 64, text: double, arrow: () => new arrow.Float16() },
  // What no column takes.
  time: { refused: "TIME", value: () => draw(86400), literal: (n) => `make_time(0, 0, 0) + ${n} * INTERVAL 1 SECOND`,
    sql: "TIME" },
  uuid: { refused: "UUID", value: () => 1, literal: () => "uuid()", sql: "UUID" },
  blob: { refused: "BYTE_ARRAY", value: () => 1, literal: () => "'ab'::BLOB", sql: "BLOB" },
  list: { refused: "a group of others", value: () => 1, literal: (n) => `[${n}, 2]`, sql: "INTEGER[]" },
  group: { refused: "a group of others", value: () => 1, literal: (n) => `{'a': ${n}}`,
    sql: "STRUCT(a INTEGER)" },
}
const text = (kind, x) => x === null ? "none" : kinds[kind].text ? kinds[kind].text(x) :
  typeof x === "string" ? "text " + Buffer.from(x).toString("hex") : String(x)
const quoted = (x) => typeof x === "string" ? "'" + x.replaceAll("'", "''") + "'" : String(x)

// drawn returns the columns of a table, each with its values.
function drawn(names, rows) {
  return [...new Set(Array.from({ length: 2 + draw(5) }, () => pick(names)))].map((kind) => {
    const missing = pick([0, 0, 0.1, 0.9, 1])
    const repeats = draw(3) === 0
    let last = null
    const values = Array.from({ length: rows }, () => {
      if (draw(1000) < missing * 1000) return null
      if (last === null || !repeats || draw(20) === 0) last = kinds[kind].value()
      return last
    })
    return { name: kind, kind, values }
  })
}

const tables = []
function wrote(file, writer, rows, columns) {
  tables.push({ file, writer, rows, columns: columns.map(({ name, kind, values }) => {
    if (kinds[kind].refused) return { name, refused: kinds[kind].refused }
    const hash = createHash("sha256")
    for (const x of values) hash.update(text(kind, x) + "\n")
    return { name, kind, nulls: values.filter((x) => x === null).length, hash: hash.digest("hex") }
  }) })
}

const db = await (await DuckDBInstance.create(":memory:")).connect()
await db.run("SET TimeZone = 'UTC'")
async function byDuckDB(file, rows) {
  const columns = drawn(Object.keys(kinds).filter((k) => kinds[k].sql), rows)
  const codec = pick(["uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"])
  const version = pick(["V1", "V2"])
  await db.run(`CREATE OR REPLACE TABLE t (${columns.map((c) => `"${c.name}" ` + kinds[c.kind].sql)})`)
  for (let from = 0; from < rows; from += 500) {
    const lines = []
    for (let i = from; i < Math.min(rows, from + 500); i++)
      lines.push("(" + columns.map(({ kind, values: { [i]: x } }) =>
        x === null ? "NULL" : (kinds[kind].literal ?? quoted)(x)) + ")")
    await db.run("INSERT INTO t VALUES " + lines)
  }
  const group = pick([2048, 10000])
  await db.run(`COPY t TO '${join(folder, file)}' (FORMAT parquet, CODEC '${codec}',
    PARQUET_VERSION ${version}, ROW_GROUP_SIZE ${group}, DICTIONARY_SIZE_LIMIT ${pick([1, 100, 10000])})`)
  wrote(file, `DuckDB ${codec} ${version}`, rows, columns)
}

const E = rust.Encoding
const encodings = {
  int: [E.PLAIN, E.DELTA_BINARY_PACKED, E.BYTE_STREAM_SPLIT],
  real: [E.PLAIN, E.BYTE_STREAM_SPLIT],
  text: [E.PLAIN, E.DELTA_LENGTH_BYTE_ARRAY, E.DELTA_BYTE_ARRAY],
  bool: [E.PLAIN, E.RLE],
}
const family = (kind) => kind === "bool" ? "bool" : kind === "text" || kind === "few" ? "text" :
  ["float", "double"].includes(kind) ? "real" : kind === "half" ? "half" : "int"
function byRust(file, rows) {
  const columns = drawn(Object.keys(kinds).filter((k) => kinds[k].arrow), rows)
  const C = rust.Compression
  const codec = pick(["UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4_RAW", "LZ4"])
  const version = pick(["V1", "V2"])
  const vectors = {}
  let how = new rust.WriterPropertiesBuilder()
    .setCompression(C[codec]).setWriterVersion(rust.WriterVersion[version])
    .setMaxRowGroupSize(pick([7, 1000, 100000])).setDataPageSizeLimit(pick([64, 4096, 1 << 20]))
  for (const { name, kind, values } of columns) {
    const given = values.map((x) => x === null ? null : (kinds[kind].arrowValue ?? ((y) => y))(x))
    vectors[name] = arrow.vectorFromArray(given, kinds[kind].arrow())
    how = how.setColumnDictionaryEnabled(name, draw(2) === 0)
    if (family(kind) !== "half") how = how.setColumnEncoding(name, pick(encodings[family(kind)]))
  }
  const ipc = arrow.tableToIPC(new arrow.Table(vectors), "stream")
  writeFileSync(join(folder, file), rust.writeParquet(rust.Table.fromIPCStream(ipc), how.build()))
  wrote(file, `arrow-rs ${codec} ${version}`, rows, columns)
}

const sizes = count <= 40 ? [1, 8, 70, 300] : [0, 1, 9, 300, 5000, 30000]
for (let i = 0; i < count; i++) {
  const file = `${i}.parquet`
  if (i % 2 === 0) await byDuckDB(file, pick(sizes))
  else byRust(file, pick(sizes))
}
for (const t of tables) t.bytes = readFileSync(join(folder, t.file)).toString("base64")
writeFileSync(join(folder, "differential.json"),
  "[\n" + tables.map((t) => JSON.stringify(t)).join(",\n") + "\n]\n")
