package job

import "regexp"

var modelPattern = regexp.MustCompile(`^(logistic|softmax|lenet|lenet-norm|mlp:[1-9][0-9]{0,4}(,[1-9][0-9]{0,4}){0,7})$`)

// knownModel reports whether a text names a model that a job trains itself.
func knownModel(name string) bool { return modelPattern.MatchString(name) }
