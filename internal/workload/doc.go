// Package workload chooses which counts of rows to measure, so that many declared counts follow
// from them with the least error. Its queries are counts of rows by bins. All that they tell apart
// are cells; a strategy measures weighted counts over sets of cells, where each row adds a vector
// of norm 1 to all counts together, and least squares gives the cells and so all answers (Li et al.
// 2015, "The matrix mechanism").
//
// Everybody who has the same queries must come to the same strategy, to the bit, on any processor:
// so there is nothing but sums, products, quotients and square roots here, and each product that is
// added to something is rounded first, by a conversion, as otherwise some compilers would not.
package workload
