package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// manual is the help of a command.
type manual struct {
	about    string   // how it is called and what it does
	topics   []topic  // what help leaves to parts of its own
	codes    string   // exit codes; empty: those of every command
	examples []string // commands
}

// topic is a part of a command's help that is printed when it is asked for.
type topic struct {
	name, about string
	text        string
}

// everything is the topic that is all of them, with the rest of the help.
const everything = "all"

// print prints the help that a command's -h asks for, or one topic of it.
func (m *manual) print(w io.Writer, flags *flag.FlagSet, name string) error {
	names := []string{everything}
	for _, t := range m.topics {
		if t.name == name {
			fmt.Fprint(w, t.text)
			return nil
		}
		names = append(names, t.name)
	}
	if name != "" && name != everything {
		return &problem{
			cause:  fmt.Sprintf("the help of %s has no part %q", flags.Name(), name),
			advice: didYouMean(name, names, "%s", "Its parts are "+strings.Join(names, ", ")+"."),
		}
	}
	fmt.Fprint(w, m.about)
	if name == everything {
		for _, t := range m.topics {
			fmt.Fprint(w, "\n"+t.text)
		}
	} else if len(m.topics) > 0 {
		fmt.Fprint(w, "\nMore help:\n")
		for _, t := range m.topics {
			fmt.Fprintf(w, "  %-32s %s\n", fmt.Sprintf("hushsum help %s %s", flags.Name(), t.name),
				t.about)
		}
	}
	codes := m.codes
	if codes == "" {
		codes = exitCodes
	}
	fmt.Fprint(w, "\n"+codes+"\nExamples:\n")
	for _, e := range m.examples {
		fmt.Fprintf(w, "  %s\n", e)
	}
	printFlags(w, flags)
	return nil
}

// printFlags prints the flags, if there are any.
func printFlags(w io.Writer, flags *flag.FlagSet) {
	heading := "\nFlags:\n"
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flagText(f)
		fmt.Fprintln(w, heading+strings.TrimRight("  --"+f.Name+" "+value, " "))
		heading = ""
		for _, part := range wrap(text, width-8) {
			fmt.Fprintf(w, "        %s\n", part)
		}
	})
}

// flagText returns what help calls the value of a flag, and what it does, with its default. A
// usage may end with a tab and what the default is in other cases.
func flagText(f *flag.Flag) (value, text string) {
	value, text = flag.UnquoteUsage(f)
	if value != "" {
		text = strings.TrimPrefix(text, value+" ")
	}
	text, other, _ := strings.Cut(text, "\t")
	if f.DefValue != "false" && f.DefValue != "" && !strings.Contains(text, "required") {
		text += fmt.Sprintf(" (default %s%s)", f.DefValue, other)
	}
	return value, text
}
