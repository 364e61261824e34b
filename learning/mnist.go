package learning

import (
	"encoding/binary"
	"io"

	"github.com/hushsum/hushsum/internal/fault"
)

// Sizes of the published files.
const (
	mnistTrain    = 60000
	mnistTest     = 10000
	mnistSide     = 28
	mnistClasses  = 10
	qmnistRows    = 60000 // of both files
	qmnistColumns = 8
	qmnistClass   = 0 // column numbers
	qmnistWriter  = 2
)

// ReadMNIST reads the four gzip files of MNIST, or of Fashion-MNIST, which has
// the same names and sizes, from dir: 60,000 and 10,000 images with 28 × 28 =
// 784 pixels, row by row, and labels 0..9. The images stay bytes (Pixels), so
// both sets together take 55 MB, and their values byte/255 lie in [0, 1].
//
// Parsing is strict. A file that is absent gives an error for which
// errors.Is(err, fs.ErrNotExist) holds; a file that ends early ErrIncomplete;
// another header, other sizes, damaged compression, bytes after the end or a
// label above 9 ErrMalformed.
func ReadMNIST(dir string) (train, test *Dataset, err error) {
	if train, err = readMNISTPart(dir, "train", mnistTrain); err != nil {
		return nil, nil, err
	}
	if test, err = readMNISTPart(dir, "t10k", mnistTest); err != nil {
		return nil, nil, err
	}
	return train, test, nil
}

func readMNISTPart(dir, part string, rows int) (*Dataset, error) {
	const source = "MNIST or Fashion-MNIST"
	d := &Dataset{Features: mnistSide * mnistSide, Labels: make([]int, rows)}
	err := readGzip(dir, part+"-images-idx3-ubyte.gz", source, func(r io.Reader) (err error) {
		d.Pixels, err = parseIDX(r, idxByte, rows, mnistSide, mnistSide)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = readGzip(dir, part+"-labels-idx1-ubyte.gz", source, func(r io.Reader) error {
		labels, err := parseIDX(r, idxByte, rows)
		if err != nil {
			return err
		}
		for i, y := range labels {
			if y >= mnistClasses {
				return fault.New(ErrMalformed, "", "label %d in row %d", y, i)
			}
			d.Labels[i] = int(y)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// ReadMNISTWriters is ReadMNIST for MNIST proper, together with the writer of
// every digit from the two extended label files of QMNIST (Yadav and Bottou,
// "Cold Case: The Lost MNIST Digits", 2019) in writersDir. The training set has
// 539 writers with 19 to 131 images, the test set 297 others.
//
// The rows of QMNIST's training file, and the first 10,000 of its test file,
// are those of MNIST in the same order. Every class is compared with MNIST's
// label; a difference gives ErrMalformed. Other errors are those of ReadMNIST.
func ReadMNISTWriters(dir, writersDir string) (train, test *Dataset, err error) {
	if train, test, err = ReadMNIST(dir); err != nil {
		return nil, nil, err
	}
	if train.Writers, err = readWriters(writersDir, "train", train.Labels); err != nil {
		return nil, nil, err
	}
	if test.Writers, err = readWriters(writersDir, "test", test.Labels); err != nil {
		return nil, nil, err
	}
	return train, test, nil
}

func readWriters(dir, part string, labels []int) ([]int, error) {
	writers := make([]int, len(labels))
	err := readGzip(dir, "qmnist-"+part+"-labels-idx2-int.gz", "QMNIST", func(r io.Reader) error {
		table, err := parseIDX(r, idxInt32, qmnistRows, qmnistColumns)
		if err != nil {
			return err
		}
		for i, y := range labels {
			class := int32(binary.BigEndian.Uint32(table[4*(i*qmnistColumns+qmnistClass):]))
			writer := int32(binary.BigEndian.Uint32(table[4*(i*qmnistColumns+qmnistWriter):]))
			if int(class) != y {
				return fault.New(ErrMalformed, "",
					"row %d has class %d, MNIST's label is %d; QMNIST's writers match only MNIST's own digits",
					i, class, y)
			}
			if writer < 0 {
				return fault.New(ErrMalformed, "", "row %d has writer %d", i, writer)
			}
			writers[i] = int(writer)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return writers, nil
}
