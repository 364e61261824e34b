package party

import "os/exec"

// endWithChildren leaves it to the system: a command is killed, its children are not.
func endWithChildren(*exec.Cmd) {}
