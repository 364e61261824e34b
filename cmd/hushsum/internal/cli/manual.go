package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/hushsum/hushsum/internal/script"
)

// Manual is the help of a command.
type Manual struct {
	About    string   // how it is called and what it does
	Topics   []Topic  // parts that help prints only when asked
	Takes    string   // which arguments; empty: flags only
	Codes    string   // exit codes; empty: those of every command
	Examples []string // commands
}

// Topic is a part of a command's help that is printed on request.
type Topic struct {
	Name, About string
	Text        string
}

// JSONHelp returns the topic that describes the output of --json.
func JSONHelp(text string) Topic {
	return Topic{Name: "json", About: "what --json prints", Text: text}
}

// everything is the name of all topics together, with the rest of the help.
const everything = "all"

// print prints the help that a command's -h asks for, or one topic of it.
func (m *Manual) print(w io.Writer, flags *flag.FlagSet, name string) error {
	names := []string{everything}
	for _, t := range m.Topics {
		if t.Name == name {
			fmt.Fprint(w, t.Text)
			return nil
		}
		names = append(names, t.Name)
	}
	if name != "" && name != everything {
		return &Problem{
			Cause:  fmt.Sprintf("the help of %s has no section %q", flags.Name(), name),
			Advice: DidYouMean(name, names, "%s", "Its sections are "+strings.Join(names, ", ")+"."),
		}
	}
	fmt.Fprint(w, m.About)
	if name == everything {
		for _, t := range m.Topics {
			fmt.Fprint(w, "\n"+t.Text)
		}
	} else if len(m.Topics) > 0 {
		fmt.Fprint(w, "\nMore help:\n")
		for _, t := range m.Topics {
			fmt.Fprintf(w, "  %-32s %s\n", fmt.Sprintf("hushsum help %s %s", flags.Name(), t.Name),
				t.About)
		}
	}
	codes := m.Codes
	if codes == "" {
		codes = ExitCodes
	}
	fmt.Fprint(w, "\n"+codes+"\nExamples:\n")
	for _, e := range m.Examples {
		fmt.Fprintf(w, "  %s\n", e)
	}
	printFlags(w, flags)
	return nil
}

// printFlags prints the flags, if there are any.
func printFlags(w io.Writer, flags *flag.FlagSet) {
	var list []script.Flag
	flags.VisitAll(func(f *flag.Flag) {
		value, text := FlagText(f)
		list = append(list, script.Flag{Name: f.Name, Arg: value, Usage: text})
	})
	script.WriteFlags(w, list)
}

// FlagText returns the name that help gives the value of a flag, and what the flag does, with its
// default. A usage may end with a tab and the default in other cases.
func FlagText(f *flag.Flag) (value, text string) {
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
