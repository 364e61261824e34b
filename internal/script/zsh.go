package script

import (
	"fmt"
	"strings"
)

const zshHead = `#compdef NAME
# Completion of NAME for zsh: source <(NAME completion zsh), or a file _NAME in $fpath
_NAME() {
  local value=${words[CURRENT]} name=${words[CURRENT-1]} command=${words[2]} files=''
  local before="${words[2,CURRENT-1]}"
  local -a list
  case $command in (GROUPS) command+=" ${words[3]}" ;; esac
  if [[ $value == --*=* ]]; then
    name=${value%%=*}
    compset -P 1 '*='
  fi
  case "$command $name" in
`

const zshMiddle = `  esac
  case $before in
`

const zshTail = `  esac
  if [[ -n $files && $value != -* ]]; then
    _files
  else
    _describe NAME list
  fi
}
if [[ $funcstack[1] == _NAME ]]; then
  _NAME "$@"
else
  compdef _NAME NAME
fi
`

func zsh(p *Program) string {
	var b strings.Builder
	named := strings.NewReplacer("NAME", p.Name, "GROUPS", p.groupPattern("|"))
	b.WriteString(named.Replace(zshHead))
	for _, c := range p.Commands {
		for _, f := range c.Flags {
			when := fmt.Sprintf("    ('%s --%s') ", c.Name, f.Name)
			switch {
			case f.Arg == "":
			case f.sets():
				fmt.Fprintf(&b, "%s_%s_settings; return ;;\n", when, p.Name)
			case f.files() && len(f.Words) == 0:
				fmt.Fprintf(&b, "%s_files; return ;;\n", when)
			default:
				fmt.Fprintf(&b, "%scompadd -- %s; return ;;\n", when, strings.Join(f.Words, " "))
			}
		}
	}
	b.WriteString(zshMiddle)
	top := described(p.below(""))
	own := described(p.own())
	fmt.Fprintf(&b, "    ('') list=(%s %s) ;;\n    (help) list=(%[1]s) ;;\n", top, own)
	for _, g := range p.groups() {
		fmt.Fprintf(&b, "    ('%[1]s'|'help %[1]s') list=(%[2]s) ;;\n", g, described(p.below(g)))
	}
	for _, c := range p.Commands {
		if len(c.Parts) > 0 {
			fmt.Fprintf(&b, "    ('help %s') list=(%s) ;;\n", c.Name, strings.Join(c.Parts, " "))
		}
		if len(c.Words) > 0 {
			fmt.Fprintf(&b, "    ('%s') list=(%s %s) ;;\n", c.Name, strings.Join(c.Words, " "),
				described(c.flags(), c.usages()))
		}
	}
	b.WriteString("    (*) case $command in\n")
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "      ('%s')\n        list=(%s)\n", c.Name, described(c.flags(), c.usages()))
		if c.Files {
			b.WriteString("        files=1\n")
		}
		b.WriteString("        ;;\n")
	}
	b.WriteString("    esac ;;\n")
	b.WriteString(named.Replace(zshTail))
	return strings.Replace(b.String(), "\n_"+p.Name+"() {", zshSettings(p)+"\n_"+p.Name+"() {", 1)
}

// zshSettings writes the function that completes PATH=VALUE: a path without a blank after it, or
// the words that its field can be.
func zshSettings(p *Program) string {
	var b strings.Builder
	var paths []string
	fmt.Fprintf(&b, "\n_%s_settings() {\n  case $PREFIX in\n", p.Name)
	for _, s := range p.Settings {
		paths = append(paths, s.Path)
		if len(s.Words) > 0 {
			fmt.Fprintf(&b, "    (%s=*) compset -P '*='; compadd -- %s ;;\n", s.Path,
				strings.Join(s.Words, " "))
		}
	}
	fmt.Fprintf(&b, "    (*=*) ;;\n    (*) compadd -S = -- %s ;;\n  esac\n}", strings.Join(paths, " "))
	return b.String()
}

// described writes names and what they are, as _describe takes them.
func described(names, abouts []string) string {
	var parts []string
	for i, name := range names {
		parts = append(parts, quoted(strings.ReplaceAll(name, ":", `\:`)+":"+line(abouts[i])))
	}
	return strings.Join(parts, " ")
}
