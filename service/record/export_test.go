package record

// StreamOf is streamOf.
var StreamOf = streamOf

// CopiesOf is copiesOf.
var CopiesOf = copiesOf
