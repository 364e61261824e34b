package script

import (
	"fmt"
	"slices"
	"strings"
)

// bashHead reads the line up to the cursor itself: bash breaks words at equals signs, and names of
// fields have some after them. What is offered has to leave out what stands before the last of
// them.
const bashHead = `# Completion of NAME for bash: source <(NAME completion bash)
_NAME() {
  local line=${COMP_LINE:0:COMP_POINT} words=() list='' files='' known=1
  read -r -a words <<<"$line"
  case $line in *[[:space:]]) words+=('') ;; esac
  local last=$((${#words[@]} - 1))
  local value=${words[last]} name=${words[last - 1]} command=${words[1]}
  local before="${words[*]:1:last - 1}"
  case $command in GROUPS) command+=" ${words[2]}" ;; esac
  case $value in --*=*) name=${value%%=*} value=${value#*=} ;; esac
  COMPREPLY=()
  case "$command $name" in
`

const bashMiddle = `    *) known='' ;;
  esac
  [ -n "$known" ] || case $before in
`

const bashTail = `  esac
  [ -z "$files" ] || return
  compopt +o default +o bashdefault 2>/dev/null
  local cut=''
  case $COMP_WORDBREAKS:$value in *=*:*=*) cut=${value%=*}= ;; esac
  while IFS= read -r name; do
    case $value:$name in
      *=*:"$cut") ;; # it is there already
      *=*:*) COMPREPLY+=("${name#"$cut"}") ;;
      *=?*) ;; # first the path
      *) COMPREPLY+=("$name") ;;
    esac
  done < <(compgen -W "$list" -- "$value")
  case ${#COMPREPLY[@]}:${COMPREPLY[0]} in 1:*=) compopt -o nospace 2>/dev/null ;; esac
}
complete -o bashdefault -o default -F _NAME NAME
`

func bash(p *Program) string {
	var b strings.Builder
	named := strings.NewReplacer("NAME", p.Name, "GROUPS", p.groupPattern(" | "))
	b.WriteString(named.Replace(bashHead))
	words := func(list ...string) string { return quoted(strings.Join(list, " ")) }
	for _, c := range p.Commands {
		for _, f := range c.Flags {
			when := fmt.Sprintf("    '%s --%s') ", c.Name, f.Name)
			switch {
			case f.Arg == "":
			case f.sets():
				fmt.Fprintf(&b, "%slist=%s ;;\n", when, words(p.settings()...))
			case f.files() && len(f.Words) == 0:
				fmt.Fprintf(&b, "%sfiles=1 ;;\n", when)
			default:
				fmt.Fprintf(&b, "%slist=%s ;;\n", when, words(f.Words...))
			}
		}
	}
	b.WriteString(bashMiddle)
	top, _ := p.below("")
	own, _ := p.own()
	fmt.Fprintf(&b, "    '') list=%s ;;\n    help) list=%s ;;\n",
		words(append(slices.Clone(top), own...)...), words(top...))
	for _, g := range p.groups() {
		below, _ := p.below(g)
		fmt.Fprintf(&b, "    '%[1]s' | 'help %[1]s') list=%[2]s ;;\n", g, words(below...))
	}
	for _, c := range p.Commands {
		if len(c.Parts) > 0 {
			fmt.Fprintf(&b, "    'help %s') list=%s ;;\n", c.Name, words(c.Parts...))
		}
		if len(c.Words) > 0 {
			fmt.Fprintf(&b, "    '%s') list=%s ;;\n", c.Name, words(append(c.Words, c.flags()...)...))
		}
	}
	b.WriteString("    *) case $command in\n")
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "      '%s')\n        list=%s\n", c.Name, words(c.flags()...))
		if c.Files {
			b.WriteString("        case $value in -?*) ;; *) files=1 ;; esac\n")
		}
		b.WriteString("        ;;\n")
	}
	b.WriteString("    esac ;;\n")
	return b.String() + named.Replace(bashTail)
}
