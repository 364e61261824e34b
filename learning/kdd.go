package learning

import (
	"bufio"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/internal/fault"
)

const (
	kddFile    = "kddcup.data_10_percent.gz"
	kddRows    = 494_021
	kddColumns = 41
)

// Levels of the columns that are not numbers, sorted; their order is that of features.
var (
	kddProtocols = []string{"icmp", "tcp", "udp"}
	kddFlags     = []string{"OTH", "REJ", "RSTO", "RSTOS0", "RSTR", "S0", "S1", "S2", "S3", "SF", "SH"}
	kddServices  = []string{"IRC", "X11", "Z39_50", "auth", "bgp", "courier", "csnet_ns", "ctf",
		"daytime", "discard", "domain", "domain_u", "echo", "eco_i", "ecr_i", "efs", "exec", "finger",
		"ftp", "ftp_data", "gopher", "hostnames", "http", "http_443", "imap4", "iso_tsap", "klogin",
		"kshell", "ldap", "link", "login", "mtp", "name", "netbios_dgm", "netbios_ns", "netbios_ssn",
		"netstat", "nnsp", "nntp", "ntp_u", "other", "pm_dump", "pop_2", "pop_3", "printer", "private",
		"red_i", "remote_job", "rje", "shell", "smtp", "sql_net", "ssh", "sunrpc", "supdup", "systat",
		"telnet", "tftp_u", "tim_i", "time", "urh_i", "urp_i", "uucp", "uucp_path", "vmnet", "whois"}
)

// kddLevels are the levels by column.
var kddLevels = map[int][]string{1: kddProtocols, 2: kddServices, 3: kddFlags}

const kddFeatures = 3 + 66 + 11 + kddColumns - 3 + 1

// ReadKDDCup99 reads kddcup.data_10_percent.gz, the tenth of the KDD Cup 99 intrusion
// records that is usually taken (DOI 10.24432/C51C7N), from dir: 119 features, label 1 for
// an attack of any kind and 0 for normal. It keeps the given number of the 494,021 rows, drawn
// by seed, in the order of the file; 0: all, which take 470 MB.
//
// The three columns that are names become one column a level, levels sorted bytewise. The
// 38 numbers, some of which reach hundreds of millions, become log(1+x), divided by its
// largest value over the rows that are kept. Then every row is divided by max(1, its
// norm), and a constant 1 follows as the last feature, as for [ReadAdult].
//
// Errors are like those of [ReadMNIST]; a line that is no such record gives ErrMalformed with
// its number, any other row count ErrIncomplete, and a number of rows that the file does not
// have ErrTooFewRows.
func ReadKDDCup99(dir string, rows int, seed uint64) (*Dataset, error) {
	if rows < 0 || rows > kddRows {
		return nil, fault.New(ErrTooFewRows, "", "%d rows of the %d that there are", rows, kddRows)
	}
	if rows == 0 {
		rows = kddRows
	}
	kept := make([]bool, kddRows)
	rng := rand.New(rand.NewPCG(seed, streamKDD))
	for _, i := range rng.Perm(kddRows)[:rows] {
		kept[i] = true
	}
	var d *Dataset
	err := readGzip(dir, kddFile, "KDD Cup 99", func(r io.Reader) (err error) {
		d, err = parseKDD(r, kept)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// parseKDD reads the records, and prepares those to be kept.
func parseKDD(r io.Reader, kept []bool) (*Dataset, error) {
	d := &Dataset{Features: kddFeatures}
	lines, line := bufio.NewScanner(r), 0
	for lines.Scan() {
		if line++; line > len(kept) {
			return nil, fault.New(ErrMalformed, "", "more than %d rows", len(kept))
		}
		row, label, err := parseKDDLine(lines.Text(), line)
		if err != nil {
			return nil, err
		}
		if kept[line-1] {
			d.X, d.Labels = append(d.X, row[:]...), append(d.Labels, label)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, readError(err, "after line %d", line)
	}
	if line != len(kept) {
		return nil, fault.New(ErrIncomplete, "", "%d rows, want %d", line, len(kept))
	}
	scaleKDD(d)
	return d, nil
}

// parseKDDLine reads a record: levels as ones, numbers as log(1+x).
func parseKDDLine(text string, line int) (row [kddFeatures]float64, label int, err error) {
	fields := strings.Split(text, ",")
	if len(fields) != kddColumns+1 {
		return row, 0, fault.New(ErrMalformed, "", "line %d has %d fields separated by commas, want %d",
			line, len(fields), kddColumns+1)
	}
	at := 0
	for j, field := range fields[:kddColumns] {
		if levels := kddLevels[j]; levels != nil {
			k := slices.Index(levels, field)
			if k < 0 {
				return row, 0, fault.New(ErrMalformed, "", "line %d, field %d is not a known level", line, j+1)
			}
			row[at+k] = 1
			at += len(levels)
			continue
		}
		x, err := strconv.ParseFloat(field, 64)
		if err != nil || !(x >= 0) || math.IsInf(x, 1) {
			return row, 0, fault.New(ErrMalformed, "",
				"line %d, field %d is not a number of 0 or more", line, j+1)
		}
		row[at] = math.Log1p(x)
		at++
	}
	switch name := fields[kddColumns]; {
	case name == "normal.":
	case len(name) > 1 && strings.HasSuffix(name, "."):
		label = 1
	default:
		return row, 0, fault.New(ErrMalformed, "", "line %d has no label that ends with a point", line)
	}
	row[at] = 1
	return row, label, nil
}

// scaleKDD brings the columns to at most 1, and the rows to a norm of at most 1
// without their constant.
func scaleKDD(d *Dataset) {
	var largest [kddFeatures]float64
	for i := range d.Len() {
		for k, x := range d.Row(i) {
			largest[k] = max(largest[k], x)
		}
	}
	for i := range d.Len() {
		row := d.Row(i)
		for k := range row {
			if largest[k] > 0 {
				row[k] /= largest[k]
			}
		}
		scaleToUnitBall(row[:kddFeatures-1])
	}
}
