package hushsum

import "context"

// vectors is the Work of a party whose update is a vector alone.
func vectors[F Float](
	made func(ctx context.Context, round uint64, model []F) ([]F, error),
) func(ctx context.Context, r Round[F]) (Update[F], error) {
	return func(ctx context.Context, r Round[F]) (Update[F], error) {
		v, err := made(ctx, r.Number, r.Model)
		return Update[F]{Vector: v, Samples: 1}, err
	}
}

// bare returns what makes the vector of a Work.
func bare[F Float](
	work func(ctx context.Context, r Round[F]) (Update[F], error),
) func(ctx context.Context, round uint64, model []F) ([]F, error) {
	return func(ctx context.Context, round uint64, model []F) ([]F, error) {
		u, err := work(ctx, Round[F]{Number: round, Model: model})
		return u.Vector, err
	}
}

// applying is an Apply.
func applying[F Float](
	next func(d Done[F], model []F) ([]F, error),
) func(d Done[F]) ([]F, error) {
	return func(d Done[F]) ([]F, error) { return next(d, d.Model) }
}
