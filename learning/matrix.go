package learning

import (
	"fmt"
	"math"
)

// Matrix counts the outcomes of a classifier with any number of classes:
// Counts[label*Classes+predicted] rows of class label were taken for class
// predicted. Evaluate makes one; for two classes Confusion has more names.
type Matrix struct {
	Classes int
	Counts  []int
}

// Evaluate compares the class of highest score of every row with its label. The
// lowest class wins a tie, as in Logistic.Evaluate. Errors are those of
// Model.Scores.
func Evaluate(m Model, w []float64, d *Dataset) (Matrix, error) {
	own, _ := m.(batchModel)
	if err := checkTrain(m, own, w, d); err != nil {
		return Matrix{}, err
	}
	k := m.Classes()
	result := Matrix{Classes: k, Counts: make([]int, k*k)}
	const chunk = 4 * chunkRows
	scores := make([]float64, min(chunk, d.Len())*k)
	for lo := 0; lo < d.Len(); lo += chunk {
		rows := d.view(lo, min(lo+chunk, d.Len()))
		z := scores[:rows.Len()*k]
		if err := m.Scores(z, w, rows); err != nil {
			return Matrix{}, err
		}
		for i, y := range rows.Labels {
			best := 0
			for j, x := range z[i*k : (i+1)*k] {
				if x > z[i*k+best] {
					best = j
				}
			}
			result.Counts[y*k+best]++
		}
	}
	return result, nil
}

// At returns the number of rows with the given label that were taken for class
// predicted. It panics when one is outside [0, Classes).
func (m Matrix) At(label, predicted int) int {
	if predicted < 0 || predicted >= m.Classes {
		panic(fmt.Sprintf("learning: class %d of %d", predicted, m.Classes))
	}
	return m.Counts[label*m.Classes+predicted]
}

// Total returns the number of rows counted.
func (m Matrix) Total() int {
	n := 0
	for _, c := range m.Counts {
		n += c
	}
	return n
}

// Accuracy returns the share of rows classified correctly, in [0, 1]; 0 when no row
// was counted.
func (m Matrix) Accuracy() float64 {
	correct := 0
	for k := range m.Classes {
		correct += m.At(k, k)
	}
	return float64(correct) / float64(max(1, m.Total()))
}

// Recall returns the share of the rows of a class that were recognised, in [0, 1]; 0
// when there was none. It panics when class is outside [0, Classes).
func (m Matrix) Recall(class int) float64 {
	rows := 0
	for j := range m.Classes {
		rows += m.At(class, j)
	}
	return float64(m.At(class, class)) / float64(max(1, rows))
}

// MCC returns Matthews' correlation coefficient for any number of classes, the R_K of
// Gorodkin (2004), in [-1, 1]; for two classes it is Confusion.MCC. It is 0 when
// it is undefined, that is when all labels or all predictions are of one class.
func (m Matrix) MCC() float64 {
	n := float64(m.Total())
	var hits, both, labels2, predicted2 float64
	for k := range m.Classes {
		var labels, predicted float64
		for j := range m.Classes {
			labels += float64(m.At(k, j))
			predicted += float64(m.At(j, k))
		}
		hits += float64(m.At(k, k))
		both += labels * predicted
		labels2 += labels * labels
		predicted2 += predicted * predicted
	}
	den := math.Sqrt(n*n-labels2) * math.Sqrt(n*n-predicted2)
	if den == 0 {
		return 0
	}
	return max(-1, min(1, (hits*n-both)/den))
}
