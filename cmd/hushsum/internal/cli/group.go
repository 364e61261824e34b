package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

// Group makes a command that calls others by its first argument. Its help is the given text with a
// list of them.
func Group(name, about, help string, examples []string, below ...Command) Command {
	help += "\nCommands:\n"
	var names []string
	for _, c := range below {
		help += fmt.Sprintf("  %-10s %s\n", c.Name, c.About)
		names = append(names, c.Name)
	}
	m := &Manual{
		About: help + fmt.Sprintf("\nRun 'hushsum help %s COMMAND' for details of a command.\n",
			name),
		Examples: examples,
	}
	run := func(ctx context.Context, args []string, std Streams) int {
		return callBelow(ctx, name, m, below, names, args, std)
	}
	return Command{Name: name, About: about, Run: run, Below: below}
}

// callBelow calls the command that the first argument names.
func callBelow(
	ctx context.Context, group string, help *Manual, below []Command, names, args []string,
	std Streams,
) int {
	flags := flag.NewFlagSet(group, flag.ContinueOnError)
	use := "Use one of " + strings.Join(names, ", ") + "."
	if len(args) == 0 {
		return WrongUsage(flags, &Problem{
			Cause: "the first argument must be the command", Advice: use,
		}, std)
	}
	name, rest := args[0], args[1:]
	if AsksHelp(name) { // for the named command, or for the group
		if _, of, named := strings.Cut(name, "="); named && of != everything {
			part := ""
			if name, part, named = strings.Cut(of, "="); named {
				part = "=" + part
			}
			rest = []string{"-h" + part}
		} else {
			_, code, _ := ParseOperands(flags, help, 0, args[:1], std)
			return code
		}
	}
	for _, c := range below {
		if c.Name == name {
			return c.Run(ctx, rest, std)
		}
	}
	return WrongUsage(flags, &Problem{
		Cause:  fmt.Sprintf("there is no command %q under %s", name, group),
		Advice: DidYouMean(name, names, "%s", use),
	}, std)
}
